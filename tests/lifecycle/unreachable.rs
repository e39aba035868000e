//! AWS that cannot be reached, does not answer, or rejects the clock, and proxies on the way: each run ends in time and reports the cause.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::fault_proxy::{Fault, Times};
use crate::support::forward_proxy::ForwardProxy;
use crate::support::outcome::Outcome;
use crate::support::workspace::Workspace;
use crate::support::world::World;

const PLACE: &str = "s3://assets/clusters";
const COMMANDS: [&[&str]; 4] =
    [&["up", "--s3-uri", PLACE], &["plan", "--s3-uri", PLACE], &["status"], &["destroy", "--yes"]];

/// Every command against the same address, at the same time; each with how long it took.
fn run_all(url: &str) -> Vec<(Outcome, Duration)> {
    let run = |arguments: &&[&str]| {
        let (workspace, began) = (Workspace::of_golden("minimal"), Instant::now());
        let outcome = workspace
            .infra(arguments.iter().copied())
            .endpoint(url)
            .time_limit(Duration::from_secs(200))
            .run();
        (outcome, began.elapsed())
    };
    thread::scope(|scope| {
        let running: Vec<_> = COMMANDS.iter().map(|arguments| scope.spawn(move || run(arguments))).collect();
        running.into_iter().map(|running| running.join().unwrap()).collect()
    })
}

/// An address without a server: a free port might be in use by the time it is called.
const NOBODY: &str = "http://127.0.0.1:1";

#[test]
fn refused_connections_end_every_command() {
    for (outcome, took) in run_all(NOBODY) {
        let outcome = outcome.expect_code(1).expect_stderr(": Connection refused");
        outcome
            .expect_stderr("the region and --endpoint-url are right")
            .expect_stderr("behind a proxy set HTTPS_PROXY");
        assert!(took < Duration::from_secs(90), "{took:?}");
    }
}

/// Both wait for the same minute and a half.
#[test]
fn without_responses_every_command_gives_up_and_a_run_can_be_resumed() {
    // The system accepts the connections; nothing ever reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    thread::scope(|scope| {
        let all = scope.spawn(|| run_all(&url));
        let world = World::of_golden("minimal");
        world.proxy.fault(
            "cloudformation:DescribeStackEvents",
            Fault::Hang(Duration::from_secs(200)),
            Times::Always,
        );
        let outcome = world.up_invocation([]).time_limit(Duration::from_secs(200)).run().expect_code(1);
        outcome
            .expect_stderr("cloudformation:DescribeStackEvents: no answer within 90 s")
            .expect_stderr("the same command resumes");
        world.proxy.heal();
        world.up([]).expect_code(0);
        for (outcome, took) in all.join().unwrap() {
            outcome
                .expect_code(1)
                .expect_stderr(": no answer within 90 s")
                .expect_stderr("see that this machine");
            assert!((Duration::from_secs(89)..Duration::from_secs(150)).contains(&took), "{took:?}");
        }
    });
}

#[test]
fn a_wrong_clock_is_reported_with_the_difference() {
    let world = World::of_golden("minimal");
    world.proxy.fault("*", Fault::Skewed, Times::Always);
    for arguments in COMMANDS {
        let outcome = world.run(arguments.iter().copied()).expect_code(4);
        outcome
            .expect_stderr("this machine's clock is 25 minutes behind AWS's")
            .expect_stderr("timedatectl set-ntp true");
    }
    // The first refusal has the time, and calls are signed with that from then on.
    world.proxy.heal();
    for operation in ["cloudformation:DescribeStacks", "ec2:DescribeImages", "sts:GetCallerIdentity"] {
        world.proxy.fault(operation, Fault::Skewed, Times::First(1));
    }
    world.up([]).expect_code(0);
}

/// Each service says it in its own words.
#[test]
fn every_service_can_reject_the_clock() {
    for operation in [
        "ec2:DescribeImages",
        "s3:HeadObject",
        "elasticfilesystem:DescribeFileSystems",
        "cloudformation:CreateChangeSet",
    ] {
        let world = World::of_golden("paddle-tutorial");
        world.proxy.fault(operation, Fault::Skewed, Times::Always);
        let outcome = world.up([]).expect_code(4);
        outcome.expect_stderr("25 minutes behind AWS's").expect_stderr(operation.split(':').next().unwrap());
    }
}

#[test]
fn calls_go_through_the_proxy_of_the_environment_and_those_to_the_cluster_do_not() {
    let (world, proxy) = (World::of_golden("minimal"), ForwardProxy::start());
    world.up_invocation([]).env("HTTP_PROXY", &proxy.url()).run().expect_code(0);
    let through = proxy.asked().len();
    assert_eq!(through, world.proxy.count("*"), "every call, and nothing else");
    assert!(
        proxy.asked().iter().all(|line| line.contains(&format!("{}/", world.proxy.url()))),
        "{:?}",
        proxy.asked()
    );
    world.infra(["status"]).env("http_proxy", &proxy.url()).run().expect_code(0);
    assert!(proxy.asked().len() > through);

    let through = proxy.asked().len();
    for (name, value) in [("NO_PROXY", "127.0.0.1"), ("no_proxy", "localhost,127.0.0.0/8")] {
        let status = world.infra(["status"]).env("HTTP_PROXY", &proxy.url()).env(name, value);
        status.run().expect_code(0);
        assert_eq!(proxy.asked().len(), through, "{name}={value}");
    }
}

#[test]
fn a_proxy_that_is_dead_or_refuses_is_named_without_its_password() {
    let (world, dead, refusing) = (World::of_golden("minimal"), NOBODY, ForwardProxy::refusing());
    let named = |outcome: Outcome, variable: &str, url: &str| {
        let outcome =
            outcome.expect_code(1).expect_stderr(&format!("{variable} is {url}: see that this proxy runs"));
        assert!(!outcome.stderr.contains("secret"), "{}", outcome.stderr);
        outcome
    };
    let with_password = dead.replace("http://", "http://ada:secret@");
    let outcome = world.infra(["status"]).env("HTTP_PROXY", &with_password).run();
    named(outcome, "HTTP_PROXY", dead).expect_stderr("Connection refused");
    let outcome = world.infra(["status"]).env("HTTP_PROXY", &refusing.url()).run();
    named(outcome, "HTTP_PROXY", &refusing.url()).expect_stderr("(407)");
    // Encrypted calls use a tunnel, which is refused before any call is made.
    let workspace = Workspace::of_golden("minimal");
    let secure = NOBODY.replace("http://", "https://");
    let outcome = workspace.infra(["status"]).endpoint(&secure).env("HTTPS_PROXY", &refusing.url()).run();
    named(outcome, "HTTPS_PROXY", &refusing.url());
    assert!(refusing.asked().iter().any(|line| line.starts_with("CONNECT ")), "{:?}", refusing.asked());
    assert_eq!(world.proxy.count("*"), 0);
}
