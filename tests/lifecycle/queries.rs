//! Commands that only read: the console of a machine, the lock, the cost of a cluster, `status --watch`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::reading::is_reading;
use crate::support::world::World;

#[test]
fn logs_finds_a_console_by_role_node_or_instance() {
    let world = World::alone("ha-gpu-efs");
    world.up([]).expect_code(0);
    world.control(
        json!({"console": {"*": "[  1.0] Flatcar boots\n[  9.0] infra: vol-1 is ours: data\nlogin:"}}),
    );
    world
        .run(["logs", "etcd-0"])
        .expect_code(0)
        .expect_stdout("Flatcar boots")
        .expect_stderr("vol-1 is ours: data");
    let several = world
        .run(["logs", "gpu"])
        .expect_code(1)
        .expect_stderr("'gpu' has 3 machines")
        .expect_stderr("name one: i-");
    let machine = several.stderr.split("name one: ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let log = world.run(["logs", &machine, "--output", "json"]).expect_code(0);
    let log: Value = serde_json::from_str(&log.stdout).unwrap();
    assert_eq!((&log["instance"], &log["role"]), (&json!(machine), &json!("pool-gpu")));
    assert_eq!(log["lastStep"], "vol-1 is ours: data");
    let node = world
        .api
        .nodes()
        .into_iter()
        .find(|node| node["spec"]["providerID"].as_str().unwrap().ends_with(&machine))
        .unwrap();
    world.run(["logs", node["metadata"]["name"].as_str().unwrap()]).expect_code(0).expect_stderr(&machine);
    let console = "[\u{1b}[0;32m  OK  \u{1b}[0m] Started\r\n\u{1b}]0;OWNED\u{7}\u{1b}[2Jend";
    world.control(json!({"console": {"*": console}}));
    world.run(["logs", &machine]).expect_code(0).expect_stdout(console);
    let seen = world.at_terminal(&["logs", &machine], "dumb", "").expect_code(0);
    assert!(!seen.stdout.contains('\u{1b}') && !seen.stdout.contains('\u{7}'), "{:?}", seen.stdout);
    seen.expect_stdout("[  OK  ] Started\r\n�]0;OWNED��[2Jend\r\n");
    world
        .run(["logs", "nobody"])
        .expect_code(1)
        .expect_stderr("no machine of this cluster is called 'nobody'");
}

#[test]
fn the_lock_is_written_once_and_updated_only_on_request() {
    let world = World::of_golden("minimal");
    world.run(["lock"]).expect_code(0).expect_stdout("Flatcar-stable-4459.2.1-hvm");
    let newest = world.workspace.read("infra.lock");
    let older = newest.replace("4459.2.1", "4230.2.3");
    std::fs::write(world.workspace.path("infra.lock"), &older).unwrap();
    let id = newest.lines().find_map(|line| line.trim().strip_prefix("id: ")).unwrap().to_owned();
    let other = older.replace(&id, "ami-0123456789abcdef0");
    std::fs::write(world.workspace.path("infra.lock"), &other).unwrap();
    world
        .run(["lock"])
        .expect_code(0)
        .expect_stderr("Flatcar-stable-4459.2.1-hvm is newer")
        .expect_stdout("ami-0123456789abcdef0");
    // The day of the prices may have changed meanwhile.
    let image = |lock: &str| lock.split("# What AWS charged").next().unwrap().to_owned();
    assert_eq!(image(&world.workspace.read("infra.lock")), image(&other));
    world.run(["lock", "--upgrade-os"]).expect_code(0).expect_stdout(&id);
    assert_eq!(image(&world.workspace.read("infra.lock")), image(&newest));
    std::fs::write(world.workspace.path("infra.lock"), "cluster: minimal\nimage: {id: x}\n").unwrap();
    world.run(["lock"]).expect_code(2).expect_stderr("infra.lock");
}

#[test]
fn the_calculator_is_called_only_with_the_online_option() {
    let world = World::of_golden("minimal");
    let offline = world.run(["cost"]).expect_code(0);
    assert!(!offline.stdout.contains("calculator"));
    assert_eq!(world.proxy.count("*"), 0);
    let early = world
        .run(["cost", "--online"])
        .expect_code(0)
        .expect_stdout("minimal-network: https://calculator.aws/");
    early.expect_stderr("run this again after the first `infra up`");
    world.up([]).expect_code(0);
    world.proxy.clear();
    world.run(["cost", "--online"]).expect_code(0).expect_stdout("minimal-pool-cpu: https://calculator.aws/");
    assert!(
        world
            .proxy
            .operations()
            .iter()
            .all(|name| is_reading(name) || name == "cloudformation:EstimateTemplateCost")
    );
}

#[test]
fn status_watch_refreshes_and_ends_with_ctrl_c() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let started = Instant::now();
    let mut running = world.infra(["status", "--watch"]).spawn();
    running.wait_for_stdout_times("minimal: healthy", 3);
    // Twenty seconds for users.
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
    running.interrupt();
    running.wait().expect_code(0);
}

#[test]
fn without_credentials_no_call_is_made() {
    let world = World::of_golden("minimal");
    let outcome = world.up_invocation([]).env("AWS_ACCESS_KEY_ID", "").run().expect_code(4);
    let outcome = outcome.expect_stderr("--profile").expect_stderr("the same command resumes");
    assert!(!outcome.stderr.contains("ProviderError"), "the SDK's insides are shown:\n{}", outcome.stderr);
    assert_eq!(world.proxy.count("*"), 0);
}
