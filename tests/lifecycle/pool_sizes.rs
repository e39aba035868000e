//! Pools that the autoscaler has resized: the size is no change, and no change makes them smaller.

use serde_json::json;

use crate::support::reading::is_reading;
use crate::support::world::World;

/// A pool's group: its name and how many machines it wants.
fn group(world: &World, pool: &str) -> (String, u32) {
    let groups = world.aws().post(
        "autoscaling",
        "us-west-2",
        &[("Action", "DescribeAutoScalingGroups"), ("Version", "2011-01-01")],
    );
    let mine = groups
        .split("<member><AutoScalingGroupName>")
        .find(|part| part.contains(&format!("<Value>pool-{pool}</Value>")))
        .unwrap();
    let name = mine.split("</AutoScalingGroupName>").next().unwrap().to_owned();
    let desired = crate::support::element(mine, "DesiredCapacity").unwrap().parse().unwrap();
    (name, desired)
}

fn desired(world: &World, pool: &str) -> u32 {
    group(world, pool).1
}

/// What the autoscaler does.
fn move_to(world: &World, pool: &str, count: u32) {
    world.aws().post(
        "autoscaling",
        "us-west-2",
        &[
            ("Action", "SetDesiredCapacity"),
            ("Version", "2011-01-01"),
            ("AutoScalingGroupName", &group(world, pool).0),
            ("DesiredCapacity", &count.to_string()),
        ],
    );
}

/// All events of a stack.
fn events(world: &World, stack: &str) -> String {
    let form = [("Action", "DescribeStackEvents"), ("Version", "2010-05-15"), ("StackName", stack)];
    world.aws().post("cloudformation", "us-west-2", &form)
}

#[track_caller]
fn nothing_to_do(world: &World) {
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
    world.proxy.clear();
    world.up([]).expect_code(0);
    let changing: Vec<String> =
        world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect();
    assert_eq!(changing, [""; 0]);
}

#[test]
fn a_count_that_the_autoscaler_set_is_kept_until_cluster_yaml_changes() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    move_to(&world, "gpu", 5);
    nothing_to_do(&world);
    // Something else of the pool changes; the count does not go back to 3.
    world.workspace.edit(|text| text.replace("team: vision, ", "team: sound, "));
    world.up(["--yes"]).expect_code(0);
    assert_eq!(desired(&world, "gpu"), 5);
    // More than the maximum is clamped.
    world.workspace.edit(|text| text.replace("maxCount: 8", "maxCount: 4"));
    world.up(["--yes"]).expect_code(0);
    assert_eq!(desired(&world, "gpu"), 4);
    nothing_to_do(&world);
    // A new count in cluster.yaml wins.
    world.workspace.edit(|text| text.replace("count: 3", "count: 2"));
    world.up(["--yes"]).expect_code(0);
    assert_eq!(desired(&world, "gpu"), 2);
}

#[test]
fn a_rolling_update_keeps_as_many_in_service_as_the_autoscaler_wants() {
    let world = World::of_golden("ha-gpu-efs");
    world.workspace.edit(|text| text.replace("count: 2, maxCount: 4", "count: 2, maxCount: 8"));
    world.up([]).expect_code(0);
    move_to(&world, "cpu", 6);
    nothing_to_do(&world);
    world.workspace.edit(|text| text.replace("maxCount: 8}", "maxCount: 8, rootVolumeGiB: 150}"));
    world.up([]).expect_code(0);
    let told = events(&world, "research-pool-cpu");
    assert!(told.contains("while keeping at least 6 instance(s) in service"), "{told}");
    assert!(!told.contains("Temporarily setting"), "nodes were terminated before others started: {told}");
    assert_eq!(desired(&world, "cpu"), 6);
    nothing_to_do(&world);
    move_to(&world, "cpu", 3);
    nothing_to_do(&world);
}

#[test]
fn a_group_that_grows_while_others_are_changed_is_not_cut_back() {
    let world = World::alone("minimal");
    world.workspace.edit(|text| text.replace("m5.large}", "m5.large, count: 1, maxCount: 4}"));
    world.up([]).expect_code(0);
    move_to(&world, "cpu", 2);
    // With new limits the size is passed to the stack; the network, which comes first, changes too.
    world.workspace.edit(|text| text.replace("maxCount: 4", "maxCount: 5") + "tags: {team: research}\n");
    world.control(json!({"hold": ["minimal-network"]}));
    let mut running = world.up_invocation(["--yes"]).spawn();
    running.wait_for_stderr("minimal-network: update of");
    move_to(&world, "cpu", 3);
    world.control(json!({}));
    running.wait().expect_code(0);
    assert_eq!(desired(&world, "cpu"), 3);
}

#[test]
fn a_pool_shrinks_from_what_it_is_and_not_from_what_its_stack_was_given() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    move_to(&world, "gpu", 6);
    let node =
        world.api.nodes().into_iter().find(|node| node["metadata"]["labels"]["infra.internal/pool"] == "gpu");
    let node = node.unwrap()["metadata"]["name"].clone();
    world.api.set_pods(vec![json!({
        "metadata": {"namespace": "default", "name": "train-0-abcde", "labels": {"batch.kubernetes.io/job-name": "train"}},
        "spec": {"nodeName": node},
        "status": {"phase": "Running"},
    })]);
    world.workspace.edit(|text| text.replace("count: 3", "count: 4"));
    world
        .up([])
        .expect_code(1)
        .expect_stderr("job default/train runs on")
        .expect_stderr("`--yes` answers yes");
    assert_eq!(desired(&world, "gpu"), 6);
}
