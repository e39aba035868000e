//! What a run costs: calls to AWS, time of this machine's processor, and how often a slow stack is polled.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::invocation::Running;
use crate::support::world::World;

/// How many calls `up` of a large cluster may make; accounts are throttled far above it.
const MOST_CALLS: usize = 150;
/// Seconds of processor time, also of a build without optimization.
const MOST_SECONDS: f64 = 1.5;
/// Clock ticks per second, as Linux counts processor time for every program.
const TICKS: f64 = 100.0;

/// The processor time of a run, read after its end and before its exit status is.
fn processor_seconds(running: &Running) -> f64 {
    let path = format!("/proc/{}/stat", running.id());
    loop {
        let text = fs::read_to_string(&path).unwrap();
        // The name, in parentheses, may hold anything; what follows it is the state, and eleven fields later the times.
        let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
        if fields[0] == "Z" {
            return (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / TICKS;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_large_cluster_takes_few_calls_and_little_time() {
    let world = World::of_golden("ha-gpu-efs");
    let running = world.up_invocation([]).at_real_tempo().spawn();
    let seconds = processor_seconds(&running);
    running.wait().expect_code(0);

    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in world.proxy.calls() {
        *counts.entry(call.operation).or_default() += 1;
    }
    let table: Vec<String> =
        counts.iter().map(|(operation, count)| format!("{count:4} {operation}")).collect();
    let calls = world.proxy.count("*");
    eprintln!("{}\n{calls:4} calls, {seconds:.2} s of processor time", table.join("\n"));
    assert!(calls < MOST_CALLS, "{calls} calls:\n{}", table.join("\n"));
    assert!(seconds < MOST_SECONDS, "{seconds} s");
}

#[test]
fn a_slow_stack_is_polled_less_and_less_often() {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("instanceType:", "rootVolumeGiB: 150, instanceType:"));
    // The launch template and the group, one after the other.
    world.control(json!({"delay": 6.0}));
    world.proxy.clear();
    world.up_invocation(["--yes"]).at_real_tempo().run().expect_code(0);

    let mut looks: BTreeMap<(String, String), Vec<Duration>> = BTreeMap::new();
    let calls = world.proxy.calls();
    let start = calls[0].at;
    for call in calls {
        if let Some(target) = call.target
            && ["cloudformation:DescribeStackEvents", "cloudformation:DescribeStacks"]
                .contains(&call.operation.as_str())
        {
            looks.entry((call.operation, target)).or_default().push(call.at - start);
        }
    }
    let longest = looks.values().map(Vec::len).max().unwrap();
    assert!((3..=6).contains(&longest), "a stack of twelve seconds is looked at a few times: {looks:?}");
    for ((operation, stack), moments) in looks {
        let gaps: Vec<Duration> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // A gap begins with the answer to a poll, and is longer on a busy machine, never shorter.
        let mut least = Duration::from_secs(2);
        for gap in &gaps {
            assert!(*gap >= least, "{operation} of {stack}: {gaps:?}");
            least = (least * 3 / 2).min(Duration::from_secs(10));
        }
    }
}
