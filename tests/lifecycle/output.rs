//! What programs read in the life of a cluster, against the schemas that `infra schema` prints: every line and every document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::schema_judge::{broken, expect_exact, expect_fit, expect_refused, schema};
use crate::support::outcome::Outcome;
use crate::support::world::World;

const NO_CAPACITY: &str = "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a). \
                           Launching EC2 instance failed.";
const CONSOLE: &str =
    "Booting\n[   44.0] infra: mounting the file system\n[  104.3] mount.nfs4: Connection timed out\n";

/// The lines of a run.
fn lines(outcome: &Outcome) -> Vec<String> {
    outcome.stdout.lines().map(str::to_owned).collect()
}

/// The types that are among some events.
fn types(lines: &[String]) -> BTreeSet<String> {
    let kind = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        event["type"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned()
    };
    lines.iter().map(kind).collect()
}

/// Every line that `up` and `destroy` write: with every fault that has an event of its own, and then without faults.
#[test]
fn every_event_fits_the_schema_and_every_type_is_met() {
    let world = World::of_golden("paddle-tutorial");
    world.make_zone("example.com", false);
    let up = |code| lines(&world.up(["--output", "json"]).expect_code(code));
    world.control(
        json!({"fail_create": {"EtcdAddress0": "The maximum number of addresses has been reached."}}),
    );
    let mut all = up(6);
    assert!(types(&all).is_superset(&BTreeSet::from(["stack-failed", "stack-skipped"].map(str::to_owned))));
    world.control(json!({"fail_launch": {"Nodes": NO_CAPACITY}, "signal_timeout": 120}));
    let failed = up(6);
    let is_report = |line: &&String| line.contains("\"type\":\"stack-failed\"");
    let report: Value = serde_json::from_str(failed.iter().find(is_report).unwrap()).unwrap();
    assert_eq!(
        (&report["stack"], &report["hint"]["kind"]),
        (&json!("paddle-cluster-pool-workers"), &json!("capacity"))
    );
    all.extend(failed);
    world.control(json!({"no_signal": ["Nodes"], "signal_timeout": 2, "console": {"*": CONSOLE}}));
    let silent = up(6);
    let report: Value = serde_json::from_str(silent.iter().find(is_report).unwrap()).unwrap();
    assert_eq!(report["evidence"][0]["lastStep"], "mounting the file system", "{report:#}");
    all.extend(silent);
    world.control(json!({}));
    world.api.set_ready(false);
    let mut running = world.up_invocation(["--output", "json"]).spawn();
    running.wait_for_stdout("\"type\":\"waiting\"");
    world.api.set_ready(true);
    all.extend(lines(&running.wait().expect_code(0)));
    all.extend(up(0));
    let subnet = world.tagged("DescribeSubnets", "subnetId");
    let theirs = world.make_interface(&subnet, "AWS Lambda VPC ENI-report-1", &[]);
    let destroy = |code| lines(&world.run(["destroy", "--yes", "--output", "json"]).expect_code(code));
    all.extend(destroy(7));
    world.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &theirs)]);
    all.extend(destroy(0));
    all.extend(destroy(0));

    expect_fit("events", &all);
    let schema = schema("events");
    let known = schema["oneOf"].as_array().unwrap().iter();
    let known: BTreeSet<String> =
        known.map(|event| event["properties"]["type"]["const"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types(&all), known, "of {} lines", all.len());
    let destroyed = all.iter().find(|line| line.contains("\"complete\":false")).unwrap();
    expect_refused("events", &broken(destroyed, &[]));
}

#[test]
fn documents_of_every_stage_of_a_life_fit_their_schemas() {
    let world = World::of_golden("paddle-tutorial");
    let place = format!("s3://{}/clusters", world.bucket());
    let mut documents: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut print = |shape, arguments: &[&str], code| {
        let arguments = arguments.iter().copied().chain(["--output", "json"]);
        let text = world.run(arguments).expect_code(code).stdout;
        documents.entry(shape).or_default().push(text.clone());
        text
    };
    print("status", &["status"], 3);
    print("plan", &["plan", "--s3-uri", &place], 0);
    print("validate", &["validate", "--online"], 2);
    print("lock", &["lock"], 0);
    world.control(json!({"fail_create": {"Nodes": "no"}}));
    world.up([]).expect_code(6);
    print("status", &["status"], 3);
    world.control(json!({"console": {"*": CONSOLE}}));
    world.up([]).expect_code(0);
    let status = print("status", &["status"], 0);
    print("logs", &["logs", "etcd-0"], 0);
    print("cost", &["cost", "--online"], 0);
    world.workspace.edit(|text| text.replace("count: 2}", "count: 3, labels: {size: small}}"));
    let plan = print("plan", &["plan"], 0);
    print("destroy-plan", &["destroy", "--plan-only"], 0);
    expect_exact(&documents, &["notice", "account", "image"]);

    // Nothing may be called otherwise further down either.
    let inner =
        [("\"loadBalancer\"", "\"balancer\""), ("\"ready\"", "\"well\""), ("\"outdated\"", "\"old\"")];
    let renamed = inner.map(|(name, other)| status.replacen(name, other, 1));
    assert!(renamed.iter().all(|text| *text != status), "{status}");
    expect_refused("status", &renamed);
    let other_kind = plan.replace("\"kind\": \"lines\"", "\"kind\": \"verses\"");
    assert_ne!(other_kind, plan);
    expect_refused("plan", &[other_kind]);
}
