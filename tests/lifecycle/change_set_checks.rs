//! Change sets that CloudFormation's own checks refuse: the reasons are read before they are deleted with the change set, and the next
//! run does what was asked for.

use serde_json::{Value, json};

use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

const NETWORK: &str = "minimal-network";
const POOL: &str = "minimal-pool-cpu";
const READ_EVENTS: &str = "cloudformation:DescribeEvents";
/// All that CloudFormation says of the change set itself.
const STATUS_REASON: &str =
    "The following hook(s)/validation failed: [AWS::EarlyValidation::PropertyValidation]";

fn bad_range() -> Value {
    json!({"Vpc": [["PROPERTY_VALIDATION", "CidrBlock", "10.0.0.0/33 is no range of addresses."]]})
}

/// A whole cluster whose pool is to change.
fn changed_world() -> World {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("m5.large", "m5.large, rootVolumeGiB: 150"));
    world.proxy.clear();
    world
}

/// The calls of the last run that matter here, in order.
fn calls(world: &World, operations: &[&str]) -> Vec<String> {
    let calls = world.proxy.calls().into_iter().map(|call| call.operation);
    calls.filter(|operation| operations.iter().any(|name| operation.ends_with(&format!(":{name}")))).collect()
}

/// With the cause fixed, a run does all that is left, and the one after it nothing.
#[track_caller]
fn expect_whole_after_the_fix(world: &World) {
    world.control(json!({}));
    world.up(["--yes"]).expect_code(0);
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
    world.run(["status"]).expect_code(0);
}

#[test]
fn a_new_stack_that_fails_a_check_is_explained_before_it_is_deleted() {
    let world = World::of_golden("minimal");
    let resources = || {
        let mut census = world.census();
        census.remove("objects");
        census
    };
    let before = resources();
    world.control(json!({"fail_checks": bad_range()}));
    let outcome = world.up([]).expect_code(1);
    outcome
        .expect_stderr(&format!(
            "error: CloudFormation refuses the change of {NETWORK}: VPC 10.0.0.0/16 (Vpc): 10.0.0.0/33 is no range of addresses \
             at /Resources/Vpc/Properties/CidrBlock (PROPERTY_VALIDATION)\n"
        ))
        .expect_stderr("check templates and snippets that you changed with `infra validate`")
        .expect_stderr(&format!("{NETWORK} was not changed; run the same command again after the fix"));
    let expected = ["CreateChangeSet", "DescribeEvents", "DeleteStack"];
    assert_eq!(calls(&world, &expected), expected.map(|name| format!("cloudformation:{name}")));
    assert_eq!(world.aws().stack_status(NETWORK), None);
    assert_eq!(resources(), before);
    expect_whole_after_the_fix(&world);
}

#[test]
fn an_update_that_fails_a_check_is_explained_by_up_and_by_plan() {
    let world = changed_world();
    let taken = "Resource of type 'AWS::EC2::LaunchTemplate' with identifier 'cpu' already exists.";
    world.control(json!({"fail_checks": {"NodeLaunchTemplate": [["NAME_CONFLICT_VALIDATION", "", taken]]}}));
    let reason = format!(
        "CloudFormation refuses the change of {POOL}: how machines of pool cpu are started (NodeLaunchTemplate): {} \
         (NAME_CONFLICT_VALIDATION)\n",
        taken.trim_end_matches('.')
    );
    let outcome = world.up(["--yes"]).expect_code(1);
    outcome
        .expect_stderr(&reason)
        .expect_stderr("something outside of the stack has this name")
        .expect_stderr(&format!("{POOL} was not changed"));
    let expected = ["DescribeEvents", "DeleteChangeSet"];
    assert_eq!(calls(&world, &expected), expected.map(|name| format!("cloudformation:{name}")));

    world.proxy.clear();
    world.run(["plan"]).expect_code(1).expect_stderr(&reason);
    assert_eq!(calls(&world, &expected), expected.map(|name| format!("cloudformation:{name}")));
    assert_eq!(world.aws().stack_status(POOL).as_deref(), Some("CREATE_COMPLETE"));
    expect_whole_after_the_fix(&world);
}

#[test]
fn every_failed_check_is_named_with_what_to_do() {
    let world = World::of_golden("minimal");
    world.control(json!({"fail_checks": {
        "Vpc": [["PROPERTY_VALIDATION", "CidrBlock", "no range"], ["PROPERTY_VALIDATION", "Tags/0", "no key"]],
        format!("{NETWORK}/PublicSubnet0"): [["Acme::Ec2::Guard", "", "public subnets need an owner"]],
    }}));
    world.proxy.fault(READ_EVENTS, Fault::Throttled, Times::First(2));
    let outcome = world.up([]).expect_code(1);
    outcome
        .expect_stderr(&format!("CloudFormation refuses the change of {NETWORK}: 3 failed checks\n"))
        .expect_stderr(
            "\n       public subnet in us-west-2a (PublicSubnet0): public subnets need an owner (Hook Acme::Ec2::Guard)\n",
        )
        .expect_stderr(
            "\n       VPC 10.0.0.0/16 (Vpc): no range at /Resources/Vpc/Properties/CidrBlock (PROPERTY_VALIDATION)\n",
        )
        .expect_stderr(
            "\n       VPC 10.0.0.0/16 (Vpc): no key at /Resources/Vpc/Properties/Tags/0 (PROPERTY_VALIDATION)\n",
        )
        .expect_stderr("ask whoever maintains the Hook")
        .expect_stderr("CloudFormation rejects a property of the template");
    let text = world.up([]).expect_code(1).stderr;
    assert_eq!(
        text.matches("CloudFormation rejects a property").count(),
        1,
        "each advice is given once:\n{text}"
    );
    expect_whole_after_the_fix(&world);
}

#[test]
fn without_the_permission_the_first_reason_stays_and_the_permission_is_named() {
    for (world, creates) in [(World::of_golden("minimal"), true), (changed_world(), false)] {
        let checks = if creates {
            bad_range()
        } else {
            json!({"NodeLaunchTemplate": [["PROPERTY_VALIDATION", "Tags", "no list"]]})
        };
        world.control(json!({"fail_checks": checks}));
        world.proxy.fault(READ_EVENTS, Fault::AccessDenied, Times::Always);
        let stack = if creates { NETWORK } else { POOL };
        world
            .up(["--yes"])
            .expect_code(1)
            .expect_stderr(&format!("CloudFormation refuses the change of {stack}: {STATUS_REASON}"))
            .expect_stderr(&format!("which check refused {stack} could not be read: {READ_EVENTS}: "))
            .expect_stderr(&format!("allow {READ_EVENTS}, which `infra policy` lists"))
            .expect_stderr(&format!("{stack} was not changed"));
        let expected = (!creates).then_some("CREATE_COMPLETE");
        assert_eq!(world.aws().stack_status(stack).as_deref(), expected);
        // Allowed now, but not fixed.
        world.proxy.heal();
        world.up(["--yes"]).expect_code(1).expect_stderr("(PROPERTY_VALIDATION)");
        expect_whole_after_the_fix(&world);
    }
}

#[test]
fn events_that_come_after_the_status_are_waited_for() {
    let world = World::of_golden("minimal");
    world.control(json!({"fail_checks": bad_range(), "checks_told_after": 2}));
    world.up([]).expect_code(1).expect_stderr("(PROPERTY_VALIDATION)");
    assert_eq!(world.proxy.count(READ_EVENTS), 3);

    // Events that never come end the wait too.
    world.control(json!({"fail_checks": bad_range(), "checks_told_after": 1000}));
    world.proxy.clear();
    world.up([]).expect_code(1).expect_stderr(STATUS_REASON);
    assert_eq!(world.proxy.count(READ_EVENTS), 4);
    expect_whole_after_the_fix(&world);
}

/// The reason matters more than that the change set could not be deleted.
#[test]
fn a_reason_is_not_lost_with_the_permission_to_delete() {
    let world = World::of_golden("minimal");
    world.control(json!({"fail_checks": bad_range()}));
    world.proxy.fault("cloudformation:DeleteStack", Fault::AccessDenied, Times::Always);
    world.up([]).expect_code(1).expect_stderr("(PROPERTY_VALIDATION)").expect_stderr(&format!(
        "the refused change set of {NETWORK} could not be deleted: cloudformation:DeleteStack"
    ));
    assert_eq!(world.aws().stack_status(NETWORK).as_deref(), Some("REVIEW_IN_PROGRESS"));
    world.proxy.heal();
    expect_whole_after_the_fix(&world);
}
