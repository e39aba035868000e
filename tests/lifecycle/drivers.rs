//! Whether Flatcar publishes the driver of a GPU pool for an image is checked before the image is used.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::preflight::changing_calls;
use crate::support::outcome::Outcome;
use crate::support::release_server::{RELEASE_SERVER_VARIABLE, ReleaseServer};
use crate::support::world::World;

const MISSING: &str = "Flatcar 4459.2.1 comes without the NVIDIA driver 570-open, which pool gpu has";

fn run(world: &World, server: &str, arguments: &[&str]) -> Outcome {
    world.infra(arguments.iter().copied()).env(RELEASE_SERVER_VARIABLE, server).run()
}

fn has_lock(world: &World) -> bool {
    world.workspace.path("infra.lock").exists()
}

#[test]
fn a_driver_that_the_image_lacks_is_refused_before_anything_is_locked_or_created() {
    let world = World::of_golden("ha-gpu-efs");
    let server = ReleaseServer::having(|path| {
        ["550-open", "535", "580-open"].iter().any(|driver| path.ends_with(&format!("-drivers-{driver}.gz")))
    });
    let others =
        "set nvidiaDriver of gpu in cluster.yaml to a driver that this image has: 535, 550-open, 580-open";
    let place = format!("s3://{}/clusters", world.bucket());
    world.proxy.clear();
    run(&world, &server.url(), &["lock"]).expect_code(1).expect_stderr(MISSING).expect_stderr(others);
    let up = ["up", "--yes", "--s3-uri", &place];
    run(&world, &server.url(), &up).expect_code(1).expect_stderr(MISSING).expect_stderr(others);
    run(&world, &server.url(), &["validate", "--online", "--s3-uri", &place])
        .expect_code(2)
        .expect_stderr(MISSING)
        .expect_stderr(others);
    assert!(!has_lock(&world));
    assert_eq!(changing_calls(&world), [""; 0]);

    let before = server.requests().len();
    world.workspace.edit(|text| {
        text.replace("instanceType: g5.xlarge\n", "instanceType: g5.xlarge\n  nvidiaDriver: 550-open\n")
    });
    run(&world, &server.url(), &["lock"]).expect_code(0);
    assert!(has_lock(&world));
    let requests = server.requests().split_off(before);
    let starts: Vec<&str> = requests.iter().map(|request| request.start.as_str()).collect();
    assert_eq!(starts, ["HEAD /amd64-usr/4459.2.1/flatcar-nvidia-drivers-550-open.gz HTTP/1.1"]);
    assert_eq!(requests[0].header("authorization"), None, "{:?}", requests[0].headers);

    // A lock that stays needs no second check.
    run(&world, &server.url(), &["lock"]).expect_code(0);
    assert_eq!(server.requests().len(), before + 1);
}

#[test]
fn an_upgrade_to_an_image_without_the_driver_keeps_the_lock() {
    let world = World::of_golden("ha-gpu-efs");
    world.run(["lock"]).expect_code(0);
    let lock = world.workspace.read("infra.lock");
    let newest = lock.split_once("id: ").unwrap().1.lines().next().unwrap();
    world.control(json!({"gone_images": [newest]}));
    world.run(["lock", "--upgrade-os"]).expect_code(0);
    let lock = world.workspace.read("infra.lock");
    assert!(lock.contains("Flatcar-stable-4230.2.3-hvm"), "{lock}");
    world.control(json!({}));

    let server = ReleaseServer::having(|path| path.starts_with("/amd64-usr/4230.2.3/"));
    let place = format!("s3://{}/clusters", world.bucket());
    let none = "keep an image that has it, or use another os.channel; of the drivers that infra knows";
    for arguments in [&["lock", "--upgrade-os"][..], &["up", "--upgrade-os", "--yes", "--s3-uri", &place]] {
        run(&world, &server.url(), arguments).expect_code(1).expect_stderr(MISSING).expect_stderr(none);
        assert_eq!(world.workspace.read("infra.lock"), lock);
    }
}

#[test]
fn a_release_server_that_cannot_be_asked_is_a_warning() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let (elsewhere, broken) = (ReleaseServer::answering(302), ReleaseServer::answering(503));
    let silent = ReleaseServer::silent();
    for (url, reason) in [
        (closed, "could not be reached: "),
        (elsewhere.url(), "answered with status 302"),
        (broken.url(), "answered with status 503"),
        (silent.url(), "did not answer within 11 s"),
    ] {
        let world = World::of_golden("ha-gpu-efs");
        let began = Instant::now();
        let outcome = run(&world, &url, &["lock"]).expect_code(0);
        let warning =
            "could not check that Flatcar-stable-4459.2.1-hvm comes with the NVIDIA driver 570-open: ";
        outcome.expect_stderr(&format!("{warning}{url} {reason}"));
        assert!(has_lock(&world));
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
    let world = World::of_golden("ha-gpu-efs");
    let place = format!("s3://{}/clusters", world.bucket());
    let outcome =
        run(&world, &elsewhere.url(), &["validate", "--online", "--output", "json", "--s3-uri", &place]);
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let about_driver: Vec<&serde_json::Value> = report["account"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["subject"] == "driver")
        .collect();
    assert!(matches!(about_driver.as_slice(), [finding] if finding["severity"] == "warning"), "{report:#}");
}

#[test]
fn a_cluster_without_gpus_asks_for_no_driver() {
    let world = World::of_golden("minimal");
    let server = ReleaseServer::answering(404);
    run(&world, &server.url(), &["lock"]).expect_code(0);
    let place = format!("s3://{}/clusters", world.bucket());
    run(&world, &server.url(), &["validate", "--online", "--s3-uri", &place]);
    assert_eq!(server.requests().len(), 0);
}
