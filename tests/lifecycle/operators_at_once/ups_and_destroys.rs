//! `infra up` and `infra destroy` at the same time.

use serde_json::json;

use super::{SILENCE, destroy, expect_good_end, hold, stack, wait_for, wait_until_gone, world};
use crate::public_name::records;
use crate::support::census::Census;
use crate::support::fault_proxy::{CallOutcome, FaultProxy, Times};
use crate::support::invocation::Running;
use crate::support::world::World;

const TAKEN_AWAY: &str = "was deleted by another process meanwhile";
const GOING: &str =
    "is being deleted: another user's `infra destroy` is in progress, and nothing was changed";

/// The uploads of the first run look like leftovers.
#[test]
fn a_destroy_before_the_first_stack_of_a_run() {
    let (world, before) = world();
    world.proxy.fault("cloudformation:CreateChangeSet", SILENCE, Times::Always);
    let up = world.up_invocation([]).spawn();
    world.proxy.wait_for("cloudformation:CreateChangeSet", 1);
    assert!(world.census()["objects"] > 0);
    let nothing = destroy(&world).wait().expect_code(0);
    nothing
        .expect_stderr("is left to delete")
        .expect_stderr("`--s3-uri s3://BUCKET/PREFIX` deletes them too");
    let place = format!("s3://{}/clusters", world.bucket());
    world.run(["destroy", "--yes", "--s3-uri", &place]).expect_code(0).expect_stderr("is deleted");
    assert_eq!(world.census(), before, "what it said was true then");
    let asked = world.proxy.calls().into_iter().filter(|call| call.operation.ends_with("CreateChangeSet"));
    assert!(asked.into_iter().all(|call| call.outcome == CallOutcome::Faulted), "the other one has gone on");

    world.proxy.heal();
    up.wait().expect_code(0).expect_stderr("machine configurations meanwhile");
    let (alone, _) = self::world();
    alone.up([]).expect_code(0);
    assert_eq!(world.census(), alone.census());
    expect_good_end(&world, &before);
}

/// A destroy that begins when a run has reached these stacks.
fn destroy_during_creation(parts: &[&str]) {
    let (world, before) = world();
    hold(&world, parts);
    let up = world.up_invocation([]).spawn();
    wait_for(&world, parts, "CREATE_IN_PROGRESS");
    let destroy = destroy(&world);
    for (number, part) in parts.iter().enumerate() {
        wait_for(&world, &[part], "DELETE_IN_PROGRESS");
        hold(&world, &parts[number + 1..]);
    }
    let up = up.wait().expect_code(1).expect_stderr(TAKEN_AWAY);
    assert!(up.stderr.contains("agree with that user"), "{}", up.stderr);
    destroy.wait().expect_code(0).expect_stderr("is deleted");
    expect_good_end(&world, &before);
}

#[test]
fn a_destroy_while_the_network_is_created() {
    destroy_during_creation(&["network"]);
}

#[test]
fn a_destroy_while_the_control_plane_is_created() {
    destroy_during_creation(&["control-plane", "storage"]);
}

#[test]
fn a_destroy_while_pools_are_created() {
    destroy_during_creation(&["pool-workers"]);
}

/// Stacks that are created meanwhile keep what they need, and are reported.
#[test]
fn a_destroy_names_the_stacks_that_an_up_created_meanwhile() {
    let (world, before) = world();
    hold(&world, &["network"]);
    let up = world.up_invocation([]).spawn();
    wait_for(&world, &["network"], "CREATE_IN_PROGRESS");
    // This destroy has found the network only, and reads the stacks again before it deletes that.
    let way = FaultProxy::start(&world.proxy.url());
    way.fault("cloudformation:DescribeStacks", SILENCE, Times::From(2, usize::MAX / 2));
    let destroy =
        world.workspace.infra(["destroy", "--yes"]).endpoint(&way.url()).kubernetes(&world.api).spawn();
    way.wait_for("cloudformation:DescribeStacks", 2);
    world.control(json!({}));
    up.wait().expect_code(0);
    way.heal();
    let outcome = destroy.wait().expect_code(7);
    let created = format!("stack {} was created meanwhile", stack(&world, "control-plane"));
    outcome.expect_stderr(&created).expect_stderr("wait until the other `infra up` has ended");
    assert_eq!(way.count("cloudformation:DeleteStack"), 0);
    world.run(["status"]).expect_code(0);
    expect_good_end(&world, &before);
}

/// A run that begins while a destroy is at these stacks.
#[test]
fn an_up_during_a_destroy_is_refused_and_changes_nothing() {
    let (world, before) = world();
    world.up([]).expect_code(0);
    let parts = ["pool-workers", "control-plane", "network"];
    hold(&world, &parts);
    let destroy = destroy(&world);
    for (number, part) in parts.into_iter().enumerate() {
        wait_for(&world, &[part], "DELETE_IN_PROGRESS");
        let way = FaultProxy::start(&world.proxy.url());
        let place = format!("s3://{}/clusters", world.bucket());
        let up = world
            .workspace
            .infra(["up", "--yes", "--s3-uri", &place])
            .endpoint(&way.url())
            .kubernetes(&world.api);
        up.run().expect_code(1).expect_stderr(GOING).expect_stderr("then run `infra up` again");
        let changing = [
            "CreateChangeSet",
            "ExecuteChangeSet",
            "DeleteStack",
            "PutObject",
            "UpdateTerminationProtection",
        ];
        for call in way.operations() {
            assert!(changing.iter().all(|name| !call.ends_with(name)), "{call}");
        }
        hold(&world, &parts[number + 1..]);
    }
    destroy.wait().expect_code(0).expect_stderr("is deleted");
    expect_good_end(&world, &before);
}

/// A whole cluster whose destroy has deleted the pool, and reaches its next stack when this call is answered again.
fn between_two_steps(call: &str, first: usize) -> (World, Census, Running, FaultProxy) {
    let (world, before) = world();
    world.up([]).expect_code(0);
    let way = FaultProxy::start(&world.proxy.url());
    way.fault(call, SILENCE, Times::From(first, usize::MAX / 2));
    let destroy =
        world.workspace.infra(["destroy", "--yes"]).endpoint(&way.url()).kubernetes(&world.api).spawn();
    way.wait_for("cloudformation:DeleteStack", 1);
    wait_until_gone(&world, "pool-workers");
    way.wait_for(call, first);
    (world, before, destroy, way)
}

/// In the moment between two of its stacks nothing shows that a destroy is under way.
#[test]
fn an_up_between_two_steps_of_a_destroy_reports_the_deleted_stack() {
    let (world, before, destroy, way) = between_two_steps("cloudformation:UpdateTerminationProtection", 1);
    hold(&world, &["pool-workers"]);
    let up = world.up_invocation(["--yes"]).spawn();
    wait_for(&world, &["pool-workers"], "CREATE_IN_PROGRESS");
    way.heal();
    wait_until_gone(&world, "control-plane");
    world.control(json!({}));
    up.wait().expect_code(1).expect_stderr(&format!("{} {TAKEN_AWAY}", stack(&world, "control-plane")));
    let outcome = destroy.wait().expect_code(7);
    outcome.expect_stderr(&format!("stack {} was created meanwhile", stack(&world, "pool-workers")));
    expect_good_end(&world, &before);
}

#[test]
fn a_stack_that_an_up_protects_again_is_kept() {
    let (world, before, destroy, way) = between_two_steps("cloudformation:DeleteStack", 2);
    world.up(["--yes"]).expect_code(0);
    way.heal();
    let outcome = destroy.wait().expect_code(1);
    outcome
        .expect_stderr("was protected again before it could be deleted")
        .expect_stderr("agree with that user");
    world.run(["status"]).expect_code(0);
    expect_good_end(&world, &before);
}

/// A whole cluster, and a change to its pool.
fn changed() -> (World, Census) {
    let (world, before) = world();
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("instanceType: m", "rootVolumeGiB: 150, instanceType: m"));
    (world, before)
}

#[test]
fn a_destroy_waits_for_an_update_and_deletes_its_result() {
    let (world, before) = changed();
    hold(&world, &["pool-workers"]);
    let up = world.up_invocation(["--yes", "--wait", "stacks"]).spawn();
    wait_for(&world, &["pool-workers"], "UPDATE_IN_PROGRESS");
    let mut destroy = destroy(&world);
    destroy.wait_for_stderr("another operation is in progress; following it");
    world.control(json!({}));
    // Who sees the end of the update first is chance.
    let up = up.wait();
    assert!(up.code == 0 || up.stderr.contains(TAKEN_AWAY), "{}", up.stderr);
    destroy.wait().expect_code(0).expect_stderr("is deleted");
    expect_good_end(&world, &before);
}

#[test]
fn an_update_reports_that_its_stack_was_deleted() {
    let (world, before) = changed();
    let way = FaultProxy::start(&world.proxy.url());
    way.fault("cloudformation:ExecuteChangeSet", SILENCE, Times::Always);
    let up = world.workspace.infra(["up", "--yes"]).endpoint(&way.url()).kubernetes(&world.api).spawn();
    way.wait_for("cloudformation:ExecuteChangeSet", 1);
    let destroy = destroy(&world);
    wait_until_gone(&world, "pool-workers");
    way.heal();
    up.wait().expect_code(1).expect_stderr(&format!("{} {TAKEN_AWAY}", stack(&world, "pool-workers")));
    destroy.wait().expect_code(0).expect_stderr("is deleted");
    expect_good_end(&world, &before);
}

/// An `infra up` and an `infra destroy` that has read the cluster before it had a load balancer.
struct UnseenLoadBalancer {
    world: World,
    before: Census,
    zone: String,
    up: Running,
    way_of_up: FaultProxy,
    destroy: Running,
    way_of_destroy: FaultProxy,
}

impl UnseenLoadBalancer {
    /// `up` has created the control plane and makes this call, which is not answered; `destroy` is about to delete its first stack.
    fn when_up_calls(call: &str) -> Self {
        let (world, _) = world();
        // Nothing is created behind the control plane.
        world.workspace.edit(|text| {
            let (head, pools) = text.split_once("pools:\n").unwrap();
            let (_, tail) = pools.split_once('\n').unwrap();
            format!("{head}{tail}")
        });
        let zone = world.make_zone("example.com", false);
        let before = world.census();
        hold(&world, &["control-plane"]);
        let way_of_up = FaultProxy::start(&world.proxy.url());
        way_of_up.fault(call, SILENCE, Times::Always);
        let place = format!("s3://{}/clusters", world.bucket());
        let through = |way: &FaultProxy, arguments: &[&str]| {
            let invocation = world.workspace.infra(arguments.iter().copied()).endpoint(&way.url());
            invocation.kubernetes(&world.api).spawn()
        };
        let up = through(&way_of_up, &["up", "--s3-uri", &place]);
        wait_for(&world, &["control-plane"], "CREATE_IN_PROGRESS");
        let way_of_destroy = FaultProxy::start(&world.proxy.url());
        way_of_destroy.fault("cloudformation:DescribeStacks", SILENCE, Times::From(2, usize::MAX / 2));
        let destroy = through(&way_of_destroy, &["destroy", "--yes"]);
        way_of_destroy.wait_for("cloudformation:DescribeStacks", 2);
        world.control(json!({}));
        way_of_up.wait_for(call, 1);
        Self { world, before, zone, up, way_of_up, destroy, way_of_destroy }
    }
}

#[test]
fn a_record_that_an_up_creates_while_the_control_plane_is_deleted_is_deleted_again() {
    let case = UnseenLoadBalancer::when_up_calls("route53:ChangeResourceRecordSets");
    hold(&case.world, &["control-plane"]);
    case.way_of_destroy.heal();
    wait_for(&case.world, &["control-plane"], "DELETE_IN_PROGRESS");
    case.way_of_up.heal();
    let up = case.up.wait().expect_code(1).expect_stderr(TAKEN_AWAY);
    up.expect_stderr("deleted the record of paddle.example.com, since the cluster is being deleted");
    case.world.control(json!({}));
    case.destroy.wait().expect_code(0).expect_stderr("is deleted");
    assert_eq!(records(&case.world, &case.zone), [""; 0]);
    expect_good_end(&case.world, &case.before);
}

#[test]
fn a_record_that_an_up_created_since_the_cluster_was_read_is_deleted() {
    let mut case = UnseenLoadBalancer::when_up_calls("route53:GetChange");
    assert_eq!(records(&case.world, &case.zone).len(), 1);
    case.up.kill();
    case.way_of_destroy.heal();
    let destroy = case.destroy.wait().expect_code(0);
    destroy.expect_stderr("deleted the record of paddle.example.com").expect_stderr("is deleted");
    assert_eq!(records(&case.world, &case.zone), [""; 0]);
    expect_good_end(&case.world, &case.before);
}
