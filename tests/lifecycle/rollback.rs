//! An update that fails and cannot be rolled back: what the next run reports, and both ways to fix it.

use serde_json::{Value, json};

use crate::support::outcome::Outcome;
use crate::support::world::World;

const STACK: &str = "minimal-pool-cpu";
const RESOURCE: &str = "NodeLaunchTemplate";
const REASON: &str = "no new launch template today";
const NO_WAY_BACK: &str = "no way back to the old launch template";

/// A cluster with a pool that is neither as it was nor as it should be.
fn stuck_world() -> World {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("m5.large", "m5.large, rootVolumeGiB: 150"));
    world.control(json!({"fail_update": {RESOURCE: REASON}, "fail_rollback": {RESOURCE: NO_WAY_BACK}}));
    world
        .up(["--yes"])
        .expect_code(6)
        .expect_stderr(&format!(
            "stack {STACK} failed (UPDATE_ROLLBACK_FAILED): how machines of pool cpu are started"
        ))
        .expect_stderr(REASON)
        .expect_stderr("`infra rollback`");
    assert_eq!(status(&world), "UPDATE_ROLLBACK_FAILED");
    world
}

fn status(world: &World) -> String {
    world.aws().stack_status(STACK).unwrap()
}

#[test]
fn a_rollback_continues_once_its_cause_is_fixed() {
    let world = stuck_world();
    world
        .up(["--yes"])
        .expect_code(1)
        .expect_stderr(&format!(
            "error: stack {STACK} is in UPDATE_ROLLBACK_FAILED: how machines of pool cpu are started"
        ))
        .expect_stderr(NO_WAY_BACK)
        .expect_stderr(
            "fix the cause, then run `infra rollback`; `infra rollback --skip ID` continues without that resource",
        );
    world
        .run(["rollback", "--skip", "NodeRole"])
        .expect_code(1)
        .expect_stderr("NodeRole is not a resource whose rollback failed")
        .expect_stderr(&format!("those that failed: {RESOURCE}\n"));
    assert_eq!(status(&world), "UPDATE_ROLLBACK_FAILED", "nothing was begun");

    // Nothing is fixed yet.
    world
        .run(["rollback"])
        .expect_code(1)
        .expect_stderr(NO_WAY_BACK)
        .expect_stderr(&format!("fix that, or continue without it: `infra rollback --skip {RESOURCE}`"));
    assert_eq!(status(&world), "UPDATE_ROLLBACK_FAILED");

    world.control(json!({}));
    world.run(["rollback"]).expect_code(0).expect_stderr(&format!("rolled back: {STACK}"));
    assert_eq!(status(&world), "UPDATE_ROLLBACK_COMPLETE");
    world.run(["rollback"]).expect_code(0).expect_stderr("no stack of this cluster needs a rollback");
    world.up(["--yes"]).expect_code(0);
    assert_eq!(status(&world), "UPDATE_COMPLETE");
}

#[test]
fn a_rollback_can_skip_what_cannot_be_fixed() {
    let world = stuck_world();
    world
        .run(["rollback", "--skip", RESOURCE])
        .expect_code(0)
        .expect_stderr(&format!("rolled back: {STACK}"));
    assert_eq!(status(&world), "UPDATE_ROLLBACK_COMPLETE");
    world.control(json!({}));
    world.up(["--yes"]).expect_code(0);
    assert_eq!(status(&world), "UPDATE_COMPLETE");
}

/// A run that finds the rollback in progress, which continues with these settings.
fn resume(world: &World, settings: Value) -> Outcome {
    world.proxy.clear();
    let running = world.infra(["rollback"]).spawn();
    world.proxy.wait_for("cloudformation:DescribeStackEvents", 1);
    world.control(settings);
    running.wait()
}

#[test]
fn a_detached_rollback_is_followed_by_the_next_run() {
    let world = stuck_world();
    world.control(json!({"hold": [STACK]}));
    world
        .run(["rollback", "--timeout", "1s"])
        .expect_code(5)
        .expect_stderr(&format!("{STACK} continues in AWS"))
        .expect_stderr("run the same command again");
    assert_eq!(status(&world), "UPDATE_ROLLBACK_IN_PROGRESS");
    resume(&world, json!({})).expect_code(0).expect_stderr(&format!("rolled back: {STACK}"));
    assert_eq!(status(&world), "UPDATE_ROLLBACK_COMPLETE");
}

#[test]
fn a_detached_rollback_that_fails_is_reported_by_the_next_run() {
    let world = stuck_world();
    let failing = json!({RESOURCE: NO_WAY_BACK});
    world.control(json!({"hold": [STACK], "fail_rollback": failing}));
    world.run(["rollback", "--timeout", "1s"]).expect_code(5);
    resume(&world, json!({"fail_rollback": failing}))
        .expect_code(1)
        .expect_stderr(NO_WAY_BACK)
        .expect_stderr(&format!("fix that, or continue without it: `infra rollback --skip {RESOURCE}`"));
    assert_eq!(status(&world), "UPDATE_ROLLBACK_FAILED");
}

#[test]
fn without_a_cluster_there_is_nothing_to_roll_back() {
    World::of_golden("minimal").run(["rollback"]).expect_code(1).expect_stderr("there is no cluster minimal");
}
