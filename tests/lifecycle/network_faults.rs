//! Every call of a run fails once with every fault of networks and AWS: the run survives it, or the next one completes the work.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::census::Census;
use crate::support::fault_proxy::{CallOutcome, Fault, Times};
use crate::support::outcome::Outcome;
use crate::support::permissions::{is_dispensable, permission_for};
use crate::support::reading::is_reading;
use crate::support::world::World;

/// Runs at the same time: they mostly sleep.
const WORKERS: usize = 8;

/// What happens to the first calls of an operation.
const FAULTS: [(Fault, Times); 4] = [
    (Fault::Throttled, Times::First(3)),
    (Fault::ServerError, Times::First(2)),
    (Fault::CutBeforeForwarding, Times::First(1)),
    (Fault::CutAfterForwarding, Times::First(1)),
];

/// A cluster in two availability zones with a file system and a public name. One that is not plain creates its bucket and a grant, so that
/// between the two every call is made that a run knows.
fn world(is_plain: bool) -> World {
    let world = World::of_golden("paddle-tutorial");
    world.workspace.edit(|text| text.replace("Zones: [us-west-2a]", "Zones: [us-west-2a, us-west-2b]"));
    world.make_zone("example.com", false);
    // Only its own account may read the policy of a key.
    let account = world.workspace.account().to_owned();
    world.workspace.edit(|text| text.replace(":111122223333:key", &format!(":{account}:key")));
    if !is_plain {
        let aws = world.aws();
        aws.send("s3", &aws.region, "DELETE", &format!("/{}", world.bucket()), "");
        world.workspace.edit(|text| format!("{text}encryptDisksWithKmsKey: true\n"));
    }
    world
}

fn up(world: &World) -> Outcome {
    world.up_invocation(["--create-bucket"]).time_limit(Duration::from_secs(300)).run()
}

/// What undisturbed runs call, each with whether a plain one does, and what they leave.
fn undisturbed() -> (BTreeMap<String, bool>, Census) {
    let worlds = [true, false].map(|is_plain| (is_plain, world(is_plain)));
    let mut operations = BTreeMap::new();
    for (is_plain, world) in &worlds {
        up(world).expect_code(0);
        operations.extend(world.proxy.operations().into_iter().map(|operation| (operation, *is_plain)));
    }
    let [plain, other] = worlds.map(|(_, world)| holdings(&world));
    assert_eq!(plain, other);
    (operations, plain)
}

/// All but the grants, of which only a cluster that is not plain has one.
fn holdings(world: &World) -> Census {
    let mut census = world.census();
    census.remove("grants");
    census
}

/// Tries each case in an account of its own, several at a time, and fails with all that went wrong.
fn try_all<T: Send + Debug>(cases: Vec<T>, attempt: impl Fn(&T) -> Result<(), String> + Sync) {
    let cases = Mutex::new(cases);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = { cases.lock().unwrap().pop() } {
                    if let Err(what) = attempt(&case) {
                        failures.lock().unwrap().push(format!("{case:?}: {what}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of them:\n{}", failures.len(), failures.join("\n\n"));
}

/// One of everything, and nothing else.
fn expect_whole(world: &World, whole: &Census) -> Result<(), String> {
    let found = holdings(world);
    let strange: Vec<_> = found.iter().filter(|(kind, count)| whole.get(*kind) != Some(count)).collect();
    if found == *whole { Ok(()) } else { Err(format!("left {strange:?}, usually {whole:?}")) }
}

#[test]
fn every_call_survives_every_fault() {
    let (operations, whole) = undisturbed();
    let large = World::of_golden("ha-gpu-efs");
    large.up([]).expect_code(0);
    for operation in large.proxy.operations() {
        assert!(operations.contains_key(&operation), "{operation} is not tried below");
    }
    let cases = operations.iter().flat_map(|operation| FAULTS.map(|fault| (operation, fault)));
    // The matrix loses the answers to changes.
    let cases = cases
        .filter(|((operation, _), (fault, _))| *fault != Fault::CutAfterForwarding || is_reading(operation));
    try_all(cases.collect(), |((operation, is_plain), (fault, times))| {
        let world = world(**is_plain);
        world.proxy.fault(operation, *fault, *times);
        let outcome = up(&world);
        if world.proxy.calls().iter().all(|call| call.outcome == CallOutcome::Passed) {
            return Err("it never happened".to_owned());
        }
        if outcome.code != 0 {
            return Err(format!("ended with {}:\n{}", outcome.code, outcome.stderr));
        }
        expect_whole(&world, &whole)
    });
}

/// `up` looks up no prices, so that the calls that do are tried here.
#[test]
fn looking_up_prices_survives_every_fault() {
    let undisturbed = World::of_golden("ha-gpu-efs");
    undisturbed.run(["lock"]).expect_code(0);
    let amounts = |world: &World| -> Vec<String> {
        let lock = world.workspace.read("infra.lock");
        lock.lines().filter(|line| line.ends_with('"')).map(str::to_owned).collect()
    };
    let whole = amounts(&undisturbed);
    assert!(whole.len() > 12, "{whole:?}");
    let operations = ["pricing:GetProducts", "ec2:DescribeSpotPriceHistory"];
    let cases = operations.iter().flat_map(|operation| FAULTS.map(|fault| (*operation, fault)));
    try_all(cases.collect(), |(operation, (fault, times))| {
        let world = World::of_golden("ha-gpu-efs");
        world.proxy.fault(operation, *fault, *times);
        let outcome = world.infra(["lock"]).time_limit(Duration::from_secs(300)).run();
        if world.proxy.calls().iter().all(|call| call.outcome == CallOutcome::Passed) {
            return Err("it never happened".to_owned());
        }
        if outcome.code != 0 || amounts(&world) != whole {
            return Err(format!("ended with {}:\n{}", outcome.code, outcome.stderr));
        }
        Ok(())
    });
}

#[test]
fn a_missing_permission_is_named_and_the_next_run_resumes() {
    let (operations, whole) = undisturbed();
    try_all(operations.into_iter().collect(), |(operation, is_plain)| {
        let world = world(*is_plain);
        world.proxy.fault(operation, Fault::AccessDenied, Times::Always);
        let outcome = up(&world);
        let goes_on = is_dispensable(operation);
        if outcome.code != i32::from(!goes_on) || !outcome.stderr.contains(permission_for(operation)) {
            return Err(format!("ended with {}:\n{}", outcome.code, outcome.stderr));
        }
        world.proxy.heal();
        let outcome = up(&world);
        if outcome.code != 0 {
            return Err(format!("ended with {} afterwards:\n{}", outcome.code, outcome.stderr));
        }
        expect_whole(&world, &whole)
    });
}

#[test]
fn expired_credentials_are_reported_as_such() {
    let (operations, _) = undisturbed();
    try_all(operations.into_iter().collect(), |(operation, is_plain)| {
        let world = world(*is_plain);
        world.proxy.fault(operation, Fault::ExpiredToken, Times::Always);
        let outcome = up(&world);
        if outcome.code == 4 && outcome.stderr.contains("renew them") {
            return Ok(());
        }
        Err(format!("ended with {}:\n{}", outcome.code, outcome.stderr))
    });
}

#[test]
fn endless_throttling_ends_the_run_and_not_the_cluster() {
    let world = World::of_golden("minimal");
    world.proxy.fault("cloudformation:DescribeStackEvents", Fault::Throttled, Times::Always);
    let outcome = world.up_invocation([]).time_limit(Duration::from_secs(240)).run();
    outcome.expect_code(1).expect_stderr("cloudformation:DescribeStackEvents").expect_stderr("Rate exceeded");
    assert_eq!(world.proxy.count("cloudformation:DescribeStackEvents"), 8, "patient, but not for ever");
    world.proxy.heal();
    world.up([]).expect_code(0);
    world.run(["status"]).expect_code(0);
}

#[test]
fn expired_credentials_end_the_run_at_once_and_the_stack_continues() {
    let world = World::alone("minimal");
    world.control(json!({"hold": ["minimal-network"]}));
    for number in 2..10 {
        world.proxy.fault("cloudformation:DescribeStackEvents", Fault::ExpiredToken, Times::Nth(number));
    }
    world.up([]).expect_code(4).expect_stderr("ExpiredToken").expect_stderr("continue in AWS");
    assert_eq!(world.proxy.count("cloudformation:DescribeStackEvents"), 2, "no call is made with them again");
    assert_eq!(world.aws().stack_status("minimal-network").as_deref(), Some("CREATE_IN_PROGRESS"));

    world.proxy.heal();
    world.proxy.clear();
    let mut again = world.up_invocation([]).spawn();
    again.wait_for_stderr("minimal-network: another operation is in progress; following it");
    world.control(json!({}));
    again.wait().expect_code(0);
    let made =
        world.proxy.calls().into_iter().filter(|call| call.operation == "cloudformation:CreateChangeSet");
    assert!(made.filter_map(|call| call.target).all(|name| !name.contains("network")), "it was attached to");
    world.run(["status"]).expect_code(0);
}

/// The time limit of one answer is half a minute; everything else here fits into that.
#[test]
fn a_missing_a_slow_and_a_truncated_response_are_survived() {
    let world = World::of_golden("minimal");
    world.proxy.fault("ec2:DescribeImages", Fault::Hang(Duration::from_secs(100)), Times::First(1));
    world.proxy.fault(
        "cloudformation:DescribeStacks",
        Fault::SlowBody(Duration::from_secs(3)),
        Times::First(1),
    );
    world.proxy.fault("cloudformation:DescribeStackEvents", Fault::TruncatedBody, Times::First(2));
    let started = Instant::now();
    world.up([]).expect_code(0);
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(33), "{took:?}");
    let faulted = world.proxy.calls().into_iter().filter(|call| call.outcome == CallOutcome::Faulted);
    assert_eq!(faulted.count(), 4);
    world.run(["status"]).expect_code(0);
}
