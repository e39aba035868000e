//! A plan begins with machines: which are replaced and how, what is unavailable meanwhile, what changes in place; word by word.

use std::fs;

use serde_json::{Value, json};

use crate::support::world::World;

/// A running cluster with an older version of Kubernetes.
fn older_cluster(name: &str) -> World {
    let world = World::of_golden(name);
    world.workspace.edit(|text| format!("{text}kubernetes: {{version: v1.35.7}}\n"));
    world.up([]).expect_code(0);
    world
}

/// What a plan says of machines, and the line of each stack; not each property and file.
fn outline(plan: &str) -> String {
    let (machines, stacks) = plan.split_once("\n\n").unwrap();
    let heads = stacks.lines().filter(|line| !line.starts_with(' '));
    format!("{machines}\n\n{}", heads.collect::<Vec<_>>().join("\n"))
}

/// Compares the outline of the plan of one edit with a file, and leaves cluster.yaml as it was.
#[track_caller]
fn expect_plan(world: &World, name: &str, from: &str, to: &str) {
    let before = world.workspace.read("cluster.yaml");
    assert!(before.contains(from), "{from}");
    world.workspace.edit(|text| text.replace(from, to));
    let plan = world.run(["plan"]).expect_code(0);
    let file = format!("{}/tests/plans/{}-{name}.txt", env!("CARGO_MANIFEST_DIR"), world.cluster());
    let found = format!("{}\n", outline(&plan.stdout));
    if std::env::var("SNAPSHOTS").as_deref() == Ok("overwrite") {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(found, expected, "{file}");
    world.workspace.edit(|_| before);
}

#[test]
fn plans_of_a_cluster_with_one_controller() {
    let world = older_cluster("minimal");
    expect_plan(&world, "tag", "pools:\n", "tags: {team: biology}\npools:\n");
    expect_plan(
        &world,
        "instance-type",
        "controllers: {count: 1}",
        "controllers: {count: 1, instanceType: t3.large}",
    );
    expect_plan(&world, "pool-instance-type", "m5.large", "m5.xlarge");
    expect_plan(&world, "kubernetes-version", "v1.35.7", "v1.36.3");
    expect_plan(&world, "label", "m5.large}", "m5.large, labels: {size: small}}");
    expect_plan(&world, "ranges", "pools:\n", "sshAllowedCIDRs: [192.0.2.0/24]\npools:\n");
}

#[test]
fn plans_of_a_highly_available_cluster() {
    let world = older_cluster("ha-gpu-efs");
    expect_plan(&world, "tag", "team: research", "team: biology");
    expect_plan(&world, "instance-type", "pools:\n", "controllers: {instanceType: t3.large}\npools:\n");
    expect_plan(&world, "pool-instance-type", "instanceType: m5.large", "instanceType: m5.xlarge");
    expect_plan(&world, "kubernetes-version", "v1.35.7", "v1.36.3");
    expect_plan(&world, "label", "labels: {team: vision,", "labels: {team: sound,");
    expect_plan(&world, "size", "count: 2, maxCount: 4", "count: 1, maxCount: 4");
    expect_plan(&world, "dropped-pool", "- {name: cpu, instanceType: m5.large, count: 2, maxCount: 4}\n", "");
}

#[test]
fn the_plan_of_a_new_cluster_lists_its_machines() {
    let world = World::of_golden("ha-gpu-efs");
    let place = format!("s3://{}/clusters", world.bucket());
    let plan = world.run(["plan", "--s3-uri", &place]).expect_code(0);
    let machines = "machines:\n  + etcd-0, etcd-1 and etcd-2 are created\n  + 2 controllers are created\n  \
                    + 2 machines of pool cpu are created\n  + 3 machines of pool gpu are created\n\n";
    assert!(plan.stdout.starts_with(machines), "{}", plan.stdout);
}

#[test]
fn tags_alone_are_one_line_per_stack_and_every_resource_with_verbose() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("team: research", "team: biology"));
    let tags = "update (tags only: team: research → biology)";
    let plan = world.run(["plan"]).expect_code(0);
    let plan = plan.expect_stdout(&format!("network: {tags}\nstorage: {tags}\ncontrol plane: update ("));
    assert!(!plan.stdout.contains("(Vpc, AWS::EC2::VPC)"), "{}", plan.stdout);
    let verbose = world.run(["plan", "--verbose"]).expect_code(0);
    verbose.expect_stdout("(Vpc, AWS::EC2::VPC)\n    Tags[team]: research → biology\n");
    let json = world.run(["plan", "--output", "json"]).expect_code(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let network = json["stacks"][0]["resources"].as_array().unwrap();
    assert!(network.len() > 5 && network.iter().all(|resource| resource["tagsOnly"] == true), "{network:#?}");
}

#[test]
fn json_markdown_and_events_say_the_same_of_machines() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let node = world.run_job("cpu");
    world.workspace.edit(|text| format!("{text}tags: {{team: biology}}\n"));

    let replaced = |role: &str, in_service: u32| {
        let change = json!({"kind": "replace", "atOnce": 1, "inService": in_service});
        json!({"role": role, "machines": 1, "change": change})
    };
    let machines = json!([replaced("etcd-0", 0), replaced("controller", 0), replaced("pool-cpu", 0)]);
    let outages = json!([
        {"of": "etcd-quorum", "aboutMinutes": 2, "because": "it has only 1 member"},
        {
            "of": "api",
            "aboutMinutes": 5,
            "because": "etcd loses its quorum, and there is only 1 controller",
        },
    ]);
    let jobs = json!([{"pool": "cpu", "namespace": "default", "job": "train", "pod": "train-0-abcde", "node": node}]);
    let expect_same = |said: &Value| {
        assert_eq!(said["machines"], machines);
        assert_eq!(said["outages"], outages);
        assert_eq!(said["jobs"], jobs);
    };
    let plan = world.run(["plan", "--output", "json"]).expect_code(0);
    expect_same(&serde_json::from_str(&plan.stdout).unwrap());
    let refused = world.up(["--output", "json"]).expect_code(1);
    let events = refused.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said: Vec<Value> = events.filter(|event| event["type"] == "machines").collect();
    assert_eq!(said.len(), 1, "{}", refused.stdout);
    expect_same(&said[0]);
    let markdown = world.run(["plan", "--output", "markdown"]).expect_code(0);
    let first = format!(
        "### infra plan: minimal\n\n**Machines**\n\n- **etcd-0 is replaced**\n- **1 controller is replaced**\n\
         - **1 machine of pool cpu is replaced; none stays in service**\n\
         \x20 - **job default/train runs on {node} (pod train-0-abcde), which will be terminated**\n\
         - **etcd's quorum is unavailable for about 2 minutes: it has only 1 member**\n\
         - **the API is unavailable for about 5 minutes: etcd loses its quorum, and there is only 1 \
         controller; running pods continue**\n\
         - in place: tags of 3 stacks\n\n"
    );
    assert!(markdown.stdout.starts_with(&first), "{}", markdown.stdout);
}

#[test]
fn up_asks_before_the_api_becomes_unavailable() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| {
        text.replace("controllers: {count: 1}", "controllers: {count: 1, instanceType: t3.large}")
    });
    let question =
        "1 controller will be replaced. The API will be unavailable for about 3 minutes. Continue?";
    world.proxy.clear();
    world.up([]).expect_code(1).expect_stderr(question).expect_stderr("`--yes` answers yes");
    world.at_terminal(&["up"], "dumb", "n\n").expect_code(1).expect_stdout(&format!("{question} [y/N]"));
    assert_eq!(world.proxy.count("cloudformation:ExecuteChangeSet"), 0);
    world.at_terminal(&["up"], "dumb", "y\n").expect_code(0);
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
    world.workspace.edit(|text| text.replace("t3.large", "m5.large"));
    world.up(["--yes"]).expect_code(0);
}

#[test]
fn up_does_not_ask_where_the_api_stays() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("pools:\n", "controllers: {instanceType: t3.large}\npools:\n"));
    world.up([]).expect_code(0).expect_stderr("  the API stays available; requests may fail for seconds\n");
}

#[test]
fn a_member_that_is_missing_already_makes_the_next_one_an_outage() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    world.control(json!({"fail_launch": {"EtcdMember1": "We currently do not have sufficient capacity."}}));
    let member = [("Filter.1.Name", "tag:infra:role"), ("Filter.1.Value.1", "etcd-1")];
    let machine = world.made("DescribeInstances", &member, "instanceId");
    world.ec2("TerminateInstances", &[("InstanceId.1", &machine)]);
    world.workspace.edit(|text| text.replace("pools:\n", "etcd: {instanceType: t3.large}\npools:\n"));
    let machines = "machines:\n  -/+ etcd-0, etcd-1 and etcd-2 are replaced, one by one\n  \
                    ! etcd's quorum is unavailable for about 2 minutes: only 2 of 3 members are in service\n  \
                    ! the API is unavailable for about 2 minutes: etcd loses its quorum; running pods continue\n\n";
    let plan = world.run(["plan"]).expect_code(0);
    assert!(plan.stdout.starts_with(machines), "{}", plan.stdout);
    let question = "etcd-0, etcd-1 and etcd-2 will be replaced. The API will be unavailable for about 2 minutes. Continue?";
    world.up([]).expect_code(1).expect_stderr(question);
    world.control(json!({}));
}
