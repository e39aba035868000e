//! Every golden cluster from nothing: up, nothing to do, healthy, one pool changed.

use serde_json::Value;

use crate::support::reading::is_reading;
use crate::support::world::World;

fn live(cluster: &str) {
    let world = World::of_golden(cluster);
    world.up([]).expect_code(0).expect_stderr("done: https://");

    let plan = world.run(["plan", "--detailed-exitcode"]);
    plan.expect_code(0).expect_stdout("No changes");

    world.proxy.clear();
    world.up([]).expect_code(0);
    let changed: Vec<String> =
        world.proxy.operations().into_iter().filter(|name| !is_reading(name)).collect();
    assert_eq!(changed, [""; 0], "a second run changes nothing");

    let status = world.run(["status", "--output", "json"]).expect_code(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["healthy"], true, "{status:#}");
    assert_eq!(status["api"]["state"], "ready");

    change_one_pool(&world);
}

/// Another size of one pool touches that pool's stack and nothing else.
fn change_one_pool(world: &World) {
    let text = world.workspace.read("cluster.yaml");
    let pools = text.split_once("pools:").unwrap().1;
    let name = pools.split_once("name: ").unwrap().1.split([',', '\n']).next().unwrap();
    let stack = format!("{}-pool-{name}", world.cluster());
    world.workspace.edit(|text| {
        let (before, pools) = text.split_once("pools:").unwrap();
        format!("{before}pools:{}", pools.replacen("instanceType:", "rootVolumeGiB: 150, instanceType:", 1))
    });
    world.proxy.clear();
    // The old name of the same command, which finds the S3 URI in the live stacks.
    world.run(["update", "--yes"]).expect_code(0);
    let touched: Vec<String> = world
        .proxy
        .calls()
        .into_iter()
        .filter(|call| call.operation == "cloudformation:CreateChangeSet")
        .filter_map(|call| call.target)
        .collect();
    assert_eq!(touched.len(), 1, "{touched:?}");
    assert!(touched[0].contains(&format!("/{stack}/")), "{touched:?}");
}

#[test]
fn minimal() {
    live("minimal");
}

#[test]
fn paddle_tutorial() {
    live("paddle-tutorial");
}

#[test]
fn tensorflow_tutorial() {
    live("tensorflow-tutorial");
}

#[test]
fn ha_gpu_efs() {
    live("ha-gpu-efs");
}

#[test]
fn private() {
    live("private");
}

#[test]
fn adopted() {
    live("adopted");
}
