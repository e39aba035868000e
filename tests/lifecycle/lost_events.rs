//! Operations whose last event never comes, or whose failure is listed after events that were read already: they end, and are explained.

use serde_json::{Value, json};

use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

const NETWORK: &str = "minimal-network";
const CONTROL_PLANE: &str = "minimal-control-plane";
const POOL: &str = "minimal-pool-cpu";
const STACKS: [&str; 3] = [NETWORK, CONTROL_PLANE, POOL];
const RESOURCE: &str = "NodeLaunchTemplate";
const REASON: &str = "no new launch template today";

/// Every stack's own events of these statuses are never shown.
fn lose(statuses: &[&str]) -> Value {
    STACKS.iter().map(|stack| ((*stack).to_owned(), json!(statuses))).collect()
}

fn change_pool(world: &World) {
    world.workspace.edit(|text| text.replace("m5.large", "m5.large, rootVolumeGiB: 150"));
}

#[test]
fn creation_update_and_deletion_end_without_their_last_event() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.control(json!({"lose_events": lose(&["CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE"])}));
    world.up([]).expect_code(0);
    world.run(["status"]).expect_code(0);
    change_pool(&world);
    world.up(["--yes"]).expect_code(0);
    assert_eq!(world.aws().stack_status(POOL).as_deref(), Some("UPDATE_COMPLETE"));
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("minimal is deleted");
    assert_eq!(world.census(), before);
}

#[test]
fn a_failed_creation_is_explained_without_its_last_event_and_with_a_late_reason() {
    for settings in [
        json!({"late_events": {RESOURCE: ["CREATE_FAILED"]}}),
        json!({"lose_events": {POOL: ["ROLLBACK_COMPLETE"]}}),
        json!({"lose_events": {POOL: ["ROLLBACK_COMPLETE"]}, "late_events": {RESOURCE: ["CREATE_FAILED"]}}),
    ] {
        let world = World::of_golden("minimal");
        let mut faults = settings.clone();
        faults["fail_create"] = json!({RESOURCE: REASON});
        world.control(faults);
        let told = format!(
            "stack {POOL} failed (ROLLBACK_COMPLETE): how machines of pool cpu are started ({RESOURCE}): {REASON}"
        );
        world.up([]).expect_code(6).expect_stderr(&told);
        world.control(json!({"lose_events": lose(&["DELETE_COMPLETE"])}));
        world.up([]).expect_code(0).expect_stderr("an earlier attempt failed and is deleted now");
        world.run(["status"]).expect_code(0);
    }
}

#[test]
fn a_failed_update_and_a_rollback_end_without_their_last_event() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    change_pool(&world);
    let lost = lose(&["UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED"]);
    let failing = json!({RESOURCE: REASON});
    world.control(json!({
        "lose_events": lost, "late_events": {RESOURCE: ["UPDATE_FAILED"]}, "fail_update": failing,
    }));
    world
        .up(["--yes"])
        .expect_code(6)
        .expect_stderr(&format!("stack {POOL} failed (UPDATE_ROLLBACK_COMPLETE): "))
        .expect_stderr(REASON);

    world.control(json!({"lose_events": lost, "fail_update": failing, "fail_rollback": failing}));
    world
        .up(["--yes"])
        .expect_code(6)
        .expect_stderr(&format!("stack {POOL} failed (UPDATE_ROLLBACK_FAILED): "));
    world.control(json!({"lose_events": lost}));
    world.run(["rollback"]).expect_code(0).expect_stderr(&format!("rolled back: {POOL}"));
    world.up(["--yes"]).expect_code(0);
    assert_eq!(world.aws().stack_status(POOL).as_deref(), Some("UPDATE_COMPLETE"));
}

#[test]
fn a_stack_that_was_only_reviewed_is_deleted_though_no_event_says_so() {
    let world = World::of_golden("minimal");
    let before = world.census();
    let leave_in_review = || {
        world.proxy.fault("cloudformation:ExecuteChangeSet", Fault::AccessDenied, Times::Always);
        world.up([]).expect_code(1);
        world.proxy.heal();
        assert_eq!(world.aws().stack_status(NETWORK).as_deref(), Some("REVIEW_IN_PROGRESS"));
    };
    world.control(json!({"lose_events": lose(&["DELETE_IN_PROGRESS", "DELETE_COMPLETE"])}));
    leave_in_review();
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(world.census(), before);
    leave_in_review();
    world.up([]).expect_code(0);
    world.run(["status"]).expect_code(0);
}
