//! Findings of the preflight about KMS keys: what a key's policy and the account's default for disks mean for machines.

use serde_json::{Value, json};

use crate::preflight::{expect, expect_if, is_fixed_by, ready};
use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

fn kms(world: &World, operation: &str, body: Value) -> Value {
    world.json_call("kms", "TrentService", operation, &body)
}

fn put_policy(world: &World, key: &str, statements: Value) {
    let policy = json!({"Version": "2012-10-17", "Statement": statements}).to_string();
    kms(world, "PutKeyPolicy", json!({"KeyId": key, "PolicyName": "default", "Policy": policy}));
}

/// As AWS writes it for alias/aws/ebs.
fn open_to_account(account: &str) -> Value {
    json!([{
        "Effect": "Allow", "Principal": {"AWS": "*"}, "Resource": "*",
        "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:CreateGrant", "kms:DescribeKey"],
        "Condition": {"StringEquals": {"kms:CallerAccount": account, "kms:ViaService": "ec2.us-west-2.amazonaws.com"}},
    }])
}

#[test]
fn a_default_disk_key_of_ones_own_is_refused_unless_it_is_open_to_the_account() {
    let world = ready(World::of_golden("minimal"));
    let key = kms(&world, "CreateKey", json!({}))["KeyMetadata"]["Arn"].as_str().unwrap().to_owned();
    let of_ones_own = format!(
        "key: the account's default EBS key, with which disks are encrypted, is a key of your own: {key}"
    );
    world.ec2("ModifyEbsDefaultKmsKeyId", &[("KmsKeyId", &key)]);
    let found = expect(&world, &[&format!("refused: {of_ones_own}")]);
    is_fixed_by(&found, "set encryptDisksWithKmsKey: true");
    is_fixed_by(&found, "aws ec2 reset-ebs-default-kms-key-id --region us-west-2");
    world.proxy.clear();
    world.up([]).expect_code(1).expect_stderr(&of_ones_own);
    assert_eq!(world.proxy.count("cloudformation:CreateChangeSet"), 0);

    // Neither a key that hides its policy nor one that is gone opens anything.
    world.proxy.fault("kms:GetKeyPolicy", Fault::AccessDenied, Times::Always);
    expect(
        &world,
        &[
            "warning: key: could not be checked: the caller may not kms:GetKeyPolicy",
            &format!("refused: {of_ones_own}"),
        ],
    );
    world.proxy.heal();

    expect_if(&world, "etcd: {count: 1}", "etcd: {count: 1}\nencryptDisksWithKmsKey: true", &[]);
    put_policy(&world, &key, open_to_account(world.workspace.account()));
    expect(&world, &[]);
    put_policy(&world, &key, open_to_account("111122223333"));
    expect(&world, &[&format!("refused: {of_ones_own}")]);
    world.ec2("ResetEbsDefaultKmsKeyId", &[]);
    expect(&world, &[]);
    world.up([]).expect_code(0);

    // The volumes of a cluster have their key by now, and the default of an account may change.
    world.ec2("ModifyEbsDefaultKmsKeyId", &[("KmsKeyId", &key)]);
    let found = expect(&world, &[&format!("warning: {of_ones_own}")]);
    is_fixed_by(&found, "aws ec2 reset-ebs-default-kms-key-id --region us-west-2");
    is_fixed_by(&found, &format!("aws kms create-grant --key-id {key}"));
    let advice = found[0]["fix"].as_str().unwrap();
    assert!(!advice.contains("encryptDisksWithKmsKey"), "it would replace etcd's volumes: {advice}");
}

#[test]
fn the_policy_of_the_key_must_leave_its_use_to_iam() {
    let world = ready(World::of_golden("minimal"));
    let (key, account) = (world.workspace.setting("kmsKeyArn"), world.workspace.account());
    let root = format!("arn:aws:iam::{account}:root");
    let allow = |principal: &str| json!({"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "kms:*", "Resource": "*"});
    let closed = format!(
        "warning: key: the policy of the KMS key {key} does not let IAM policies allow kms:Decrypt, kms:GenerateDataKey"
    );

    put_policy(&world, &key, json!([allow(&format!("arn:aws:iam::{account}:role/admin"))]));
    let found = expect(&world, &[&closed]);
    is_fixed_by(&found, &format!("allows kms:* to {root}"));
    world.up([]).expect_code(0).expect_stderr("does not let IAM policies allow kms:Decrypt");

    let deny = json!({"Effect": "Deny", "Principal": "*", "Action": "kms:*", "Resource": "*"});
    put_policy(&world, &key, json!([allow(&root), deny]));
    expect(&world, &[&closed]);

    let mut of_organization = allow("*");
    of_organization["Condition"] = json!({"StringEquals": {"aws:PrincipalOrgID": "o-a1b2c3d4e5"}});
    put_policy(&world, &key, json!([of_organization]));
    expect(
        &world,
        &[&format!(
            "warning: key: whether IAM policies can allow the use of the KMS key {key} depends on conditions: aws:PrincipalOrgID"
        )],
    );

    put_policy(&world, &key, allow(account));
    expect(&world, &[]);
    world.proxy.fault("kms:GetKeyPolicy", Fault::AccessDenied, Times::Always);
    let found = expect(&world, &["warning: key: could not be checked: the caller may not kms:GetKeyPolicy"]);
    is_fixed_by(&found, "allow kms:GetKeyPolicy (`infra policy` lists all)");
}
