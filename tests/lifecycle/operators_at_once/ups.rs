//! Two runs of `infra up` at the same time.

use serde_json::{Value, json};

use super::{SILENCE, wait_for};
use crate::support::fault_proxy::{FaultProxy, Times};
use crate::support::world::World;

/// Two runs at the same time, from two directories: one cluster, and neither reports a fault.
fn run_twice(world: &World) {
    let other = world.workspace.elsewhere(true);
    let place = format!("s3://{}/clusters", world.bucket());
    let arguments = ["up", "--yes", "--s3-uri", &place];
    let runs = [&world.workspace, &other].map(|workspace| world.infra_in(workspace, arguments).spawn());
    for outcome in runs.map(|running| running.wait()) {
        outcome.expect_code(0);
    }
    let status = world.run(["status", "--output", "json"]).expect_code(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["healthy"], true);
}

#[test]
fn two_ups_in_parallel_create_one_cluster() {
    let alone = World::of_golden("paddle-tutorial");
    alone.up([]).expect_code(0);
    // Both begin before either has created anything, not at the same moment each time.
    for _ in 0..3 {
        let world = World::of_golden("paddle-tutorial");
        run_twice(&world);
        assert_eq!(world.census(), alone.census());
    }
}

#[test]
fn two_runs_at_once_change_a_cluster_once() {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    let before = world.census();
    world.workspace.edit(|text| text.replace("instanceType:", "rootVolumeGiB: 150, instanceType:"));
    world.control(json!({"delay": 1.0}));
    world.proxy.clear();
    run_twice(&world);
    assert_eq!(world.census(), before);
    let aws = world.aws();
    let form =
        [("Action", "DescribeStackEvents"), ("Version", "2010-05-15"), ("StackName", "minimal-pool-cpu")];
    let events = aws.post("cloudformation", &aws.region, &form);
    let begun = events.split("<member>").filter(|event| {
        event.contains(">AWS::CloudFormation::Stack<") && event.contains(">UPDATE_IN_PROGRESS<")
    });
    assert_eq!(begun.count(), 1, "{events}");
}

/// A stack in review looks like a leftover, and is being created by the time a second run reaches it.
#[test]
fn the_change_set_of_another_run_is_not_deleted() {
    let world = World::alone("minimal");
    world.control(json!({"hold": ["minimal-network"]}));
    world.proxy.fault("cloudformation:DescribeChangeSet", SILENCE, Times::Always);
    let first = world.up_invocation([]).spawn();
    world.proxy.wait_for("cloudformation:DescribeChangeSet", 1);
    assert_eq!(world.aws().stack_status("minimal-network").as_deref(), Some("REVIEW_IN_PROGRESS"));

    let (other, way) = (world.workspace.elsewhere(true), FaultProxy::start(&world.proxy.url()));
    way.fault("ec2:DescribeInstanceTypeOfferings", SILENCE, Times::Always);
    let place = format!("s3://{}/clusters", world.bucket());
    let second = other.infra(["up", "--s3-uri", &place]).endpoint(&way.url()).kubernetes(&world.api);
    let mut second = second.spawn();
    way.wait_for("ec2:DescribeInstanceTypeOfferings", 1);
    world.proxy.heal();
    wait_for(&world, &["network"], "CREATE_IN_PROGRESS");
    way.heal();
    second.wait_for_stderr("minimal-network: another operation is in progress; following it");
    world.control(json!({}));
    first.wait().expect_code(0);
    second.wait().expect_code(0);
    assert_eq!(world.proxy.count("cloudformation:DeleteStack"), 0);
    world.run(["status"]).expect_code(0);
}
