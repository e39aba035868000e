//! Every status of CloudFormation, as the status in which a run finds a stack of a whole cluster.

use serde_json::json;

use crate::support::outcome::Outcome;
use crate::support::wait_until;
use crate::support::world::World;

const POOL: &str = "minimal-pool-cpu";
const CONTROL_PLANE: &str = "minimal-control-plane";

/// Statuses of a complete stack, which is not changed.
const STANDING: [&str; 5] = [
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
];
/// Statuses of a failed creation: the stack is deleted and created again.
const FAILED_CREATIONS: [&str; 4] =
    ["CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS"];
/// Operations in progress, and how they end.
const UNDER_WAY: [(&str, &str); 8] = [
    ("CREATE_IN_PROGRESS", "CREATE_COMPLETE"),
    ("ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"),
    ("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"),
    ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE"),
    ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
    ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
    ("IMPORT_IN_PROGRESS", "IMPORT_COMPLETE"),
    ("IMPORT_ROLLBACK_IN_PROGRESS", "IMPORT_ROLLBACK_COMPLETE"),
];
/// What a run does not touch, and what it says instead.
const STUCK: [(&str, &str); 4] = [
    ("UPDATE_FAILED", "`infra rollback`"),
    ("UPDATE_ROLLBACK_FAILED", "`infra rollback`"),
    ("DELETE_FAILED", "`infra destroy`"),
    ("IMPORT_ROLLBACK_FAILED", "CloudFormation console"),
];
/// What happens to a stack that is deleted.
const DELETION: [&str; 2] = ["DELETE_IN_PROGRESS", "DELETE_COMPLETE"];

#[test]
fn every_stack_status_is_tested() {
    let source = include_str!("../../src/aws/stack_status.rs");
    let table = source.split("\nstack_statuses! {").nth(1).and_then(|rest| rest.split("\n}").next());
    let rows = table.expect("no table of stack statuses").lines();
    let mut known: Vec<&str> = rows.filter_map(|row| row.split('"').nth(1)).collect();
    let mut tried = [STANDING.as_slice(), &FAILED_CREATIONS, &DELETION].concat();
    tried.extend(UNDER_WAY.map(|(status, _)| status));
    tried.extend(STUCK.map(|(status, _)| status));
    known.sort_unstable();
    tried.sort_unstable();
    assert_eq!(tried, known);
    assert_eq!(tried.len(), 23);
}

/// A whole cluster.
fn whole() -> World {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    world
}

/// A run that finds the stack in this status.
fn up_from(world: &World, stack: &str, status: &str) -> Outcome {
    world.control(json!({"force_status": {stack: status}}));
    assert_eq!(world.aws().stack_status(stack).as_deref(), Some(status));
    world.proxy.clear();
    world.up([])
}

/// What the last run did to stacks, and to which.
fn changes(world: &World) -> Vec<(String, String)> {
    let verbs = ["CreateChangeSet", "ExecuteChangeSet", "DeleteStack", "Continue", "Rollback", "Cancel"];
    let calls = world.proxy.calls().into_iter();
    let changing = calls.filter(|call| verbs.iter().any(|verb| call.operation.contains(verb)));
    changing.map(|call| (call.operation, call.target.unwrap_or_default())).collect()
}

#[track_caller]
fn expect_whole(world: &World, context: &str) {
    let outcome = world.run(["status"]);
    assert_eq!(outcome.code, 0, "{context}: {}", outcome.stdout);
    assert_eq!(world.census()["autoscaling groups"], 3, "{context}");
    assert_eq!(world.census()["instances"], 3, "{context}");
}

#[test]
fn a_complete_stack_is_not_changed() {
    let world = whole();
    for (stack, status) in
        STANDING.map(|status| (POOL, status)).into_iter().chain([(CONTROL_PLANE, STANDING[2])])
    {
        up_from(&world, stack, status).expect_code(0).expect_stderr("no stack had to change");
        assert_eq!(changes(&world), [], "{status}");
        expect_whole(&world, status);
    }
}

#[test]
fn a_failed_creation_is_deleted_and_created_again() {
    let world = whole();
    for status in FAILED_CREATIONS {
        let outcome = up_from(&world, POOL, status).expect_code(0);
        let says_why = outcome.stderr.contains("an earlier attempt failed and is deleted now");
        assert_eq!(says_why, status != "REVIEW_IN_PROGRESS", "{status}: {}", outcome.stderr);
        let changes = changes(&world);
        let operations: Vec<&str> = changes.iter().map(|(operation, _)| operation.as_str()).collect();
        let expected = ["DeleteStack", "CreateChangeSet", "ExecuteChangeSet"];
        assert_eq!(operations, expected.map(|name| format!("cloudformation:{name}")), "{status}");
        assert!(changes[..2].iter().all(|(_, target)| target.contains(POOL)), "{status}: {changes:?}");
        expect_whole(&world, status);
    }
}

#[test]
fn a_failed_control_plane_is_created_again_with_what_needs_it() {
    let world = whole();
    up_from(&world, CONTROL_PLANE, "ROLLBACK_COMPLETE").expect_code(0);
    expect_whole(&world, CONTROL_PLANE);
}

/// Follows the operation in progress to this end.
fn follow(world: &World, stack: &str, status: &str, end: &str) -> Outcome {
    world.control(json!({"force_status": {stack: status}, "finish_status": end, "finish_after": 600}));
    assert_eq!(world.aws().stack_status(stack).as_deref(), Some(status));
    world.proxy.clear();
    let mut running = world.up_invocation([]).spawn();
    running.wait_for_stderr(&format!("{stack}: another operation is in progress; following it"));
    world.control(json!({}));
    running.wait()
}

fn follow_all(cases: &[(&str, &str)]) {
    let world = whole();
    for (status, end) in cases {
        let outcome = follow(&world, POOL, status, end).expect_code(0);
        let failed = outcome.stderr.contains("the operation in progress has failed");
        assert_eq!(failed, end.contains("ROLLBACK"), "{status}: {}", outcome.stderr);
        let made_anew = changes(&world).len();
        assert_eq!(made_anew, if *end == "ROLLBACK_COMPLETE" { 3 } else { 0 }, "{status}");
        expect_whole(&world, status);
    }
}

#[test]
fn an_operation_in_progress_is_followed_to_its_end() {
    follow_all(&UNDER_WAY[..4]);
}

#[test]
fn a_stack_that_is_rolling_back_is_followed_to_its_end() {
    follow_all(&UNDER_WAY[4..]);
}

#[test]
fn an_operation_in_progress_may_end_in_a_stuck_stack() {
    let world = whole();
    for (stack, status, end) in [
        (POOL, "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"),
        (CONTROL_PLANE, "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"),
        (POOL, "DELETE_IN_PROGRESS", "DELETE_FAILED"),
    ] {
        let outcome = follow(&world, stack, status, end).expect_code(1);
        outcome.expect_stderr(&format!("stack {stack} is in {end}"));
        assert_eq!(changes(&world), [], "{status}");
        world.control(json!({"force_status": {stack: "UPDATE_COMPLETE"}}));
        expect_whole(&world, status);
    }
    follow(&world, CONTROL_PLANE, "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE").expect_code(0);
    expect_whole(&world, CONTROL_PLANE);
}

#[test]
fn a_stuck_stack_is_not_changed_and_the_next_step_is_named() {
    let world = whole();
    for stack in [POOL, CONTROL_PLANE] {
        for (status, help) in STUCK {
            let outcome = up_from(&world, stack, status).expect_code(1);
            outcome.expect_stderr(&format!("stack {stack} is in {status}")).expect_stderr(help);
            assert_eq!(changes(&world), [], "{status}");
            world.run(["status"]).expect_code(3).expect_stdout(status);
            world.control(json!({"force_status": {stack: "UPDATE_COMPLETE"}}));
            expect_whole(&world, status);
        }
    }
}

#[test]
fn rollback_fixes_a_failed_rollback() {
    let world = whole();
    world.control(json!({
        "force_status": {POOL: "UPDATE_ROLLBACK_FAILED"},
        "fail_rollback": {format!("{POOL}/Nodes"): "the group is busy"},
    }));
    world.up([]).expect_code(1).expect_stderr("`infra rollback`");
    world.control(json!({}));
    world.run(["rollback", "--yes"]).expect_code(0);
    assert_eq!(world.aws().stack_status(POOL).as_deref(), Some("UPDATE_ROLLBACK_COMPLETE"));
    world.up([]).expect_code(0);
    expect_whole(&world, "after a rollback");
}

/// Not forced, so that what the stack held is gone as well.
#[test]
fn a_deleted_stack_is_created_again() {
    let world = whole();
    for status in DELETION {
        let slow = status == "DELETE_IN_PROGRESS";
        world.control(if slow { json!({"hold": [POOL]}) } else { json!({}) });
        let aws = world.aws();
        let form = [("Action", "DeleteStack"), ("Version", "2010-05-15"), ("StackName", POOL)];
        aws.post("cloudformation", &aws.region, &form);
        let wanted = slow.then_some(status);
        wait_until("the stack is being deleted, or gone", || aws.stack_status(POOL).as_deref() == wanted);
        world.proxy.clear();
        let mut running = world.up_invocation([]).spawn();
        if slow {
            running.wait_for_stderr("following it");
            world.control(json!({}));
        }
        let outcome = running.wait().expect_code(0);
        assert_eq!(outcome.stderr.contains("following it"), slow, "{}", outcome.stderr);
        assert_eq!(changes(&world).len(), 2, "{:?}", changes(&world));
        world.control(json!({}));
        expect_whole(&world, status);
    }
}
