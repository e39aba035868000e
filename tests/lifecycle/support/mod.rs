//! The environment of a cluster in a test: stand-ins for AWS and for the cluster's API server on loopback, and a directory in which
//! the real binary runs against them.

#![allow(dead_code, reason = "a stand-in offers what its original does, whether a test asks for it or not")]

pub mod api_connections;
pub mod aws;
pub mod census;
#[path = "../../support/directory.rs"]
pub mod directory;
pub mod fault_proxy;
pub mod foreign_resources;
pub mod forward_proxy;
pub mod http;
pub mod invocation;
pub mod job_cluster;
pub mod kubernetes;
pub mod machines;
pub mod ministack;
#[path = "../../support/outcome.rs"]
pub mod outcome;
pub mod permissions;
pub mod protocols;
pub mod reading;
pub mod release_server;
pub mod runbook;
pub mod terminal;
#[path = "../../support/test_tool.rs"]
pub mod test_tool;
pub mod tmux;
pub mod web_socket;
pub mod workspace;
pub mod world;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use self::outcome::Outcome;

/// The text of the first element of that name that has no attributes.
pub fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// The header that names the caller and the service. Stand-ins read those names, and check no signature.
pub fn authorization(account: &str, region: &str, service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={account}/20261116/{region}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    )
}

/// Runs with a time limit, and again with a longer one as long as the limit ends the run before it has reported this.
#[track_caller]
pub fn run_into_time_limit(part: &str, mut run: impl FnMut(&str) -> Outcome) -> Outcome {
    run_until_printed(part, |limit| run(limit).expect_code(5))
}

/// Runs with a time limit, and again with a longer one until this is printed, however the run ends: how far one gets in a second
/// depends on what else the machine does.
#[track_caller]
pub fn run_until_printed(part: &str, mut run: impl FnMut(&str) -> Outcome) -> Outcome {
    let mut printed = String::new();
    for limit in ["3s", "10s", "30s", "100s"] {
        let outcome = run(limit);
        if outcome.stdout.contains(part) || outcome.stderr.contains(part) {
            return outcome;
        }
        printed = format!("stdout:\n{}\nstderr:\n{}", outcome.stdout, outcome.stderr);
    }
    panic!("'{part}' is not in:\n{printed}");
}

/// Returns as soon as this holds; three minutes are what only a test that fails waits for.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(180);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Does the work for each, four at a time. The first failure ends the test once the others are done.
pub fn in_parallel<T: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    in_parallel_by(4, items, work);
}

/// The same with any number at a time; runs mostly sleep.
pub fn in_parallel_by<T: Send>(workers: usize, items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items.into_iter().collect::<VecDeque<T>>());
    let next = || items.lock().unwrap().pop_front();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}
