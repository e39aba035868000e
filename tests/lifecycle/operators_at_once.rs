//! Two people at work on one cluster at the same time: nothing is broken, and each is told what is true.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::census::Census;
use crate::support::fault_proxy::{CallOutcome, Fault, FaultProxy, Times};
use crate::support::wait_until;
use crate::support::workspace::{Invocation, Running, Workspace};
use crate::support::world::World;

const TAKEN_AWAY: &str = "was deleted by another process meanwhile";
const GOING: &str =
    "is being deleted: another user's `infra destroy` is in progress, and nothing was changed";

/// Nobody answers until all is healed; a client gives up after a minute and a half.
const SILENCE: Fault = Fault::Hang(Duration::from_secs(200));

/// A command in another directory of the same world.
fn infra<'a>(
    world: &World,
    workspace: &Workspace,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Invocation {
    workspace.infra(arguments).endpoint(&world.proxy.url()).kubernetes(&world.api)
}

/// A cluster with a file system, and what there is before it.
fn world() -> (World, Census) {
    let world = World::of_golden("paddle-tutorial");
    let before = world.census();
    (world, before)
}

fn stack(world: &World, part: &str) -> String {
    format!("{}-{part}", world.cluster())
}

/// Returns as soon as all of these stacks have a status that begins so.
#[track_caller]
fn wait_for(world: &World, parts: &[&str], status: &str) {
    wait_until(&format!("{parts:?} are in {status}"), || {
        let stacks = world.stacks();
        let is_in = |part: &&str| {
            stacks.get(&stack(world, part)).is_some_and(|found| found.starts_with(status))
        };
        parts.iter().all(is_in)
    });
}

/// Returns as soon as there is no such stack.
#[track_caller]
fn wait_until_gone(world: &World, part: &str) {
    wait_until(&format!("{part} is gone"), || !world.stacks().contains_key(&stack(world, part)));
}

/// Whatever is done to these stacks waits until they are no longer held.
fn hold(world: &World, parts: &[&str]) {
    let names: Vec<String> = parts.iter().map(|part| stack(world, part)).collect();
    world.control(json!({"hold": names}));
}

fn destroy(world: &World) -> Running {
    world.infra(["destroy", "--yes"]).spawn()
}

/// Whatever two people left: one of them can take all of it away, and bring a whole cluster up.
#[track_caller]
fn expect_good_end(world: &World, before: &Census) {
    world.control(json!({}));
    world.proxy.heal();
    world.run(["destroy", "--delete-data", "--confirm", &world.cluster()]).expect_code(0);
    assert_eq!(world.census(), *before);
    world.up([]).expect_code(0);
    world.run(["status"]).expect_code(0);
}

/// Two runs at the same time, from two directories: one cluster, and nobody is told that something is wrong.
fn run_twice(world: &World) {
    let other = world.workspace.elsewhere(true);
    let place = format!("s3://{}/clusters", world.bucket());
    let arguments = ["up", "--yes", "--s3-uri", &place];
    let runs = [&world.workspace, &other].map(|workspace| infra(world, workspace, arguments).spawn());
    for outcome in runs.map(|running| running.wait()) {
        outcome.expect_code(0);
    }
    let status = world.run(["status", "--output", "json"]).expect_code(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["healthy"], true);
}

#[test]
fn two_runs_at_once_make_one_cluster() {
    let alone = World::of_golden("paddle-tutorial");
    alone.up([]).expect_code(0);
    // Both begin before either has made anything, at moments of their own.
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

/// A stack that is only planned looks like something left behind, and is more than that by the time a second run comes to it.
#[test]
fn what_another_run_plans_is_not_removed_under_its_feet() {
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

/// What the first run has uploaded looks like something left behind.
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

/// A destroy that begins when a run has come so far.
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
fn a_destroy_while_the_network_is_made() {
    destroy_during_creation(&["network"]);
}

#[test]
fn a_destroy_while_the_control_plane_is_made() {
    destroy_during_creation(&["control-plane", "storage"]);
}

#[test]
fn a_destroy_while_pools_are_made() {
    destroy_during_creation(&["pool-workers"]);
}

/// Stacks that are created meanwhile keep what they need, and are reported.
#[test]
fn a_run_that_overtakes_a_destroy_is_named_by_it() {
    let (world, before) = world();
    hold(&world, &["network"]);
    let up = world.up_invocation([]).spawn();
    wait_for(&world, &["network"], "CREATE_IN_PROGRESS");
    // This one has seen nothing but the network, and looks for more before it touches that.
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
fn a_run_during_a_destroy_is_refused_and_changes_nothing() {
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

/// A whole cluster whose destroy has taken the pool away, and comes to its next stack when this call is answered again.
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
fn a_run_between_two_steps_of_a_destroy_is_told_what_went() {
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
fn a_run_that_protects_a_stack_again_keeps_it() {
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
fn a_destroy_waits_for_an_update_and_takes_its_result_away() {
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
fn an_update_whose_stack_goes_is_told_so() {
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

/// Two destroys of a whole cluster, the second when the first has come to a stack; both end well.
fn destroy_twice(first: &[&str], second: &[&str], moment: Option<&str>) {
    let (world, before) = world();
    world.up([]).expect_code(0);
    world.control(json!({"delay": 0.3}));
    let name = world.cluster();
    let arguments = |with: &[&str]| -> Vec<String> {
        let all = ["destroy"].iter().chain(with).map(|word| word.replace("NAME", &name));
        all.collect()
    };
    let (first, second) = (arguments(first), arguments(second));
    let keeps_files = |arguments: &[String]| !arguments.contains(&"--delete-data".to_owned());
    if let Some(part) = moment {
        hold(&world, &[part]);
    }
    let running = infra(&world, &world.workspace, first.iter().map(String::as_str)).spawn();
    if let Some(part) = moment {
        wait_for(&world, &[part], "DELETE_IN_PROGRESS");
    }
    let (other, way) = (world.workspace.elsewhere(true), FaultProxy::start(&world.proxy.url()));
    let late =
        other.infra(second.iter().map(String::as_str)).endpoint(&way.url()).kubernetes(&world.api).spawn();
    way.wait_for("cloudformation:DescribeStacks", 1);
    world.control(json!({}));
    running.wait().expect_code(0).expect_stderr("is deleted");
    late.wait().expect_code(0).expect_stderr("is deleted");
    if !keeps_files(&first) || !keeps_files(&second) {
        assert_eq!(world.census(), before);
    } else {
        assert_eq!(world.census()["file systems"], 1);
        assert!(world.stacks().is_empty());
    }
    expect_good_end(&world, &before);
}

const PLAIN: &[&str] = &["--yes"];
const WITH_DATA: &[&str] = &["--delete-data", "--confirm", "NAME"];

#[test]
fn two_destroys_at_once() {
    destroy_twice(PLAIN, PLAIN, None);
}

#[test]
fn two_destroys_with_data_at_once() {
    destroy_twice(WITH_DATA, WITH_DATA, None);
}

#[test]
fn two_destroys_of_different_minds_at_once() {
    destroy_twice(PLAIN, WITH_DATA, None);
}

#[test]
fn a_destroy_joins_another_one() {
    destroy_twice(PLAIN, PLAIN, Some("control-plane"));
}

#[test]
fn a_destroy_joins_another_one_at_its_last_stack() {
    destroy_twice(WITH_DATA, WITH_DATA, Some("network"));
}
