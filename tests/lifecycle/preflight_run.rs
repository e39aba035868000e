//! Preflight as a whole: everything at once, quickly, without changing anything, and what `up` makes of it.

use std::time::Duration;

use infra::blueprint::Blueprint;
use infra::config;
use infra::credentials::{AuthoritySource, CredentialStore, Request, ensure_credentials};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::preflight::{changing_calls, expect, is_fixed_by, ready};
use crate::support::fault_proxy::{Fault, Times};
use crate::support::reading::is_reading;
use crate::support::world::World;

#[test]
fn all_faults_of_an_account_are_reported_together() {
    let world = ready(World::alone("ha-gpu-efs"));
    world.control(json!({
        "missing_roles": ["AWSServiceRoleForEC2Spot"],
        "keys": {"1234abcd-12ab-34cd-56ef-1234567890ab": "Disabled"},
        "not_offered": [["m5.large", "us-west-2c"]],
        "quotas": {"L-3819A6DF": 0},
    }));
    world.workspace.edit(|text| text.replace("keyName: team-key", "keyName: nobodys-key"));
    let key = world.workspace.setting("kmsKeyArn");
    let expected = [
        "refused: service-linked roles: the account has no IAM role AWSServiceRoleForEC2Spot".to_owned(),
        format!("refused: key: the KMS key {key} is not enabled: Disabled"),
        "refused: key pair: there is no key pair 'nobodys-key' in us-west-2".to_owned(),
        "refused: instance types: pool cpu of m5.large cannot start in us-west-2c".to_owned(),
        "refused: quotas: 12 vCPUs of spot G machines are needed by pool gpu; the quota is 0, and 0 are in use"
            .to_owned(),
    ];
    expect(&world, &expected.each_ref().map(String::as_str));

    let place = format!("s3://{}/clusters", world.bucket());
    let said = world.run(["validate", "--online", "--s3-uri", &place]).expect_code(2);
    let said = said.expect_stderr("the account is not ready for this cluster");
    for finding in &expected {
        let said = said.clone().expect_stderr(finding);
        said.expect_stderr(&format!("account {}, as arn:aws:iam::", world.workspace.account()));
    }
    assert_eq!((said.stderr.matches("  why:  ").count(), said.stderr.matches("  fix:  ").count()), (5, 5));

    // A bucket that is missing is no finding if it will be created.
    world.proxy.clear();
    let missing = format!("s3://missing-{}", world.workspace.account());
    let refused = world.run(["up", "--s3-uri", &missing, "--create-bucket"]).expect_code(1);
    for finding in &expected {
        refused.clone().expect_stderr(finding);
    }
    assert!(!refused.stderr.contains("bucket:"), "{}", refused.stderr);
    assert_eq!(changing_calls(&world), [""; 0]);
    assert!(!world.workspace.path("infra.lock").exists());
}

#[test]
fn up_continues_with_warnings_and_past_refusals_only_with_the_flag() {
    let world = World::alone("minimal");
    world.control(json!({"quotas": {"L-1216C47A": 0}}));
    let refused =
        world.up([]).expect_code(1).expect_stderr("refused: quotas: ").expect_stderr("warning: account: ");
    assert!(refused.stderr.contains("warning: hosted zone: "), "{}", refused.stderr);
    assert_eq!(changing_calls(&world), [""; 0]);

    world.proxy.clear();
    let loud = "warning: preflight is skipped: what it would have found now fails later, and slowly";
    world.up(["--skip-preflight"]).expect_code(0).expect_stderr(loud).expect_stderr("done: https://");
    assert_eq!(world.proxy.count("servicequotas:GetServiceQuota"), 0);
    // The machines exist now: how many more the account may have does not matter.
    world.up([]).expect_code(0);
    assert_eq!(world.proxy.count("servicequotas:GetServiceQuota"), 0);
}

/// One key may serve accounts that have clusters of the same name.
#[test]
fn a_grant_for_an_iam_role_of_another_account_does_not_count() {
    let world = World::of_golden("private");
    let key = world.workspace.setting("kmsKeyArn");
    let role = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling";
    let theirs = json!({
        "KeyId": key, "GranteePrincipal": format!("arn:aws:iam::444455556666:{role}"), "Operations": ["Decrypt"],
        "Name": "infra-vault-disks",
    });
    world.json_call("kms", "TrentService", "CreateGrant", &theirs);
    world.up([]).expect_code(0).expect_stderr("granted Auto Scaling the use of");
    let grants = world.json_call("kms", "TrentService", "ListGrants", &json!({"KeyId": key}));
    let ours = format!("arn:aws:iam::{}:{role}", world.workspace.account());
    let grants = grants["Grants"].as_array().unwrap();
    assert!(grants.iter().any(|grant| grant["GranteePrincipal"] == ours), "{grants:#?}");
}

#[test]
fn quotas_must_cover_later_machines() {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    world.control(json!({"quotas": {"L-DB2E81BA": 0, "L-1216C47A": 7}}));
    world.workspace.edit(|text| format!("{text}- {{name: gpu, instanceType: g5.xlarge, count: 2}}\n"));
    world.up([]).expect_code(1).expect_stderr(
        "refused: quotas: 8 vCPUs of on-demand G machines are needed by pool gpu; the quota is 0, and 0 are in use",
    );
    // What exists counts as in use, and only the rest is needed.
    world.workspace.edit(|text| {
        let text = text.split("- {name: gpu").next().unwrap();
        text.replace("instanceType: m5.large", "instanceType: m5.large, count: 3")
    });
    let outcome =
        world.run(["validate", "--online", "--s3-uri", &format!("s3://{}/clusters", world.bucket())]);
    outcome.expect_stderr(
        "warning: quotas: 4 vCPUs of on-demand standard machines are needed by pool cpu; the quota is 7, and 6 are in use",
    );
}

#[test]
fn findings_of_the_preflight_are_events() {
    let world = World::alone("minimal");
    world.control(json!({"quotas": {"L-1216C47A": 0}}));
    let outcome = world.up(["--output", "json"]).expect_code(1);
    let events: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
    let found: Vec<String> = events
        .iter()
        .map(|event| ["type", "severity", "subject"].map(|key| text(event, key)).join(" "))
        .collect();
    let expected = ["warning account", "warning bucket", "refused quotas", "warning hosted zone"];
    assert_eq!(found, expected.map(|finding| format!("preflight {finding}")));
}

/// Every answer takes a while, as it does across an ocean.
#[test]
fn preflight_calls_are_few_and_run_in_parallel() {
    let world = ready(World::of_golden("ha-gpu-efs"));
    // On a busy machine the first answer may arrive before the sixth call.
    let most_at_once = [400, 1600, 6400].into_iter().map(|delay| {
        world.proxy.heal();
        world.proxy.clear();
        world.proxy.fault("*", Fault::SlowBody(Duration::from_millis(delay)), Times::Always);
        expect(&world, &[]);
        let calls = world.proxy.calls();
        assert!(calls.iter().all(|call| is_reading(&call.operation)), "{:?}", world.proxy.operations());
        let first = calls.iter().position(|call| call.operation == "sts:GetCallerIdentity").unwrap();
        let count = calls.len() - first;
        assert!(count <= 22, "{count}: {:?}", world.proxy.operations());
        world.proxy.most_in_flight()
    });
    assert!(most_at_once.into_iter().any(|most| most >= 6), "fewer than six at the same time");
}

#[test]
fn certificates_that_expire_within_a_month_are_reported() {
    let world = ready(World::of_golden("minimal"));
    let reissue = |days: u16, now: OffsetDateTime| {
        let cluster = config::load(&world.workspace.path("cluster.yaml")).unwrap().value;
        let mut identities = Blueprint::new(cluster).unwrap().identities;
        let worker = identities.certificates.iter_mut().find(|certificate| certificate.name == "worker");
        worker.unwrap().days = days;
        let store = CredentialStore::open(&world.workspace.credentials(), || {}).unwrap();
        let authorities = AuthoritySource::Generated;
        let request =
            Request { identities: &identities, now, authorities, replace_authorities: true, renew: true };
        ensure_credentials(&store, &request).unwrap();
    };
    let now = OffsetDateTime::now_utc();
    reissue(30, now);
    let found = expect(&world, &["warning: certificates: the certificate worker expires in 29 days"]);
    is_fixed_by(&found, "infra render credentials");
    reissue(30, now - Duration::from_hours(24 * 40));
    expect(&world, &["refused: certificates: the certificate worker has expired"]);
}

/// A role with fewer rights than it should have gets a warning, and is not stopped.
#[test]
fn a_check_without_permission_is_a_warning() {
    let world = ready(World::of_golden("ha-gpu-efs"));
    let denied = [
        ("service-linked roles", "iam:GetRole", "iam:GetRole"),
        ("bucket", "s3:GetPublicAccessBlock", "s3:GetBucketPublicAccessBlock"),
        ("key", "kms:DescribeKey", "kms:DescribeKey"),
        ("key", "ec2:GetEbsDefaultKmsKeyId", "ec2:GetEbsDefaultKmsKeyId"),
        ("key pair", "ec2:DescribeKeyPairs", "ec2:DescribeKeyPairs"),
        ("availability zones", "ec2:DescribeAvailabilityZones", "ec2:DescribeAvailabilityZones"),
        ("instance types", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypeOfferings"),
        ("quotas", "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypes"),
        ("quotas", "ec2:DescribeInstances", "ec2:DescribeInstances"),
        ("quotas", "servicequotas:GetServiceQuota", "servicequotas:GetServiceQuota"),
        ("quotas", "ec2:DescribeAddresses", "ec2:DescribeAddresses"),
        ("image", "ec2:DescribeImages", "ec2:DescribeImages"),
        ("file system", "elasticfilesystem:DescribeFileSystems", "elasticfilesystem:DescribeFileSystems"),
        ("hosted zone", "route53:ListHostedZones", "route53:ListHostedZones"),
    ];
    for (_, operation, _) in denied {
        world.proxy.fault(operation, Fault::AccessDenied, Times::Always);
    }
    let expected = denied.map(|(subject, _, action)| {
        format!("warning: {subject}: could not be checked: the caller may not {action}")
    });
    let found = expect(&world, &expected.each_ref().map(String::as_str));
    is_fixed_by(&found, "allow ec2:DescribeImages (`infra policy` lists all)");

    world.proxy.heal();
    world.proxy.fault("ec2:DescribeImages", Fault::ExpiredToken, Times::Always);
    world.run(["validate", "--online"]).expect_code(4);
}
