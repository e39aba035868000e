//! Interrupted, cancelled and timed-out runs: the stack continues in AWS, and the next run completes the cluster.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::fault_proxy::{Fault, Times};
use crate::support::invocation::Running;
use crate::support::outcome::Outcome;
use crate::support::world::World;
use crate::support::{run_into_time_limit, wait_until};

const NETWORK: &str = "minimal-network";
const POOL: &str = "minimal-pool-cpu";

/// Longer than any test waits.
const VERY_LONG: Duration = Duration::from_secs(100);

/// A world in which a network takes longer than any test waits, until the setting is reset.
fn slow_world() -> World {
    let world = World::alone("minimal");
    world.control(json!({"delay": VERY_LONG.as_secs()}));
    world
}

/// A run that has begun to create the network.
fn creating(world: &World, more: &[&str]) -> Running {
    let mut running = world.up_invocation(more.iter().copied()).spawn();
    running.wait_for_stderr(&format!("{NETWORK}: create of"));
    running
}

/// A run that has begun to change the pool of a whole cluster, which takes very long.
fn updating(world: &World, more: &[&str]) -> Running {
    world.workspace.edit(|text| text.replace("instanceType:", "rootVolumeGiB: 150, instanceType:"));
    world.control(json!({"delay": VERY_LONG.as_secs()}));
    let more = ["--yes"].iter().chain(more).copied();
    let mut running = world.up_invocation(more).spawn();
    running.wait_for_stderr(&format!("{POOL}: update of"));
    running
}

fn status(world: &World, stack: &str) -> String {
    world.aws().stack_status(stack).unwrap_or_else(|| "none".to_owned())
}

#[track_caller]
fn wait_for_status(world: &World, stack: &str, wanted: &str) {
    wait_until(&format!("{stack} is in {wanted}"), || status(world, stack) == wanted);
}

/// The next run, undisturbed, completes everything.
#[track_caller]
fn expect_recovery(world: &World) -> Outcome {
    world.proxy.heal();
    world.control(json!({}));
    let outcome = world.up(["--yes"]).expect_code(0);
    world.run(["status"]).expect_code(0);
    outcome
}

#[test]
fn the_first_interruption_detaches_and_the_stack_continues() {
    let world = slow_world();
    let running = creating(&world, &[]);
    running.interrupt();
    let outcome = running.wait().expect_code(5);
    assert!(!outcome.stderr.contains("failed"), "what was left alone has not failed: {}", outcome.stderr);
    outcome
        .expect_stderr("a second Ctrl-C exits at once")
        .expect_stderr(&format!("detached; {NETWORK} continues in AWS"))
        .expect_stderr("run the same command again to resume");
    assert_eq!(status(&world, NETWORK), "CREATE_IN_PROGRESS");

    let mut running = world.up_invocation([]).spawn();
    running.wait_for_stderr(&format!("{NETWORK}: another operation is in progress; following it"));
    world.control(json!({}));
    running.wait().expect_code(0);
    world.run(["status"]).expect_code(0);
}

#[test]
fn the_second_interruption_exits_at_once() {
    let world = slow_world();
    // A call that hangs does not delay the end.
    world.proxy.fault("cloudformation:DescribeStackEvents", Fault::Hang(VERY_LONG), Times::Always);
    let mut running = creating(&world, &[]);
    world.proxy.wait_for("cloudformation:DescribeStackEvents", 1);
    running.interrupt();
    running.wait_for_stderr("a second Ctrl-C exits at once");
    running.interrupt();
    let started = Instant::now();
    running.wait().expect_code(130).expect_stderr("the same command resumes");
    // What hangs is waited for half a minute.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    expect_recovery(&world);
}

#[test]
fn an_early_interruption_reports_that_nothing_was_changed() {
    let world = World::of_golden("minimal");
    world.proxy.fault("ec2:DescribeInstanceTypeOfferings", Fault::Hang(VERY_LONG), Times::Always);
    let running = world.up_invocation([]).spawn();
    world.proxy.wait_for("ec2:DescribeInstanceTypeOfferings", 1);
    running.interrupt();
    running.wait().expect_code(130).expect_stderr("interrupted; nothing was changed");
    assert_eq!(world.stacks().len(), 0);
    assert_eq!(world.proxy.count("s3:PutObject"), 0);
    assert!(!world.workspace.path("infra.lock").exists());
}

#[test]
fn a_plan_deletes_its_change_sets_however_it_ends() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("instanceType:", "rootVolumeGiB: 150, instanceType:"));
    world.proxy.fault("cloudformation:DescribeChangeSet", Fault::Hang(VERY_LONG), Times::First(1));
    world.proxy.clear();
    let running = world.infra(["plan"]).spawn();
    world.proxy.wait_for("cloudformation:DescribeChangeSet", 1);
    running.interrupt();
    running.wait().expect_code(130).expect_stderr("interrupted; nothing was changed");
    assert_eq!(change_sets(&world), 0);

    world.proxy.heal();
    world.proxy.fault("cloudformation:DescribeChangeSet", Fault::AccessDenied, Times::Always);
    world.run(["plan"]).expect_code(1).expect_stderr("cloudformation:DescribeChangeSet");
    assert_eq!(change_sets(&world), 0);
}

/// How many change sets the pool's stack has that were not carried out.
fn change_sets(world: &World) -> usize {
    let form = [("Action", "ListChangeSets"), ("Version", "2010-05-15"), ("StackName", POOL)];
    let aws = world.aws();
    aws.post("cloudformation", &aws.region, &form).matches("infra-plan-").count()
}

#[test]
fn cancelling_a_creation_rolls_it_back() {
    cancel_creation(|_| {});
}

#[test]
fn cancelling_a_creation_after_a_while_rolls_it_back() {
    cancel_creation(|world| world.proxy.wait_for("cloudformation:DescribeStackEvents", 3));
}

/// Interrupts a creation, after `wait`, with the flag that cancels it.
fn cancel_creation(wait: impl FnOnce(&World)) {
    let world = slow_world();
    let running = creating(&world, &["--cancel-on-interrupt"]);
    wait(&world);
    running.interrupt();
    running.wait().expect_code(5).expect_stderr(&format!("cancelled; {NETWORK} is being undone"));
    world.control(json!({}));
    wait_for_status(&world, NETWORK, "none");
    expect_recovery(&world);
}

#[test]
fn cancelling_an_update_rolls_it_back() {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    let running = updating(&world, &["--cancel-on-interrupt"]);
    running.interrupt();
    running.wait().expect_code(5).expect_stderr(&format!("cancelled; {POOL} is being undone"));
    world.control(json!({}));
    wait_for_status(&world, POOL, "UPDATE_ROLLBACK_COMPLETE");
    expect_recovery(&world);
    assert_eq!(status(&world, POOL), "UPDATE_COMPLETE");
}

#[test]
fn a_deletion_cannot_be_cancelled_and_continues_in_aws() {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    world.control(json!({"delay": VERY_LONG.as_secs(), "force_status": {POOL: "ROLLBACK_COMPLETE"}}));
    let mut running = world.up_invocation(["--cancel-on-interrupt"]).spawn();
    running.wait_for_stderr(&format!("{POOL}: delete begins"));
    running.interrupt();
    running.wait().expect_code(5).expect_stderr(&format!("detached; {POOL} continues in AWS"));
    expect_recovery(&world);
}

#[test]
fn the_time_limit_ends_the_run_and_the_stack_continues() {
    let world = slow_world();
    let reached = format!("the time limit was reached; {NETWORK} continues in AWS");
    run_into_time_limit(&reached, |limit| world.up(["--timeout", limit]));
    assert_eq!(status(&world, NETWORK), "CREATE_IN_PROGRESS");
    expect_recovery(&world);
}

#[test]
fn up_waits_for_no_more_than_the_wait_option_says() {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    let asked_the_api = || world.api.requests().iter().filter(|request| request.contains("/readyz")).count();
    let before = asked_the_api();
    let outcome = updating(&world, &["--wait", "none"]).wait().expect_code(0);
    outcome.expect_stderr(&format!("{POOL} continues in AWS"));
    assert_eq!(status(&world, POOL), "UPDATE_IN_PROGRESS");

    world.control(json!({}));
    world.up(["--wait", "stacks"]).expect_code(0);
    assert_eq!(status(&world, POOL), "UPDATE_COMPLETE");
    assert_eq!(asked_the_api(), before, "nodes were not to be waited for");

    world.up([]).expect_code(0);
    assert!(asked_the_api() > before);
}
