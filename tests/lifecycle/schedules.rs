//! Pools whose size AWS changes by the clock: what exists in AWS, what `up` leaves alone, and how a pool gets its own size again.

use crate::support::element;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::reading::is_reading;
use crate::support::world::{World, coming_end};

const NIGHT: &str = "0 20 * * MON-FRI";
const MORNING: &str = "0 8 * * MON-FRI";
const SCHEDULE: &str = r#", schedule: [{at: "0 20 * * MON-FRI", count: 0}, {at: "0 8 * * MON-FRI", count: 2}], timeZone: Europe/Berlin"#;
/// The coming end, in every year.
const YEARLY_END: &str = "0 18 1 6 *";

/// The key for an end.
fn expiry(end: &str) -> String {
    format!(", expires: {end}")
}

/// The pool of a small cluster, with more keys.
fn world_with(more: &str) -> World {
    let world = World::of_golden("minimal");
    let pool = format!("m5.large, count: 2, minCount: 1, maxCount: 4{more}}}");
    world.workspace.edit(|text| text.replace("m5.large}", &pool));
    world.up([]).expect_code(0);
    world
}

fn ask(world: &World, action: &str, more: &[(&str, &str)]) -> String {
    let form = [&[("Action", action), ("Version", "2011-01-01")], more].concat();
    world.aws().post("autoscaling", "us-west-2", &form)
}

/// The pool's Auto Scaling group: its name, and how many machines it has at least, at most and at the moment.
fn group(world: &World) -> (String, [u32; 3]) {
    let groups = ask(world, "DescribeAutoScalingGroups", &[]);
    let mut parts = groups.split("<member><AutoScalingGroupName>");
    let mine = parts.find(|part| part.contains("<Value>pool-cpu</Value>")).unwrap();
    let name = mine.split("</AutoScalingGroupName>").next().unwrap().to_owned();
    let sizes =
        ["MinSize", "MaxSize", "DesiredCapacity"].map(|size| element(mine, size).unwrap().parse().unwrap());
    (name, sizes)
}

#[track_caller]
fn expect_sizes(world: &World, sizes: [u32; 3]) {
    assert_eq!(group(world).1, sizes, "the fewest, the most and the desired machines");
}

/// The scheduled actions of the pool, by when they happen: time zone and sizes.
fn actions(world: &World) -> Vec<(String, Option<String>, [u32; 3])> {
    let name = group(world).0;
    let answer = ask(world, "DescribeScheduledActions", &[("AutoScalingGroupName", name.as_str())]);
    let mut found: Vec<_> = answer
        .split("<member>")
        .skip(1)
        .map(|action| {
            let size = |size: &str| element(action, size).unwrap().parse().unwrap();
            (
                element(action, "Recurrence").unwrap().to_owned(),
                element(action, "TimeZone").map(|zone| zone.to_owned()),
                ["MinSize", "MaxSize", "DesiredCapacity"].map(size),
            )
        })
        .collect();
    found.sort();
    found
}

/// Lets a scheduled action happen.
fn let_happen(world: &World, recurrence: &str) {
    let name = group(world).0;
    let answer = ask(
        world,
        "RunScheduledAction",
        &[("AutoScalingGroupName", name.as_str()), ("Recurrence", recurrence)],
    );
    assert!(answer.contains("RunScheduledActionResponse"), "{answer}");
}

/// The calls of a second `up` that change something.
#[track_caller]
fn nothing_to_do(world: &World) {
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
    world.proxy.clear();
    world.up([]).expect_code(0);
    let changing: Vec<String> =
        world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect();
    assert_eq!(changing, [""; 0]);
}

#[test]
fn a_schedule_and_an_end_are_scheduled_actions_that_recur() {
    let world = world_with(SCHEDULE);
    let berlin = Some("Europe/Berlin".to_owned());
    let night = (NIGHT.to_owned(), berlin.clone(), [0, 0, 0]);
    assert_eq!(actions(&world), [night, (MORNING.to_owned(), berlin, [1, 4, 2])]);
    nothing_to_do(&world);
    let outcome = world.run(["status"]).expect_code(0).expect_stdout("healthy");
    let clock = outcome.stdout.lines().find(|line| line.starts_with("clock")).unwrap();
    assert!(
        clock.contains("not held") && clock.contains("cpu; then ") && clock.contains(" UTC ("),
        "{clock}"
    );

    // An entry at another time is another action; one on other days is the same.
    world
        .workspace
        .edit(|text| text.replace("0 20 * * MON-FRI", "30 21 * * *").replace("0 8 * * MON-FRI", "0 8 * * *"));
    world
        .run(["plan"])
        .expect_code(0)
        .expect_stdout("the schedule of pool cpu: no machines at 30 21 * * * Europe/Berlin (At2130,");
    world.up([]).expect_code(0);
    let times: Vec<String> = actions(&world).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, ["0 8 * * *", "30 21 * * *"]);

    world.workspace.edit(|text| {
        text.replace(r#"{at: "0 8 * * *", count: 2}"#, "")
            .replace("timeZone: Europe/Berlin", &format!("expires: {}", coming_end()))
    });
    world.up([]).expect_code(0);
    assert_eq!(
        actions(&world),
        [(YEARLY_END.to_owned(), None, [0, 0, 0]), ("30 21 * * *".to_owned(), None, [0, 0, 0])]
    );
    nothing_to_do(&world);
}

#[test]
fn up_leaves_a_pool_that_its_schedule_holds_at_zero_as_it_is() {
    let world = world_with(SCHEDULE);
    let_happen(&world, NIGHT);
    expect_sizes(&world, [0, 0, 0]);
    let held = "pool cpu is held at 0 machines by its schedule: its size stays";
    world.run(["plan"]).expect_code(0).expect_stdout(held).expect_stdout("No changes.");
    world.run(["plan", "--output", "html"]).expect_code(0).expect_stdout(held);
    nothing_to_do(&world);
    world.up([]).expect_code(0).expect_stderr(held);
    world
        .run(["status"])
        .expect_code(0)
        .expect_stdout("healthy")
        .expect_stdout("held at 0")
        .expect_stdout("cpu, by its schedule; then 2 machines on ");
    let status = world.run(["status", "--output", "json"]).expect_code(0).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let schedule = &status["nodes"][1]["schedule"];
    assert_eq!(schedule["heldBy"], "schedule");
    let night = schedule["actions"].as_array().unwrap().iter().find(|action| action["at"] == NIGHT).unwrap();
    assert_eq!((&night["timeZone"], &night["machines"]), (&"Europe/Berlin".into(), &0.into()));
    assert!(night["next"].as_str().unwrap().ends_with(":00:00Z"), "{night}");

    // Other changes reach its stack, and start no machine.
    world.workspace.edit(|text| text.replace("m5.large,", "m5.large, rootVolumeGiB: 150,"));
    let plan = world.run(["plan"]).expect_code(0).expect_stdout(held).stdout;
    assert!(plan.contains("none is created, replaced or terminated"), "{plan}");
    world.up([]).expect_code(0).expect_stderr(held);
    expect_sizes(&world, [0, 0, 0]);
    nothing_to_do(&world);
    world.up(["--pool", "cpu", "--replace-nodes"]).expect_code(0).expect_stderr("up to date");

    // Neither do other limits; they come with the next morning.
    world.workspace.edit(|text| {
        text.replace("maxCount: 4", "maxCount: 6")
            .replace("count: 2, min", "count: 3, min")
            .replace("count: 2}]", "count: 3}]")
    });
    world.up([]).expect_code(0).expect_stderr(held);
    expect_sizes(&world, [0, 0, 0]);
    nothing_to_do(&world);
    let_happen(&world, MORNING);
    expect_sizes(&world, [1, 6, 3]);
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 6, 3]);
    nothing_to_do(&world);
    world.run(["status"]).expect_code(0).expect_stdout("3/3 Ready").expect_stdout("not held");
    let_happen(&world, NIGHT);
    world.run(["destroy", "--yes"]).expect_code(0);
    assert!(!ask(&world, "DescribeScheduledActions", &[]).contains("<member>"));
}

#[test]
fn a_pool_that_is_held_at_fewer_machines_than_its_own_rolls_those() {
    let world =
        world_with(r#", schedule: [{at: "0 20 * * MON-FRI", count: 1}, {at: "0 8 * * MON-FRI", count: 3}]"#);
    world.workspace.edit(|text| text.replace("minCount: 1", "minCount: 2"));
    world.up([]).expect_code(0);
    let_happen(&world, NIGHT);
    expect_sizes(&world, [1, 1, 1]);
    world.workspace.edit(|text| text.replace("m5.large,", "m5.large, rootVolumeGiB: 150,"));
    world
        .up([])
        .expect_code(0)
        .expect_stderr("1 machine of pool cpu is replaced; none stays in service")
        .expect_stderr("pool cpu is held at 1 machine by its schedule");
    expect_sizes(&world, [1, 1, 1]);
    nothing_to_do(&world);
    let_happen(&world, MORNING);
    expect_sizes(&world, [2, 4, 3]);
    nothing_to_do(&world);
}

#[test]
fn a_pool_whose_schedule_is_gone_from_cluster_yaml_gets_its_own_limits_again() {
    let world = world_with(SCHEDULE);
    let_happen(&world, NIGHT);
    world.workspace.edit(|text| text.replace(SCHEDULE, ""));
    let released = "pool cpu gets its own limits again: 1 to 4 machines";
    world
        .run(["plan", "--detailed-exitcode"])
        .expect_code(3)
        .expect_stdout(released)
        .expect_stdout("2 machines of pool cpu are created");
    world
        .up([])
        .expect_code(0)
        .expect_stderr("pool cpu: its own limits are set again (0 to 0 → 1 to 4), 2 machines");
    expect_sizes(&world, [1, 4, 2]);
    assert_eq!(actions(&world), []);
    nothing_to_do(&world);

    // As a run leaves it that was killed before it set them.
    let name = group(&world).0;
    let nothing = [
        ("AutoScalingGroupName", name.as_str()),
        ("MinSize", "0"),
        ("MaxSize", "0"),
        ("DesiredCapacity", "0"),
    ];
    ask(&world, "UpdateAutoScalingGroup", &nothing);
    world.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_stdout(released);
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 4, 2]);
    nothing_to_do(&world);
}

#[test]
fn limits_that_change_with_the_end_of_a_schedule_are_set_too() {
    let world = world_with(SCHEDULE);
    let_happen(&world, NIGHT);
    world.workspace.edit(|text| {
        text.replace(SCHEDULE, "")
            .replace("count: 2, minCount: 1, maxCount: 4", "count: 4, minCount: 3, maxCount: 5")
    });
    world.up([]).expect_code(0);
    expect_sizes(&world, [3, 5, 4]);
    nothing_to_do(&world);
}

#[test]
fn a_pool_that_has_ended_stays_at_zero_until_it_has_another_end_or_none() {
    let end = coming_end();
    let world = world_with(&expiry(&end));
    let_happen(&world, YEARLY_END);
    expect_sizes(&world, [0, 0, 0]);
    let held = "pool cpu is held at 0 machines by its end (expires): its size stays; another expires, or none, starts it again";
    world.up([]).expect_code(0).expect_stderr(held);
    world.run(["status"]).expect_code(0).expect_stdout("cpu, by its end (expires)");
    nothing_to_do(&world);

    let other = end.replace("T18:00", "T17:59");
    world.workspace.edit(|text| text.replace(&end, &other));
    world
        .run(["plan"])
        .expect_code(0)
        .expect_stdout("2 machines of pool cpu are created")
        .expect_stdout(&format!("the end of pool cpu at {other}"));
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 4, 2]);
    nothing_to_do(&world);
    let_happen(&world, "59 17 1 6 *");
    world.workspace.edit(|text| text.replace(&expiry(&other), ""));
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 4, 2]);
    assert_eq!(actions(&world), []);
    nothing_to_do(&world);
}

#[test]
fn an_end_in_the_past_is_refused_by_up_and_said_by_plan_and_validate() {
    let end = coming_end();
    let world = world_with(&expiry(&end));
    world.workspace.edit(|text| text.replace(&end, "2020-12-01T18:00:00Z"));
    let ended = "pool cpu has ended: its `expires` (2020-12-01T18:00:00Z) is in the past";
    world.proxy.clear();
    world
        .up([])
        .expect_code(1)
        .expect_stderr(ended)
        .expect_stderr("set `expires` of pool cpu to a later time or remove it to start the pool again");
    assert_eq!(world.proxy.operations(), [""; 0]);
    world.run(["plan"]).expect_code(0).expect_stderr(&format!("{ended}; `infra up` will refuse it"));
    world.run(["validate"]).expect_code(0).expect_stderr(&format!("{ended}; `infra up` will refuse it"));
    let document = world.run(["validate", "--output", "json"]).expect_code(0).stdout;
    assert!(document.contains(ended), "{document}");
    world.run(["destroy", "--yes"]).expect_code(0);
}

#[test]
fn an_end_that_is_more_than_a_year_away_is_refused_since_aws_would_act_this_year() {
    let end = coming_end();
    let world = world_with(&expiry(&end));
    let far = format!("2099{}", &end[4..]);
    world.workspace.edit(|text| text.replace(&end, &far));
    let sooner = format!("pool cpu would already end on {end}: `expires` ({far}) is more than a year away");
    world.proxy.clear();
    world.up([]).expect_code(1).expect_stderr(&sooner).expect_stderr(
        "AWS repeats an end every year: set `expires` of pool cpu to a date within a year, or remove it",
    );
    assert_eq!(world.proxy.operations(), [""; 0]);
    world.run(["plan"]).expect_code(0).expect_stderr(&format!("{sooner}; `infra up` will refuse it"));
    world.run(["validate"]).expect_code(0).expect_stderr(&format!("{sooner}; `infra up` will refuse it"));
}

#[test]
fn missing_permissions_are_named_and_the_next_run_resumes() {
    let world = world_with(SCHEDULE);
    let_happen(&world, NIGHT);
    world.proxy.fault("autoscaling:DescribeScheduledActions", Fault::AccessDenied, Times::Always);
    world.run(["status"]).expect_code(0).expect_stdout("held at 0").expect_stdout(
        "? the schedules of pools could not be read: the caller may not autoscaling:DescribeScheduledActions",
    );
    world.workspace.edit(|text| text.replace(SCHEDULE, ""));
    world.proxy.fault("autoscaling:UpdateAutoScalingGroup", Fault::AccessDenied, Times::Always);
    world.up([]).expect_code(1).expect_stderr("autoscaling:UpdateAutoScalingGroup");
    expect_sizes(&world, [0, 0, 0]);
    assert_eq!(actions(&world), [], "the stack was done");
    world.proxy.heal();
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 4, 2]);
    nothing_to_do(&world);
}
