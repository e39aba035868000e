//! Machines that do not start, or start and never signal: how long a run waits for them, what it reports, what it keeps.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::wait_until;
use crate::support::world::World;

const NO_CAPACITY: &str = "We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-west-2a). \
                           Launching EC2 instance failed.";
const NO_SPOT: &str =
    "There is no Spot capacity available that matches your request. Launching EC2 instance failed.";
/// AWS retries by itself, and usually that helps.
const PASSING: &str = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: \
                       Server.InternalError: Internal error on launch";
const NO_KEY: &str = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: \
                      Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state";
/// Far longer than a test waits.
const SIGNAL_TIMEOUT: u32 = 500;
const CONSOLE: &str = "Booting\n[   31.2] systemd[1]: Started kubelet.service.\n[   44.0] infra: mounting the file system\n\
                       [  104.3] mount.nfs4: Connection timed out\nip-10-0-0-9 login:\n";

/// A run that ends long before CloudFormation would have given up.
fn quickly(run: impl FnOnce()) {
    let start = Instant::now();
    run();
    assert!(start.elapsed() < Duration::from_secs(u64::from(SIGNAL_TIMEOUT) / 2), "{:?}", start.elapsed());
}

#[test]
fn a_new_pool_without_capacity_is_given_up_after_three_attempts() {
    let world = World::of_golden("minimal");
    world.control(json!({"fail_launch": {"Nodes": NO_CAPACITY}, "launch_interval": 2.5, "signal_timeout": SIGNAL_TIMEOUT}));
    quickly(|| {
        let mut running = world.up_invocation([]).spawn();
        // The first attempt is reported before the next ones.
        running.wait_for_stderr(&format!(
            "minimal-pool-cpu: Nodes could not start a machine (once): {NO_CAPACITY}"
        ));
        assert_eq!(world.aws().stack_status("minimal-pool-cpu").as_deref(), Some("CREATE_IN_PROGRESS"));
        let outcome = running
            .wait()
            .expect_code(6)
            .expect_stderr(&format!(
                "error: stack minimal-pool-cpu failed (DELETE_COMPLETE): pool cpu, 1 × m5.large in us-west-2a (Nodes): {NO_CAPACITY}"
            ))
            .expect_stderr("add instanceTypes or availabilityZones to the pool");
        let mut told =
            outcome.stderr.lines().filter_map(|line| line.split_once(" times): ")?.0.rsplit('(').next());
        let attempts: usize = told.next_back().unwrap().parse().unwrap();
        assert!(attempts >= 3, "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("cancelled"), "{}", outcome.stderr);
    });
    assert_eq!(world.aws().stack_status("minimal-pool-cpu"), None, "nothing of it is left");
    assert_eq!(world.aws().stack_status("minimal-control-plane").as_deref(), Some("CREATE_COMPLETE"));
    world.control(json!({}));
    world.up([]).expect_code(0);
}

#[test]
fn an_update_without_capacity_is_rolled_back() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("m5.large", "m5.large, rootVolumeGiB: 150"));
    world.control(json!({"fail_launch": {"Nodes": NO_CAPACITY}, "signal_timeout": SIGNAL_TIMEOUT}));
    quickly(|| {
        let outcome = world
            .up(["--yes"])
            .expect_code(6)
            .expect_stderr("stack minimal-pool-cpu failed (UPDATE_ROLLBACK_COMPLETE): pool cpu, 1 × m5.large")
            .expect_stderr(NO_CAPACITY);
        assert!(!outcome.stderr.contains("cancelled"), "{}", outcome.stderr);
    });
    world.control(json!({}));
    world.up(["--yes"]).expect_code(0);
}

#[test]
fn a_spot_pool_without_capacity_continues_in_aws() {
    let world = World::of_golden("minimal");
    world.make_zone("example.com", false);
    world.workspace.edit(|text| text.replace("m5.large", "m5.large, spot: true"));
    world.control(json!({"fail_launch": {"Nodes": NO_SPOT}, "signal_timeout": SIGNAL_TIMEOUT}));
    quickly(|| {
        world
            .up([])
            .expect_code(5)
            // The control plane is done, and so is its name.
            .expect_stderr("record minimal.example.com points at")
            .expect_stderr("there is no spot capacity for pool cpu")
            .expect_stderr("minimal-pool-cpu continues in AWS")
            .expect_stderr("run the same command again");
    });
    assert_eq!(world.aws().stack_status("minimal-pool-cpu").as_deref(), Some("CREATE_IN_PROGRESS"));
    // The next run reports what failed, does not count it, and follows the stack until there is capacity.
    world.control(
        json!({"fail_launch": {"Nodes": NO_SPOT}, "signal_timeout": SIGNAL_TIMEOUT, "launch_interval": 5}),
    );
    let mut running = world.up_invocation([]).spawn();
    running.wait_for_stderr("Nodes could not start a machine");
    world.control(json!({}));
    running.wait().expect_code(0).expect_stderr("the cluster is ready");
    assert_eq!(world.aws().stack_status("minimal-pool-cpu").as_deref(), Some("CREATE_COMPLETE"));
}

#[test]
fn a_spot_pool_that_lacks_more_than_capacity_is_given_up() {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| text.replace("m5.large", "m5.large, spot: true"));
    let too_many = "Max spot instance count exceeded. Launching EC2 instance failed.";
    world.control(json!({"fail_launch": {"Nodes": too_many}, "signal_timeout": SIGNAL_TIMEOUT}));
    quickly(|| {
        let outcome = world
            .up([])
            .expect_code(6)
            .expect_stderr("stack minimal-pool-cpu failed (DELETE_COMPLETE): pool cpu, 1 × m5.large spot")
            .expect_stderr("raise the quota L-34B43A08");
        assert!(!outcome.stderr.contains("no spot capacity"), "{}", outcome.stderr);
    });
}

#[test]
fn machines_that_cannot_open_their_disks_are_given_up() {
    let world = World::of_golden("minimal");
    world.control(json!({"fail_launch": {"Nodes": NO_KEY}, "signal_timeout": SIGNAL_TIMEOUT}));
    quickly(|| {
        world
            .up([])
            .expect_code(6)
            .expect_stderr(&format!("Nodes): {NO_KEY}"))
            .expect_stderr("machines cannot use the key of their disks");
    });
}

/// CloudFormation waits for as many signals as there must be machines at least.
fn world_without_signals(more: &str) -> World {
    let world = World::of_golden("minimal");
    let pool = format!("m5.large, minCount: 0, count: 2, maxCount: 4{more}");
    world.workspace.edit(|text| text.replace("m5.large", &pool));
    world
}

#[test]
fn up_waits_for_machines_after_the_stack_is_complete() {
    let world = world_without_signals("");
    world.control(json!({"fail_launch": {"Nodes": NO_CAPACITY}, "launch_interval": 1}));
    quickly(|| {
        world
            .up([])
            .expect_code(1)
            .expect_stderr("minimal-pool-cpu: Nodes could not start a machine (")
            .expect_stderr("pool cpu: 0 of 2 nodes are Ready")
            .expect_stderr(&format!(
                "error: stack minimal-pool-cpu is complete (CREATE_COMPLETE), but its machines do not start: \
                 pool cpu, 2 × m5.large in us-west-2a (Nodes): {NO_CAPACITY}"
            ))
            .expect_stderr("add instanceTypes or availabilityZones to the pool")
            .expect_stderr("run the same command again to resume");
    });
    assert_eq!(world.aws().stack_status("minimal-pool-cpu").as_deref(), Some("CREATE_COMPLETE"));
    // The next run reports what failed, does not count it, and follows the stack until there is capacity.
    world.control(json!({"fail_launch": {"Nodes": NO_CAPACITY}, "launch_interval": 5}));
    let mut running = world.up_invocation([]).spawn();
    running.wait_for_stderr("Nodes could not start a machine");
    world.control(json!({}));
    running.wait().expect_code(0).expect_stderr("the cluster is ready");
}

#[test]
fn a_raised_count_without_capacity_is_reported_and_spot_launches_continue_in_aws() {
    let world = world_without_signals(", rollout: manual, spot: true");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("count: 2", "count: 3"));
    world.control(json!({"fail_launch": {"Nodes": NO_SPOT}}));
    quickly(|| {
        world
            .up(["--yes"])
            .expect_code(5)
            .expect_stderr("pool cpu: 2 of 3 nodes are Ready")
            .expect_stderr("there is no spot capacity for pool cpu")
            .expect_stderr("minimal-pool-cpu continues in AWS");
    });
    assert_eq!(world.aws().stack_status("minimal-pool-cpu").as_deref(), Some("UPDATE_COMPLETE"));
}

#[test]
fn nodes_that_the_autoscaler_no_longer_wants_are_not_waited_for() {
    let world = world_without_signals("");
    world.control(json!({"fail_launch": {"Nodes": PASSING}}));
    let mut running = world.up_invocation([]).spawn();
    running.wait_for_stderr("pool cpu: 0 of 2 nodes are Ready");
    let post = |form: &[(&str, &str)]| world.aws().post("autoscaling", "us-west-2", form);
    let groups = post(&[("Action", "DescribeAutoScalingGroups"), ("Version", "2011-01-01")]);
    let named = groups.split("<AutoScalingGroupName>").skip(1);
    let name =
        named.filter_map(|rest| rest.split('<').next()).find(|name| name.contains("pool-cpu")).unwrap();
    post(&[
        ("Action", "SetDesiredCapacity"),
        ("Version", "2011-01-01"),
        ("AutoScalingGroupName", name),
        ("DesiredCapacity", "0"),
    ]);
    running.wait().expect_code(0).expect_stderr("the cluster is ready");
}

#[test]
fn launch_failures_that_may_pass_are_waited_for() {
    let world = World::of_golden("minimal");
    world.control(json!({"fail_launch": {"Nodes": PASSING}, "signal_timeout": SIGNAL_TIMEOUT}));
    let mut running = world.up_invocation([]).spawn();
    let told = "Nodes could not start a machine";
    running.wait_for_stderr(told);
    // Far more than three failed by the second report.
    wait_until("a second report", || running.stderr().matches(told).count() >= 2);
    world.control(json!({}));
    running.wait().expect_code(0).expect_stderr("the cluster is ready");
}

#[test]
fn a_pool_that_never_signals_shows_its_console_and_its_launches() {
    let world = World::of_golden("minimal");
    let mut silent =
        json!({"no_signal": ["Nodes"], "signal_timeout": SIGNAL_TIMEOUT, "console": {"*": CONSOLE}});
    let mut settings = silent.clone();
    settings["fail_launch"] = json!({"Nodes": PASSING});
    world.control(settings);
    let mut running = world.up_invocation([]).spawn();
    running.wait_for_stderr("Nodes could not start a machine");
    world.control(silent.clone());
    wait_until("the machine starts", || world.census()["instances"] >= 3);
    silent["signal_timeout"] = json!(0);
    world.control(silent);
    running
        .wait()
        .expect_code(6)
        .expect_stderr("stack minimal-pool-cpu failed (ROLLBACK_COMPLETE): pool cpu, 1 × m5.large in us-west-2a (Nodes): Received 0 SUCCESS")
        .expect_stderr("  group minimal-pool-cpu-")
        .expect_stderr(&format!("    {PASSING}"))
        .expect_stderr("  console of i-")
        .expect_stderr("    [  104.3] mount.nfs4: Connection timed out\n    ip-10-0-0-9 login:\n")
        .expect_stderr("  the last step it reported: mounting the file system")
        .expect_stderr("`infra logs NODE` shows where it stopped");
}

#[test]
fn machines_of_the_control_plane_that_never_signal_show_their_consoles() {
    for (group, description) in [
        ("EtcdMember0", "etcd member 0, t3.medium in us-west-2a"),
        ("Controllers", "controllers, 1 × t3.medium in us-west-2a"),
    ] {
        let world = World::of_golden("minimal");
        world.control(json!({"no_signal": [group], "signal_timeout": 2, "console": {"*": CONSOLE}}));
        world
            .up([])
            .expect_code(6)
            .expect_stderr(&format!(
                "stack minimal-control-plane failed (ROLLBACK_COMPLETE): {description} ({group}): Received 0"
            ))
            .expect_stderr("    [  104.3] mount.nfs4: Connection timed out")
            .expect_stderr("  the last step it reported: mounting the file system")
            .expect_stderr("minimal-pool-cpu: skipped, because minimal-control-plane failed");
        assert_eq!(world.aws().stack_status("minimal-pool-cpu"), None);
    }
}

#[test]
fn a_failed_pool_does_not_stop_the_others() {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| {
        format!("{text}- {{name: more, instanceType: m5.xlarge}}\n- {{name: gpu, instanceType: g5.xlarge}}\n")
    });
    world.api.gpus("gpu", 1);
    let too_many = "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the \
                    specified instance type belongs to.";
    world.control(json!({
        "fail_launch": {"minimal-pool-cpu/Nodes": NO_CAPACITY, "minimal-pool-gpu/Nodes": too_many},
        "signal_timeout": SIGNAL_TIMEOUT,
    }));
    let outcome = world
        .up([])
        .expect_code(6)
        .expect_stderr("stack minimal-pool-cpu failed")
        .expect_stderr("stack minimal-pool-gpu failed")
        // What to do about the one, and about the other.
        .expect_stderr("add instanceTypes or availabilityZones to the pool")
        .expect_stderr("raise the quota L-DB2E81BA");
    assert!(!outcome.stderr.contains("skipped"), "{}", outcome.stderr);
    for stack in ["network", "control-plane", "pool-more"] {
        let status = world.aws().stack_status(&format!("minimal-{stack}"));
        assert_eq!(status.as_deref(), Some("CREATE_COMPLETE"), "{stack}");
    }
    world.control(json!({}));
    world.up([]).expect_code(0).expect_stderr("minimal-pool-more: unchanged");
}
