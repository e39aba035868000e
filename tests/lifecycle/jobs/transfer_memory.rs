//! How much memory and time `infra data` takes for many files and for a large one.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use super::moving_files::{bytes, data, expect_same};
use super::{JobWorld, TRAIN};
use crate::support::outcome::Outcome;

/// Runs a command to its end; returns the most memory that it used, in MiB, and the seconds it took.
#[track_caller]
fn measured<'a>(world: &JobWorld, arguments: impl IntoIterator<Item = &'a str>) -> (u64, f64) {
    let (peak, seconds, ended) = measured_until(world, arguments, u64::MAX);
    ended.expect("it was killed").expect_code(0);
    (peak, seconds)
}

/// The same, but the command is killed when this many bytes have arrived.
#[track_caller]
fn measured_until<'a>(
    world: &JobWorld,
    arguments: impl IntoIterator<Item = &'a str>,
    most: u64,
) -> (u64, f64, Option<Outcome>) {
    let began = Instant::now();
    let mut running = data(world, arguments).time_limit(Duration::from_secs(600)).spawn();
    let mut peak = 0;
    while running.is_running() {
        if world.cluster.exec_bytes_sent() > most {
            running.kill();
            return (peak, began.elapsed().as_secs_f64(), None);
        }
        let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or(0) / 1024);
        std::thread::sleep(Duration::from_millis(10));
    }
    (peak, began.elapsed().as_secs_f64(), Some(running.wait()))
}

/// `INFRA_TEST_LARGE_MIB=2048` measures a file of that size.
#[test]
fn many_files_and_a_large_one_need_little_memory() {
    let world = JobWorld::new(TRAIN);
    let large: u64 =
        std::env::var("INFRA_TEST_LARGE_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(192);
    let (many, one) = (world.workspace.path("many"), world.workspace.path("large"));
    for number in 0..10_000 {
        let directory = many.join(format!("{}", number / 500));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{number}")), format!("line {number}\n").repeat(50)).unwrap();
    }
    fs::create_dir(&one).unwrap();
    let mut file = fs::File::create(one.join("model")).unwrap();
    for number in 0..large {
        file.write_all(&bytes(1 << 20).iter().map(|byte| byte ^ (number as u8)).collect::<Vec<u8>>())
            .unwrap();
    }
    for (source, name) in [(&many, "many"), (&one, "large")] {
        let whole = if name == "many" { 7_000_000 } else { large << 20 };
        let mut arrived = 0;
        for turn in ["killed", "put", "put again", "get"] {
            let (source, back) = (source.to_str().unwrap(), world.workspace.path("back"));
            let (peak, seconds) = match turn {
                "killed" => {
                    let (peak, seconds, ended) = measured_until(&world, ["put", source, "."], whole / 2);
                    assert!(ended.is_none(), "{name} was complete before it could be killed");
                    // Its program may still read what was on its way.
                    std::thread::sleep(Duration::from_secs(1));
                    (peak, seconds)
                }
                "get" => measured(&world, ["get", name, back.to_str().unwrap()]),
                _ => measured(&world, ["put", source, "."]),
            };
            let (sent, received) = world.cluster.take_exec_bytes();
            eprintln!(
                "{name}, {turn}: {seconds:.1} s, {peak} MiB, {sent} bytes there, {received} bytes back"
            );
            assert!(peak < 100, "{name}, {turn}: {peak} MiB");
            match turn {
                "killed" => arrived = sent,
                // What was on its way when the command was killed goes twice; of small files also their names.
                "put" => assert!(arrived + sent < whole + (16 << 20), "{name}: {arrived}, then {sent}"),
                _ => assert!(sent < 4 << 20, "{name}, {turn}: {sent}"),
            }
        }
        expect_same(source, &world.workspace.path("back").join(name));
    }
}
