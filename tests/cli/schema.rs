//! `infra schema`, judged by another project's validator.

use serde_json::Value;

use crate::support::{MINIMAL, Outcome, Workspace, tool};

fn check(workspace: &Workspace, file: &str) -> Outcome {
    workspace.write("schema.json", workspace.infra(["schema"]).expect_code(0).stdout);
    let mut command = tool("venv/bin/check-jsonschema");
    command.arg("--schemafile").arg(workspace.path("schema.json")).arg(workspace.path(file));
    Outcome::of(&mut command)
}

/// Removes the "#" from every optional key, which leaves prose alone: prose has one space behind it.
fn uncomment(text: &str) -> String {
    let key = |line: &str| {
        let rest = line.strip_prefix('#')?;
        let body = rest.trim_start_matches(' ');
        let indent = rest.len() - body.len();
        (indent != 1 && body.starts_with(|c: char| c.is_ascii_lowercase())).then(|| rest.to_owned())
    };
    text.lines().map(|line| key(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn init(arguments: &[&str]) -> Workspace {
    let workspace = Workspace::new();
    let mut command = workspace.command([
        "init",
        "--cluster-name=paddle",
        "--external-dns-name=k8s.example.com",
        "--region=us-west-2",
        "--availability-zone=us-west-2a",
        "--kms-key-arn=arn:aws:kms:us-west-2:111122223333:key/1234abcd",
    ]);
    Outcome::of(command.args(arguments)).expect_code(0);
    workspace
}

#[test]
fn what_init_writes_fits_the_schema_with_and_without_its_optional_keys() {
    for arguments in [
        &[][..],
        &["--no-efs"],
        &["--ha", "--gpu=g5.xlarge", "--gpu-count=3", "--key-name=k", "--s3-uri=s3://bucket/p"],
    ] {
        let workspace = init(arguments);
        check(&workspace, "cluster.yaml").expect_code(0);
        let everything = uncomment(&workspace.read("cluster.yaml"));
        assert!(everything.contains("\nstorage:\n  efs:\n    mountPath: /mnt/efs"), "{everything}");
        workspace.write("cluster.yaml", everything);
        check(&workspace, "cluster.yaml").expect_code(0);
        workspace.infra(["validate"]).expect_code(0);
    }
}

#[test]
fn what_init_writes_mentions_every_key() {
    let workspace = init(&["--gpu=g5.xlarge"]);
    let text = workspace.read("cluster.yaml");
    let schema: Value = serde_json::from_str(&workspace.infra(["schema"]).stdout).unwrap();
    let sections = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    let keys = sections.filter_map(|section| section["properties"].as_object()).flat_map(|keys| keys.keys());
    let missing: Vec<&String> = keys.filter(|key| !text.contains(&format!("{key}:"))).collect();
    assert!(missing.is_empty(), "cluster.yaml does not speak of {missing:?}");
}

#[test]
fn the_defaults_that_init_shows_are_the_defaults() {
    let workspace = init(&[]);
    let schema: Value = serde_json::from_str(&workspace.infra(["schema"]).stdout).unwrap();
    let everything = uncomment(&workspace.read("cluster.yaml"));
    let defs = &schema["$defs"];
    for (section, key) in [
        ("KubernetesFile", "version"),
        ("KubernetesFile", "podCIDR"),
        ("KubernetesFile", "serviceCIDR"),
        ("NetworkFile", "vpcCIDR"),
        ("EtcdFile", "instanceType"),
        ("EtcdFile", "volumeGiB"),
        ("EfsFile", "mountPath"),
        ("PoolFile", "rootVolumeGiB"),
        ("PoolFile", "metadataHopLimit"),
    ] {
        let default = &defs[section]["properties"][key]["default"];
        let shown = match default {
            Value::String(text) => format!("{key}: {text}"),
            other => format!("{key}: {other}"),
        };
        assert!(everything.contains(&shown), "{section}: {shown} is not shown");
    }
}

#[test]
fn the_schema_refuses_what_validate_refuses_in_structure() {
    let workspace = Workspace::new();
    for bad in ["bananas: 1\n", "etcd: {count: many}\n", "os: {channel: stabel}\n", "pools: [{name: x}]\n"] {
        workspace.write("cluster.yaml", format!("{MINIMAL}{bad}"));
        check(&workspace, "cluster.yaml").expect_code(1);
        workspace.infra(["validate"]).expect_code(2);
    }
}

#[test]
fn every_key_of_the_schema_is_described() {
    let schema: Value = serde_json::from_str(&Workspace::new().infra(["schema"]).stdout).unwrap();
    let sections = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    for (key, value) in sections.filter_map(|section| section["properties"].as_object()).flatten() {
        assert!(value["description"].is_string(), "{key} has no description");
    }
}
