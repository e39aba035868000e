//! The KMS key that `infra init --create-key` creates, and `infra destroy` keeps.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fault_proxy::{Fault, Times};
use crate::support::outcome::Outcome;
use crate::support::workspace::Workspace;
use crate::support::world::World;

const ALIAS: &str = "alias/infra-minimal";
const FLAGS: [&str; 9] = [
    "init",
    "--cluster-name",
    "minimal",
    "--external-dns-name",
    "k8s.example.com",
    "--region",
    "us-west-2",
    "--availability-zone",
    "us-west-2a",
];

fn kms(world: &World, operation: &str, body: Value) -> Value {
    world.json_call("kms", "TrentService", operation, &body)
}

/// `infra init` in an empty directory, in the account of the world.
fn init(world: &World, more: &[&str]) -> (Outcome, Workspace) {
    let directory = world.workspace.elsewhere(false);
    fs::remove_file(directory.path("cluster.yaml")).unwrap();
    let outcome = world.infra_in(&directory, FLAGS.into_iter().chain(more.iter().copied())).run();
    (outcome, directory)
}

/// The ARN of the key behind the alias.
fn key_of_alias(world: &World) -> String {
    let key = kms(world, "DescribeKey", json!({"KeyId": ALIAS}));
    key["KeyMetadata"]["Arn"].as_str().unwrap_or_else(|| panic!("{key}")).to_owned()
}

fn count_keys(world: &World) -> usize {
    kms(world, "ListKeys", json!({}))["Keys"].as_array().unwrap().len()
}

#[test]
fn init_creates_the_key_once_and_writes_its_arn() {
    let world = World::of_golden("minimal");
    let (outcome, directory) = init(&world, &["--create-key"]);
    let key = key_of_alias(&world);
    outcome
        .expect_code(0)
        .expect_stderr(&format!("created KMS key {key} ({ALIAS}); `infra destroy` keeps it"));
    assert_eq!(directory.setting("kmsKeyArn"), key);
    assert!(key.starts_with(&format!("arn:aws:kms:us-west-2:{}:key/", world.workspace.account())), "{key}");
    directory.infra(["validate"]).run().expect_code(0);

    let named = || json!({"KeyId": key});
    let described = kms(&world, "DescribeKey", named());
    assert_eq!(described["KeyMetadata"]["KeySpec"], "SYMMETRIC_DEFAULT");
    assert_eq!(kms(&world, "GetKeyRotationStatus", named())["KeyRotationEnabled"], true);
    let tags = kms(&world, "ListResourceTags", named())["Tags"].to_string();
    assert!(
        tags.contains("infra:cluster") && tags.contains("minimal") && tags.contains("infra:kept"),
        "{tags}"
    );
    // Preflight finds nothing wrong with its policy.
    let place = format!("s3://{}/clusters", world.bucket());
    let checked = world.infra_in(&directory, ["validate", "--online", "--s3-uri", &place]).run();
    assert!(!checked.stderr.contains("key: "), "{}", checked.stderr);

    let (outcome, directory) = init(&world, &["--create-key"]);
    outcome
        .expect_code(0)
        .expect_stderr(&format!("using KMS key {key} ({ALIAS}), which was created earlier"));
    assert_eq!(directory.setting("kmsKeyArn"), key);
    assert_eq!((world.proxy.count("kms:CreateKey"), count_keys(&world)), (1, 1));
}

#[test]
fn a_key_that_a_run_did_not_finish_is_finished_by_the_next() {
    for (operation, fault) in [
        ("kms:CreateKey", Fault::CutAfterForwarding),
        ("kms:EnableKeyRotation", Fault::AccessDenied),
        ("kms:CreateAlias", Fault::AccessDenied),
        ("kms:CreateAlias", Fault::CutBeforeForwarding),
    ] {
        let world = World::of_golden("minimal");
        // Another user's key, without an alias too.
        kms(&world, "CreateKey", json!({"Tags": [{"TagKey": "infra:cluster", "TagValue": "minimal"}]}));
        world.proxy.fault(operation, fault, Times::Always);
        let (outcome, directory) = init(&world, &["--create-key"]);
        outcome.expect_code(1).expect_stderr(operation);
        assert!(!directory.path("cluster.yaml").exists());
        assert_eq!(count_keys(&world), 2, "{operation}");
        world.proxy.heal();

        let (outcome, directory) = init(&world, &["--create-key"]);
        let key = key_of_alias(&world);
        outcome.expect_code(0).expect_stderr(&format!(
            "using KMS key {key} ({ALIAS}), which an earlier run created and this one finished"
        ));
        assert_eq!((directory.setting("kmsKeyArn"), count_keys(&world)), (key.clone(), 2), "{operation}");
        let rotation = kms(&world, "GetKeyRotationStatus", json!({"KeyId": key}));
        assert_eq!(rotation["KeyRotationEnabled"], true);
    }
}

#[test]
fn a_lost_answer_and_a_missing_permission_say_what_to_do() {
    let world = World::of_golden("minimal");
    world.proxy.fault("kms:CreateKey", Fault::CutBeforeForwarding, Times::Always);
    let (outcome, _) = init(&world, &["--create-key"]);
    outcome.expect_code(1).expect_stderr("run the same command again: it finds a key that was created");
    assert_eq!(world.proxy.count("kms:CreateKey"), 1, "a second attempt could be a second key");
    world.proxy.heal();
    world.proxy.fault("kms:CreateKey", Fault::AccessDenied, Times::Always);
    let (outcome, _) = init(&world, &["--create-key"]);
    outcome.expect_code(1).expect_stderr("allow kms:CreateKey, or give a key with --kms-key-arn");
    world.proxy.heal();
    world.proxy.fault("kms:DescribeKey", Fault::ExpiredToken, Times::Always);
    let (outcome, _) = init(&world, &["--create-key"]);
    outcome.expect_code(4).expect_stderr("renew them");
    assert_eq!(count_keys(&world), 0);
}

#[test]
fn an_interrupted_init_says_that_the_next_finds_the_key() {
    let world = World::of_golden("minimal");
    world.proxy.fault("kms:CreateAlias", Fault::Hang(Duration::from_secs(60)), Times::Always);
    let directory = world.workspace.elsewhere(false);
    fs::remove_file(directory.path("cluster.yaml")).unwrap();
    let running = world.infra_in(&directory, FLAGS.into_iter().chain(["--create-key"])).spawn();
    world.proxy.wait_for("kms:CreateAlias", 1);
    running.interrupt();
    running.wait().expect_code(130).expect_stderr("the same command finds a key that was created");
    assert!(!directory.path("cluster.yaml").exists());
    world.proxy.heal();
    init(&world, &["--create-key"]).0.expect_code(0).expect_stderr("which an earlier run created");
    assert_eq!(count_keys(&world), 1);
}

#[test]
fn an_alias_of_a_foreign_or_disabled_key_is_refused() {
    let world = World::of_golden("minimal");
    let made = kms(&world, "CreateKey", json!({}));
    let theirs = made["KeyMetadata"]["Arn"].as_str().unwrap();
    kms(&world, "CreateAlias", json!({"AliasName": ALIAS, "TargetKeyId": theirs}));
    let (outcome, directory) = init(&world, &["--create-key"]);
    let outcome = outcome.expect_code(1).expect_stderr(&format!("give `--kms-key-arn {theirs}`"));
    outcome.expect_stderr(&format!("aws kms delete-alias --alias-name {ALIAS} --region us-west-2"));
    assert!(!directory.path("cluster.yaml").exists());
    kms(&world, "DeleteAlias", json!({"AliasName": ALIAS}));

    init(&world, &["--create-key"]).0.expect_code(0);
    let key = key_of_alias(&world);
    kms(&world, "ScheduleKeyDeletion", json!({"KeyId": key, "PendingWindowInDays": 30}));
    let (outcome, _) = init(&world, &["--create-key"]);
    let outcome = outcome.expect_code(1).expect_stderr("which is not enabled: PendingDeletion");
    outcome.expect_stderr(&format!("aws kms cancel-key-deletion --key-id {key} --region us-west-2"));
    // A new key, as the message says.
    kms(&world, "DeleteAlias", json!({"AliasName": ALIAS}));
    init(&world, &["--create-key"]).0.expect_code(0).expect_stderr("created KMS key");
    assert_ne!(key_of_alias(&world), key);
}

#[test]
fn only_create_key_calls_aws_and_only_when_all_else_is_right() {
    let world = World::of_golden("minimal");
    world.proxy.clear();
    let (outcome, directory) = init(&world, &["--create-key", "--gpu", "p3.2xlarge"]);
    outcome.expect_code(2).expect_stderr("AWS no longer offers it");
    assert!(!directory.path("cluster.yaml").exists());
    world.infra_in(&world.workspace, FLAGS.into_iter().chain(["--create-key"])).run().expect_code(1);
    let key = "arn:aws:kms:us-west-2:111122223333:key/1234abcd";
    let directory = world.workspace.elsewhere(false);
    fs::remove_file(directory.path("cluster.yaml")).unwrap();
    directory
        .infra(FLAGS.into_iter().chain(["--kms-key-arn", key]))
        .env("AWS_ENDPOINT_URL", &world.proxy.url())
        .run()
        .expect_code(0);
    assert_eq!(world.proxy.operations(), Vec::<String>::new());
}

#[test]
fn destroy_keeps_the_key_that_init_created_and_names_the_command_that_deletes_it() {
    let world = World::of_golden("minimal");
    init(&world, &["--create-key"]).0.expect_code(0);
    let key = key_of_alias(&world);
    let old = world.workspace.setting("kmsKeyArn");
    world.workspace.edit(|text| text.replace(&old, &key));
    world.up([]).expect_code(0);
    let command = format!(
        "`aws kms schedule-key-deletion --key-id {key} --pending-window-in-days 30 --region us-west-2` schedules its deletion"
    );
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    let kept = plan.stdout.split_once("To be kept:").unwrap().1;
    assert!(kept.contains(&command) && kept.contains("cannot be read"), "{}", plan.stdout);
    assert!(!kept.contains("existed before the cluster"), "{}", plan.stdout);

    let events = world.run(["destroy", "--yes", "--output", "json"]).expect_code(0).stdout;
    let last: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["complete"]), (&json!("destroyed"), &json!(true)), "{last}");
    let item = last["kept"].as_array().unwrap().iter().find(|item| item["id"] == key.as_str());
    let item = item.unwrap_or_else(|| panic!("{last:#}"));
    assert_eq!(item["kind"], "kms-key");
    assert!(item["why"].as_str().unwrap().contains(&command), "{item}");

    // Also when only the tags know, and when there is no data that needs the key.
    let by_name = [
        "destroy",
        "--cluster-name",
        "minimal",
        "--region",
        "us-west-2",
        "--delete-data",
        "--confirm",
        "minimal",
    ];
    let again = world
        .run(by_name)
        .expect_code(0)
        .expect_stderr(&format!("KMS key {key} is kept: created by `infra init`; {command}"));
    assert!(
        !again.stderr.contains("cannot be read") && !again.stderr.contains("left over"),
        "{}",
        again.stderr
    );

    kms(&world, "ScheduleKeyDeletion", json!({"KeyId": key, "PendingWindowInDays": 30}));
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("its deletion is scheduled");
}

#[test]
fn a_key_that_only_has_the_tag_of_the_cluster_is_not_called_created() {
    let world = World::of_golden("minimal");
    let made =
        kms(&world, "CreateKey", json!({"Tags": [{"TagKey": "infra:cluster", "TagValue": "minimal"}]}));
    let key = made["KeyMetadata"]["Arn"].as_str().unwrap();
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    assert!(!plan.stdout.contains("schedule-key-deletion"), "{}", plan.stdout);
    world.run(["destroy", "--yes"]).expect_code(7).expect_stderr(&format!("left over: resource {key}"));
}
