//! A pool in a capacity block: empty before it, with machines while it is open, empty again before it ends, and nothing begins a year
//! later.

use std::fs;

use serde_json::{Value, json};

use crate::support::element;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::reading::is_reading;
use crate::support::world::{DAY, TimeOfBlock, World, coming_end};

/// No id yet.
pub const NEW: &str = "";

/// A small cluster with a pool in a capacity block, which is to come; its id and its times.
pub fn world() -> (World, String) {
    let world = World::of_golden("deep-learning");
    world.workspace.edit(|text| {
        let (before, pools) = text.split_once("pools:\n").unwrap();
        let (_, block) = pools.split_once("- name: block\n").unwrap();
        format!("{before}pools:\n- name: block\n{block}")
    });
    world.api.gpus("block", 8);
    let text = world.workspace.read("cluster.yaml");
    let id = text.lines().find_map(|line| line.strip_prefix("  capacityReservationId: ")).unwrap().to_owned();
    (world, id)
}

fn ask(world: &World, action: &str, more: &[(&str, &str)]) -> String {
    let form = [&[("Action", action), ("Version", "2011-01-01")], more].concat();
    world.aws().post("autoscaling", "us-west-2", &form)
}

/// The pool's Auto Scaling group: its name, and how many machines it has at least, at most and at the moment.
fn group(world: &World) -> (String, [u32; 3]) {
    let groups = ask(world, "DescribeAutoScalingGroups", &[]);
    let mut parts = groups.split("<member><AutoScalingGroupName>");
    let mine = parts.find(|part| part.contains("<Value>pool-block</Value>")).unwrap();
    let name = mine.split("</AutoScalingGroupName>").next().unwrap().to_owned();
    let sizes =
        ["MinSize", "MaxSize", "DesiredCapacity"].map(|size| element(mine, size).unwrap().parse().unwrap());
    (name, sizes)
}

#[track_caller]
pub fn expect_sizes(world: &World, sizes: [u32; 3]) {
    assert_eq!(group(world).1, sizes, "the fewest, the most and the desired machines");
}

/// The scheduled actions of the pool: when, and the sizes from then on.
fn actions(world: &World) -> Vec<(String, [u32; 3])> {
    let name = group(world).0;
    let answer = ask(world, "DescribeScheduledActions", &[("AutoScalingGroupName", name.as_str())]);
    let mut found: Vec<_> = answer
        .split("<member>")
        .skip(1)
        .map(|action| {
            assert_eq!(element(action, "TimeZone"), None, "UTC");
            let size = |size: &str| element(action, size).unwrap().parse().unwrap();
            let sizes = ["MinSize", "MaxSize", "DesiredCapacity"].map(size);
            (element(action, "Recurrence").unwrap().to_owned(), sizes)
        })
        .collect();
    found.sort_by_key(|(_, sizes)| std::cmp::Reverse(*sizes));
    found
}

/// Lets a scheduled action happen.
fn let_happen(world: &World, recurrence: &str) {
    let name = group(world).0;
    let form = [("AutoScalingGroupName", name.as_str()), ("Recurrence", recurrence)];
    let answer = ask(world, "RunScheduledAction", &form);
    assert!(answer.contains("RunScheduledActionResponse"), "{answer}");
}

fn per_hour(cost: &Value) -> f64 {
    cost["perHour"].as_str().unwrap().parse().unwrap()
}

/// What each command that knows prices says of costs.
fn costs(world: &World) -> Vec<(&'static str, Value)> {
    let commands: [(&[&str], &str); 4] = [
        (&["cost"], "/total"),
        (&["plan"], "/cost/after"),
        (&["status"], "/cost"),
        (&["list", "--region", "us-west-2"], "/clusters/0/machinesCost"),
    ];
    let cost = |(arguments, at): (&[&'static str], &str)| {
        let run = world.run(arguments.iter().copied().chain(["--output", "json"]));
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        (arguments[0], document.pointer(at).unwrap_or_else(|| panic!("{at}: {document}")).clone())
    };
    commands.map(cost).into()
}

/// Machines of the block cost nothing by the hour, whoever says what is paid.
#[track_caller]
fn expect_prepaid(world: &World, running: u32) {
    for (command, cost) in costs(world) {
        // `infra cost` is about cluster.yaml, not about what runs.
        let machines = if command == "cost" { 2 } else { running };
        assert_eq!(cost["prepaidMachines"], machines, "{command}: {cost}");
        assert!(per_hour(&cost) < 1.0, "{command}: {cost}");
        assert_eq!(cost["missing"], json!([]), "{command}: {cost}");
    }
}

/// A second `up` changes nothing.
#[track_caller]
pub fn nothing_to_do(world: &World) {
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
    world.proxy.clear();
    world.up([]).expect_code(0);
    let changing: Vec<String> =
        world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect();
    assert_eq!(changing, [""; 0]);
}

fn parameters(world: &World) -> String {
    let form = [("Action", "DescribeStacks"), ("Version", "2010-05-15"), ("StackName", "deep-pool-block")];
    world.aws().post("cloudformation", "us-west-2", &form)
}

#[test]
fn a_pool_has_machines_while_its_block_is_open_and_at_no_other_time() {
    let (world, id) = world();
    let times = TimeOfBlock::from_now(DAY, 3 * DAY);
    world.put_block(&id, &times);
    let (begin, end) = (times.begin_cron(), times.end_cron());

    // Looked up once, kept in infra.lock.
    world.run(["lock"]).expect_code(0).expect_stdout(&format!(
        "{id}  capacity block of pool block: begins on {}, machines until {}, 40 minutes before its end",
        times.begin(),
        times.end_of_machines()
    ));
    let lock = world.workspace.read("infra.lock");
    assert!(lock.contains(&format!("capacityBlocks:\n- id: {id}\n  begins: ")), "{lock}");

    // Before: no machine is waited for, and none starts.
    let to_come = format!("pool block waits for its capacity block {id}: begins on {}", times.begin());
    world.run(["plan", "--s3-uri", "s3://any/where"]).expect_code(0).expect_stdout(&to_come);
    world.up([]).expect_code(0).expect_stderr(&to_come);
    expect_sizes(&world, [0, 0, 0]);
    expect_prepaid(&world, 0);
    assert_eq!(actions(&world), [(begin.clone(), [1, 2, 2]), (end.clone(), [0, 0, 0])]);
    nothing_to_do(&world);
    world.run(["plan"]).expect_code(0).expect_stdout(&to_come).expect_stdout("No changes.");
    let outcome = world.run(["status"]).expect_code(0).expect_stdout("healthy");
    let line = outcome.stdout.lines().find(|line| line.starts_with("block")).unwrap();
    assert!(line.contains("to come") && line.contains(&times.begin()), "{line}");

    // Other changes start no machine either.
    world.workspace.edit(|text| {
        text.replace("  efa: true\n  capacity", "  efa: true\n  rootVolumeGiB: 200\n  capacity")
    });
    world.up([]).expect_code(0);
    expect_sizes(&world, [0, 0, 0]);

    // It begins. Nothing is left that would begin again in a year.
    let open = TimeOfBlock::from_now(-60, 2 * DAY);
    world.put_block(&id, &open);
    let_happen(&world, &begin);
    expect_sizes(&world, [1, 2, 2]);
    expect_prepaid(&world, 2);
    world.run(["status"]).expect_code(0).expect_stdout("2/2 Ready").expect_stdout("open ");
    world
        .up([])
        .expect_code(0)
        .expect_stderr(&format!("pool block is in its capacity block {id}: machines until"));
    expect_sizes(&world, [1, 2, 2]);
    assert_eq!(actions(&world), [(open.end_cron(), [0, 0, 0])]);
    nothing_to_do(&world);

    // It ends: AWS lists it as active still, and machines would have half an hour no longer.
    let ending = TimeOfBlock::from_now(-2 * DAY, 35);
    world.put_block(&id, &ending);
    let_happen(&world, &open.end_cron());
    expect_sizes(&world, [0, 0, 0]);
    let over = format!("pool block is after its capacity block {id}: had machines until");
    world.run(["plan"]).expect_code(0).expect_stdout(&over);
    world.up([]).expect_code(0).expect_stderr(&over);
    expect_sizes(&world, [0, 0, 0]);
    world.run(["status"]).expect_code(0).expect_stdout("over");

    // AWS forgets it some time after its end; infra.lock does not.
    world.put_block(&id, &TimeOfBlock::from_now(-2 * DAY, -1));
    world.up([]).expect_code(0).expect_stderr(&over);
    world.ec2("ForgetCapacityBlock", &[("CapacityReservationId", &id)]);
    nothing_to_do(&world);
    world.run(["status"]).expect_code(0).expect_stdout("over");
    let lock = world.workspace.read("infra.lock");
    fs::remove_file(world.workspace.path("infra.lock")).unwrap();
    world.up([]).expect_code(1).expect_stderr(&format!("there is no capacity reservation {id}"));
    fs::write(world.workspace.path("infra.lock"), lock).unwrap();

    // Without the key it is a pool like any other.
    world.workspace.edit(|text| text.replace(&format!("  capacityReservationId: {id}\n"), ""));
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 2, 2]);
    assert_eq!(actions(&world), []);
    let after = costs(&world);
    let is_on_demand = |(_, cost): &(&str, Value)| cost["prepaidMachines"] == 0 && per_hour(cost) > 110.0;
    assert!(after.iter().all(is_on_demand), "two p5.48xlarge on demand: {after:?}");
    world.run(["destroy", "--yes"]).expect_code(0);
}

#[test]
fn a_block_that_is_open_starts_machines_at_once_and_a_missed_begin_is_made_good() {
    let (world, id) = world();
    world.put_block(&id, &TimeOfBlock::from_now(-60, DAY));
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 2, 2]);
    let [(_, end)] = actions(&world).try_into().unwrap();
    assert_eq!(end, [0, 0, 0]);
    assert!(parameters(&world).contains("<ParameterKey>BlockEndsAt</ParameterKey>"));
    nothing_to_do(&world);
    world.run(["destroy", "--yes"]).expect_code(0);

    // The begin passed while nothing was there to start machines.
    world.put_block(&id, &TimeOfBlock::from_now(DAY, 2 * DAY));
    world.up([]).expect_code(0);
    expect_sizes(&world, [0, 0, 0]);
    world.put_block(&id, &TimeOfBlock::from_now(-5, DAY));
    world.run(["status"]).expect_code(0).expect_stdout(&format!(
        "? the capacity block {id} of pool block is open, and the pool may have no machines: run `infra up`"
    ));
    world.run(["plan"]).expect_code(0).expect_stdout("2 machines of pool block are created");
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 2, 2]);
    nothing_to_do(&world);

    // It is over, and was extended then.
    world.put_block(&id, &TimeOfBlock::from_now(-DAY, 20));
    world.up([]).expect_code(0);
    expect_sizes(&world, [0, 0, 0]);
    world.put_block(&id, &TimeOfBlock::from_now(-DAY, 3 * DAY));
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 2, 2]);
    nothing_to_do(&world);
}

#[test]
fn a_begin_that_is_left_is_said_and_another_block_takes_the_place_of_one_that_is_over() {
    let (world, id) = world();
    world.up([]).expect_code(0);
    world.put_block(&id, &TimeOfBlock::from_now(-2 * DAY, -60));
    world.run(["status"]).expect_code(0).expect_stdout(&format!(
        "? the capacity block {id} of pool block is over: run `infra up`, or pool block tries to start machines in it again in a year"
    ));
    world.up([]).expect_code(0);
    assert_eq!(actions(&world).len(), 1, "the end alone");
    world.run(["destroy", "--yes"]).expect_code(0);

    world.up([]).expect_code(0);
    let other = world.put_block(NEW, &TimeOfBlock::from_now(-60, DAY));
    world.workspace.edit(|text| text.replace(&id, &other));
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 2, 2]);
    let lock = world.workspace.read("infra.lock");
    assert!(lock.contains(&other) && !lock.contains(&id), "{lock}");
    nothing_to_do(&world);

    // Back to one that is to come: machines of the other do not stay.
    let third = world.put_block(NEW, &TimeOfBlock::from_now(DAY, 2 * DAY));
    world.workspace.edit(|text| text.replace(&other, &third));
    world.run(["plan"]).expect_code(0).expect_stdout("2 machines of pool block are terminated");
    world.up([]).expect_code(0);
    expect_sizes(&world, [0, 0, 0]);
    nothing_to_do(&world);
}

#[test]
fn what_excludes_a_block_is_refused_with_the_reason() {
    let (world, id) = world();
    let refused = |world: &World, what: &str, instead: &str| {
        let into = ["--s3-uri", "s3://any/where"];
        for command in
            [vec!["lock"], [["plan"].as_slice(), &into].concat(), [["up"].as_slice(), &into].concat()]
        {
            world.run(command).expect_code(1).expect_stderr(what).expect_stderr(instead);
        }
    };
    let text = world.workspace.read("cluster.yaml");
    for (key, value) in [("expires", coming_end().as_str()), ("schedule", "[{at: 0 20 * * *, count: 2}]")] {
        world.workspace.edit(|text| text.replace("  capacity", &format!("  {key}: {value}\n  capacity")));
        let what = format!("pool block has both {key} and the capacity block {id}");
        refused(&world, &what, &format!("remove {key}"));
        world.workspace.write("cluster.yaml", &text);
    }
    for (state, what) in [
        ("payment-failed", "is released: its payment failed"),
        ("cancelled", "is cancelled"),
        ("failed", "is failed"),
    ] {
        world.ec2("PutCapacityBlock", &[("CapacityReservationId", &id), ("State", state)]);
        refused(&world, &format!("the capacity block {id} of pool block {what}"), "name another");
    }
    for state in ["pending", "assessing", "delayed", "unavailable"] {
        world.ec2("PutCapacityBlock", &[("CapacityReservationId", &id), ("State", state)]);
        let what = format!("the capacity block {id} of pool block is {state}");
        let later = "run the command again once the state is scheduled or active";
        let outcome = world.run(["lock"]).expect_code(1).expect_stderr(&what).expect_stderr(later);
        assert!(!outcome.stderr.contains("name another"), "{}", outcome.stderr);
    }
    world.ec2("PutCapacityBlock", &[("CapacityReservationId", &id), ("State", "payment-pending")]);
    let bucket = format!("s3://{}/clusters", world.bucket());
    let online = ["validate", "--online", "--s3-uri", &bucket];
    let unpaid = format!("the capacity block {id} is not paid yet");
    world.run(online).expect_code(0).expect_stderr(&unpaid);
    world.ec2(
        "PutCapacityBlock",
        &[("CapacityReservationId", &id), ("State", "scheduled"), ("InstanceCount", "1")],
    );
    let small = format!("the capacity block {id} will have 1 machine, but the pool needs 2");
    world.run(online).expect_code(0).expect_stderr(&small);

    // On Flatcar.
    world.workspace.edit(|text| {
        text.replace("  image: deep-learning\n", "")
            .replace("  efa: true\n", "")
            .replace("p5.48xlarge", "g6e.12xlarge")
    });
    let what = format!("{id} is a capacity block, and pool block boots flatcar");
    refused(&world, &what, "add `image: deep-learning` to the pool");
}

#[test]
fn a_missing_permission_is_named() {
    let (world, _) = world();
    world.up([]).expect_code(0);
    world.proxy.fault("ec2:DescribeCapacityReservations", Fault::AccessDenied, Times::Always);
    world
        .run(["status"])
        .expect_code(0)
        .expect_stdout("? the capacity blocks of pools could not be read: the caller may not ec2:DescribeCapacityReservations")
        .expect_stdout("to come");
    world.up([]).expect_code(1).expect_stderr("ec2:DescribeCapacityReservations");
    world.proxy.heal();
    world.run(["destroy", "--yes"]).expect_code(0);
}
