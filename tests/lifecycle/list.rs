//! Every cluster of an account on one screen, by what AWS knows of them: whole, degraded, from older versions, none, in one region and
//! in all.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::schema_judge::expect_exact;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::outcome::Outcome;
use crate::support::world::World;

const HERE: [&str; 3] = ["list", "--region", "us-west-2"];
const EVERYWHERE: [&str; 2] = ["list", "--all-regions"];
const STACKS: &str = "cloudformation:DescribeStacks";
const GROUPS: &str = "autoscaling:DescribeAutoScalingGroups";
const IMAGES: &str = "ec2:DescribeImages";

/// A stack with the tag of a cluster, which holds nothing.
#[track_caller]
fn make_stack(world: &World, region: &str, name: &str, cluster: &str, outputs: &Value) {
    let handle = json!({"Type": "AWS::CloudFormation::WaitConditionHandle"});
    let mut template = json!({"Resources": {"Handle": handle}});
    if let Some(outputs) = outputs.as_object().filter(|outputs| !outputs.is_empty()) {
        let value = |(key, value): (&String, &Value)| (key.clone(), json!({"Value": value}));
        template["Outputs"] = outputs.iter().map(value).collect();
    }
    let form = [
        ("Action", "CreateStack"),
        ("Version", "2010-05-15"),
        ("StackName", name),
        ("TemplateBody", &template.to_string()),
        ("Tags.member.1.Key", "infra:cluster"),
        ("Tags.member.1.Value", cluster),
    ];
    let answer = world.aws().post("cloudformation", region, &form);
    assert!(answer.contains("<StackId>"), "{answer}");
}

/// The network of a cluster that has nothing else.
fn make_network(world: &World, region: &str, cluster: &str) {
    make_stack(world, region, &format!("{cluster}-network"), cluster, &json!({}));
}

/// The line of a cluster, without its columns.
#[track_caller]
fn line(outcome: &Outcome, cluster: &str) -> String {
    let found = outcome.stdout.lines().find(|line| line.split(' ').next() == Some(cluster));
    let found = found.unwrap_or_else(|| panic!("no line {cluster} in:\n{}", outcome.stdout));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The list as programs read it, which fits its schema.
#[track_caller]
fn document(world: &World, arguments: &[&str], code: i32) -> Value {
    let arguments = arguments.iter().copied().chain(["--output", "json"]);
    let text = world.run(arguments).expect_code(code).stdout;
    let document = serde_json::from_str(&text).unwrap();
    expect_exact(&BTreeMap::from([("list", vec![text])]), &[]);
    document
}

#[test]
fn a_whole_cluster_is_listed_by_three_calls_without_its_directory() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    let elsewhere = world.workspace.elsewhere(false);
    fs::remove_file(elsewhere.path("cluster.yaml")).unwrap();
    world.proxy.clear();
    let outcome = world.infra_in(&elsewhere, HERE).run().expect_code(0);
    assert_eq!(outcome.stderr, "");
    let mut calls = world.proxy.operations();
    calls.sort_unstable();
    assert_eq!((calls, world.proxy.count("*")), (vec![GROUPS.into(), STACKS.into(), IMAGES.into()], 3));
    let found = line(&outcome, "research");
    let words: Vec<&str> = found.split(' ').collect();
    assert_eq!(
        (words[1], words[4], &words[7..]),
        ("us-west-2", "3/3", &["30", "days", "healthy"][..]),
        "{found}"
    );
    assert!(outcome.stdout.ends_with("\n1 cluster in us-west-2: 1 healthy\n"), "{}", outcome.stdout);

    // The version and the first expiry are what the directory says.
    let listed = document(&world, &HERE, 0);
    let cluster = &listed["clusters"][0];
    assert_eq!(words[2], cluster["kubernetes"]);
    let template: Value = serde_json::from_str(&read_stack(&world)).unwrap();
    assert_eq!(template["Metadata"]["Infra"]["kubernetes.version"], cluster["kubernetes"]);
    let status: Value =
        serde_json::from_str(&world.run(["status", "--output", "json"]).expect_code(0).stdout).unwrap();
    assert_eq!(status["images"], cluster["images"]);
    assert_eq!(status["stacks"], cluster["stacks"]);
    assert_eq!(first_leaf(&world), cluster["certificates"]["daysLeft"]);

    // The region of the environment, and none at all.
    let run = |region: Option<&str>| {
        let list = world.infra_in(&elsewhere, ["list"]);
        if let Some(region) = region { list.env("AWS_REGION", region) } else { list }.run()
    };
    assert_eq!(run(Some("us-west-2")).expect_code(0).stdout, outcome.stdout);
    run(Some("eu-west-1")).expect_code(0).expect_stdout("no clusters in eu-west-1\n");
    run(None).expect_code(2).expect_stderr("no region is known").expect_stderr("--region");
}

/// The template of the live control plane.
fn read_stack(world: &World) -> String {
    world.workspace.infra(["render"]).run().expect_code(0);
    world.workspace.read("stacks/control-plane.json")
}

/// The days of the certificate that expires first; no authority does before.
fn first_leaf(world: &World) -> i64 {
    let text = world.workspace.infra(["certificates", "--output", "json"]).run().stdout;
    let listed: Value = serde_json::from_str(&text).unwrap();
    let days = listed["certificates"].as_array().unwrap().iter();
    days.filter_map(|certificate| certificate["daysLeft"].as_i64()).min().unwrap()
}

#[test]
fn renewed_certificates_change_an_output_of_the_control_plane() {
    let world = World::of_golden("minimal");
    let expiry = || {
        serde_json::from_str::<Value>(&read_stack(&world)).unwrap()["Outputs"]["CertificatesExpire"].clone()
    };
    let before = expiry();
    assert!(before["Value"].as_str().unwrap().ends_with('Z'), "{before}");
    world.workspace.infra(["render", "credentials", "--renew"]).run().expect_code(0);
    let after = expiry();
    assert_ne!(before, after);
}

#[test]
fn a_control_plane_of_an_older_version_gets_its_outputs_without_a_change_of_machines() {
    let world = World::of_golden("minimal");
    let template = include_str!("../../stacks/control-plane.yaml.tera");
    let (older, _) = template.split_once("  # For `infra list`").unwrap();
    let path = "templates/stacks/control-plane.yaml.tera";
    fs::create_dir_all(world.workspace.path("templates/stacks")).unwrap();
    world.workspace.write(path, older);
    world.up([]).expect_code(0);
    let found = line(&world.run(HERE).expect_code(0), "minimal");
    assert!(found.starts_with("minimal us-west-2 unknown 2/2 1/1 unknown "), "{found}");

    fs::remove_file(world.workspace.path(path)).unwrap();
    let plan =
        world.run(["plan"]).expect_code(0).expect_stdout("\n  none is created, replaced or terminated\n");
    plan.expect_stdout("\ncontrol plane: update (outputs)\n");
    world.up([]).expect_code(0);
    let found = line(&world.run(HERE).expect_code(0), "minimal");
    assert!(!found.contains("unknown"), "{found}");
}

#[test]
fn degraded_clusters_show_their_first_problem() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    world.control(json!({"fail_launch": {"EtcdMember1": "there are no machines"}}));
    let filters = [("Filter.1.Name", "tag:infra:role"), ("Filter.1.Value.1", "etcd-1")];
    let machine = world.made("DescribeInstances", &filters, "instanceId");
    world.ec2("TerminateInstances", &[("InstanceId.1", &machine)]);
    let outcome = world.run(HERE).expect_code(3);
    let found = line(&outcome, "research");
    assert!(found.contains(" 2/3 "), "{found}");
    let problem = "NOT HEALTHY ! etcd: 2 of 3 members are in service; if one more is lost, the API stops";
    assert!(found.ends_with(problem), "{found}");
    assert!(outcome.stdout.ends_with("\n1 cluster in us-west-2: 1 not healthy\n"), "{}", outcome.stdout);

    let stack = "research-pool-gpu";
    world.control(
        json!({"force_status": {stack: "UPDATE_ROLLBACK_FAILED"}, "fail_launch": {"EtcdMember1": "no"}}),
    );
    let found = line(&world.run(HERE).expect_code(3), "research");
    assert!(
        found.ends_with("NOT HEALTHY ! stack research-pool-gpu is in UPDATE_ROLLBACK_FAILED (and 1 more)"),
        "{found}"
    );
    let listed = document(&world, &HERE, 3);
    assert_eq!(
        (&listed["healthy"], listed["clusters"][0]["problems"].as_array().unwrap().len()),
        (&json!(false), 2)
    );
    let etcd = json!({"name": "etcd", "inService": 2, "wanted": 3});
    assert_eq!(listed["clusters"][0]["etcd"], etcd);

    let image = listed["clusters"][0]["images"][0]["id"].clone();
    world.control(json!({"force_status": {stack: "UPDATE_COMPLETE"}, "gone_images": [image]}));
    let listed = document(&world, &HERE, 3);
    let problems = listed["clusters"][0]["problems"].to_string();
    assert!(problems.contains("is gone: no machine of research-control-plane"), "{problems}");
}

#[test]
fn clusters_of_older_versions_and_halves_of_clusters_are_listed() {
    let world = World::of_golden("minimal");
    let outcome = world.run(HERE).expect_code(0).expect_stdout("no clusters in us-west-2\n");
    assert_eq!(outcome.stderr, "");
    let empty = document(&world, &HERE, 0);
    assert_eq!(
        empty,
        json!({"healthy": true, "clusters": [], "regions": ["us-west-2"], "unreadRegions": [], "warnings": []})
    );

    make_network(&world, "us-west-2", "half");
    make_stack(&world, "us-west-2", "old-control-plane", "old", &json!({}));
    let expired = json!({"CertificatesExpire": "2020-01-01T00:00:00Z", "KubernetesVersion": "1.30.1"});
    make_stack(&world, "us-west-2", "late-control-plane", "late", &expired);
    // Someone else's, whatever their tags say.
    make_stack(&world, "us-west-2", "billing", "half", &json!({}));
    make_stack(&world, "us-west-2", "Other-network", "Other", &json!({}));
    let outcome = world.run(HERE).expect_code(3);
    let problem = "NOT HEALTHY ! there is no control plane";
    assert_eq!(line(&outcome, "half"), format!("half us-west-2 unknown 0/0 0/0 unknown unknown {problem}"));
    let problem = "NOT HEALTHY ! etcd: no member has an Auto Scaling group (and 1 more)";
    assert_eq!(line(&outcome, "old"), format!("old us-west-2 unknown 0/0 0/0 unknown unknown {problem}"));
    assert!(line(&outcome, "late").starts_with("late us-west-2 1.30.1 0/0 0/0 -"), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with("\n3 clusters in us-west-2: 3 not healthy\n"), "{}", outcome.stdout);
    let listed = document(&world, &HERE, 3);
    let late = &listed["clusters"][1];
    assert_eq!(
        late["problems"][2],
        "a certificate has expired; run `infra render credentials --renew`, then `infra up`"
    );

    // However many there are.
    for number in 0..20 {
        make_network(&world, "us-west-2", &format!("more-{number}"));
    }
    world.proxy.clear();
    world.run(HERE).expect_code(3).expect_stdout("\n23 clusters in us-west-2: 23 not healthy\n");
    assert_eq!((world.proxy.count(STACKS), world.proxy.count(GROUPS), world.proxy.count("*")), (1, 1, 2));
}

#[test]
fn what_may_not_be_read_is_named_and_the_rest_is_listed() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    for operation in [GROUPS, IMAGES] {
        world.proxy.fault(operation, Fault::AccessDenied, Times::Always);
    }
    let outcome = world.run(HERE).expect_code(0);
    let said = format!("warning: us-west-2: machines could not be read: the caller may not {GROUPS}\n");
    outcome.expect_stderr(&said).expect_stderr(IMAGES).expect_stdout("  unknown  unknown  ");
    let listed = document(&world, &HERE, 0);
    let cluster = &listed["clusters"][0];
    assert_eq!(
        (&cluster["nodes"], &cluster["etcd"], &cluster["images"]),
        (&Value::Null, &Value::Null, &json!([]))
    );

    world.proxy.fault(STACKS, Fault::AccessDenied, Times::Always);
    world.run(HERE).expect_code(1).expect_stderr(STACKS);
    world.proxy.heal();
    for operation in [STACKS, GROUPS, IMAGES] {
        world.proxy.fault(operation, Fault::Throttled, Times::First(3));
    }
    world.run(HERE).expect_code(0).expect_stdout("\n1 cluster in us-west-2: 1 healthy\n");
    world.proxy.fault(STACKS, Fault::ExpiredToken, Times::Always);
    world.run(HERE).expect_code(4).expect_stderr("renew them");
}

#[test]
fn all_regions_are_read_at_once_and_one_that_refuses_is_named() {
    let world = World::of_golden("minimal");
    for (region, cluster) in
        [("us-west-2", "west"), ("eu-west-1", "one"), ("eu-west-1", "another"), ("sa-east-1", "south")]
    {
        make_network(&world, region, cluster);
    }
    let everywhere = || world.infra(EVERYWHERE).env("AWS_REGION", "us-west-2");
    let clusters = |outcome: &Outcome| -> Vec<String> {
        let lines = outcome.stdout.lines().filter(|line| line.contains("NOT HEALTHY"));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    world.proxy.clear();
    let outcome = everywhere().run().expect_code(3);
    assert_eq!(clusters(&outcome), ["another", "one", "south", "west"]);
    assert_eq!(outcome.stderr, "");
    let regions = world.proxy.count(STACKS);
    assert!(regions > 10, "{regions}");
    let summary = format!("\n4 clusters in {regions} regions: 4 not healthy\n");
    assert!(outcome.stdout.ends_with(&summary), "{}", outcome.stdout);
    // Two calls in each of eight regions.
    assert!((2..=16).contains(&world.proxy.most_in_flight()), "{}", world.proxy.most_in_flight());

    world.proxy.fault_in("sa-east-1", STACKS, Fault::AccessDenied, Times::Always);
    world.proxy.fault_in("eu-west-1", STACKS, Fault::Throttled, Times::First(3));
    let outcome = everywhere().run().expect_code(3);
    assert_eq!(clusters(&outcome), ["another", "one", "west"]);
    let outcome =
        outcome.expect_stderr(&format!("warning: sa-east-1 could not be read: {STACKS}: AccessDenied: "));
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    let text =
        world.infra([&EVERYWHERE[..], &["--output", "json"]].concat()).env("AWS_REGION", "us-west-2").run();
    let listed: Value = serde_json::from_str(&text.expect_code(3).stdout).unwrap();
    assert_eq!(listed["unreadRegions"][0]["region"], "sa-east-1");
    assert_eq!(listed["regions"].as_array().unwrap().len(), regions - 1);

    // What is no refusal makes the list incomplete, and the command fail.
    world.proxy.heal();
    world.proxy.fault_in("sa-east-1", STACKS, Fault::InternalError, Times::Always);
    let outcome = everywhere().run().expect_code(1).expect_stderr("warning: sa-east-1 could not be read: ");
    assert_eq!(clusters(&outcome), ["another", "one", "west"]);
    assert!(outcome.stderr.contains("\nerror: "), "{}", outcome.stderr);

    // None can be read, or not even named.
    world.proxy.heal();
    world.proxy.fault(STACKS, Fault::AccessDenied, Times::Always);
    everywhere().run().expect_code(1).expect_stderr("AccessDenied");
    world.proxy.heal();
    world.proxy.fault("ec2:DescribeRegions", Fault::AccessDenied, Times::Always);
    everywhere().run().expect_code(1).expect_stderr("ec2:DescribeRegions");
}
