//! Plans: what they show, and that they leave nothing in AWS.

use serde_json::Value;

use crate::support::world::World;

const CLOUDFORMATION: &str = "2010-05-15";

/// The names of every stack of the account that is not deleted, with those of their change sets.
fn stacks_and_change_sets(world: &World) -> Vec<String> {
    let aws = world.aws();
    let list = |action: &str, more: &[(&str, &str)]| {
        let form: Vec<(&str, &str)> = [("Action", action), ("Version", CLOUDFORMATION)]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        aws.post("cloudformation", &aws.region, &form)
    };
    let stacks = list("DescribeStacks", &[]);
    let names: Vec<String> =
        stacks.split("<StackName>").skip(1).map(|part| part.split('<').next().unwrap().to_owned()).collect();
    let mut found = names.clone();
    for name in names {
        let sets = list("ListChangeSets", &[("StackName", &name)]);
        found.extend(
            sets.split("<ChangeSetName>")
                .skip(1)
                .map(|part| format!("{name}: {}", part.split('<').next().unwrap())),
        );
    }
    found
}

#[test]
fn before_the_first_up_the_plan_comes_from_the_templates() {
    let world = World::of_golden("ha-gpu-efs");
    let place = format!("s3://{}/clusters", world.bucket());
    let outcome = world.run(["plan", "--s3-uri", &place, "--detailed-exitcode"]).expect_code(3);
    outcome.expect_stdout("control plane: create (38 resources)").expect_stdout("Plan: 5 stacks to create");
    assert_eq!(stacks_and_change_sets(&world), [""; 0]);
    let changing = ["Create", "Put", "Execute", "Delete", "Update", "Set"];
    let changed: Vec<String> = world
        .proxy
        .operations()
        .into_iter()
        .filter(|name| changing.iter().any(|verb| name.contains(verb)))
        .collect();
    assert_eq!(changed, [""; 0]);
    world
        .run(["plan"])
        .expect_code(1)
        .expect_stderr("there is no S3 URI to upload assets to")
        .expect_stderr("--create-bucket");
}

#[test]
fn a_plan_shows_properties_and_files_and_leaves_nothing_behind() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    let before = stacks_and_change_sets(&world);
    world.workspace.edit(|text| {
        text.replace("count: 2, maxCount: 4", "count: 2, maxCount: 6, labels: {size: small}")
            .replace("team: research", "team: biology")
    });
    let text = world.run(["plan", "--detailed-exitcode"]).expect_code(3);
    let text = text
        .expect_stdout("MaxSize: 4 → 6")
        .expect_stdout("+   --node-labels=infra.internal/pool=cpu,size=small")
        .expect_stdout("team: research → biology");
    let markdown = world.run(["plan", "--output", "markdown"]).expect_code(0);
    assert!(markdown.stdout.starts_with("### infra plan: research"), "{}", markdown.stdout);
    let json = world.run(["plan", "--output", "json"]).expect_code(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["changes"], true);
    let pool = json["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|stack| stack["stack"] == "research-pool-cpu")
        .unwrap();
    assert_eq!(pool["action"], "update");
    for outcome in [&text.stdout, &markdown.stdout, &json.to_string()] {
        assert!(!outcome.contains("PRIVATE KEY") && !outcome.contains("client-key-data"), "a key is shown");
    }
    assert_eq!(stacks_and_change_sets(&world), before);
}

#[test]
fn another_description_is_no_change_for_plan_and_up_alike() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    for stack in ["network", "pool"] {
        let file = format!("stacks/{stack}.yaml.tera");
        let text = std::fs::read_to_string(&file).unwrap();
        let changed = text.replacen("Description: \"", "Description: \"The same in other words. ", 1);
        assert_ne!(changed, text);
        let target = world.workspace.path(&format!("templates/{file}"));
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, changed).unwrap();
    }
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
    world.proxy.clear();
    world.up([]).expect_code(0).expect_stderr("no stack had to change");
    assert_eq!(world.proxy.count("cloudformation:CreateChangeSet"), 0);
}

#[test]
fn a_secret_that_changes_is_shown_as_changed_and_never_as_text() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.infra(["render", "credentials", "--renew"]).run().expect_code(0);
    let plan = world.run(["plan"]).expect_code(0);
    let plan = plan.expect_stdout("holds keys");
    let key = world.workspace.read("credentials/apiserver-key.pem");
    for line in key
        .lines()
        .chain(world.workspace.read("credentials/worker-key.pem").lines())
        .filter(|line| line.len() > 40)
    {
        assert!(!plan.stdout.contains(line), "a key is shown");
    }
}

#[test]
fn a_plan_needs_read_permissions_only() {
    use crate::support::fault_proxy::{Fault, Times};
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world
        .workspace
        .edit(|text| text.replace("instanceType: m5.large", "instanceType: m5.large, rootVolumeGiB: 130"));
    world.proxy.fault("cloudformation:CreateChangeSet", Fault::AccessDenied, Times::Always);
    world
        .run(["plan"])
        .expect_code(0)
        .expect_stderr("CloudFormation cannot preview")
        .expect_stdout("VolumeSize: 100 → 130");
}

#[test]
fn only_plans_are_written_as_markdown() {
    let world = World::of_golden("minimal");
    world
        .run(["status", "--output", "markdown"])
        .expect_code(2)
        .expect_stderr("only `infra plan` writes markdown");
}

#[test]
fn rendered_files_that_are_older_than_cluster_yaml_are_mentioned() {
    let world = World::of_golden("minimal");
    world.workspace.infra(["render", "stack"]).run().expect_code(0);
    let place = format!("s3://{}", world.bucket());
    let fresh = world.run(["plan", "--s3-uri", &place]).expect_code(0);
    assert!(!fresh.stderr.contains("rendered files"), "{}", fresh.stderr);
    world.workspace.edit(|text| text.replace("m5.large", "m5.xlarge"));
    world
        .run(["plan", "--s3-uri", &place])
        .expect_code(0)
        .expect_stderr("rendered files on disk are outdated");
}
