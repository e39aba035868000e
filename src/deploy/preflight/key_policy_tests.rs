//! Key policies as AWS, its console and teams write them, and what each means for the roles of a new cluster.

use serde_json::{Value, json};

use super::key_policy::{KeyPolicy, KeyUse, Verdict};

const ACCOUNT: &str = "111122223333";
const DECRYPT: KeyUse<'_> =
    KeyUse { action: "kms:Decrypt", account: ACCOUNT, through: "s3.us-west-2.amazonaws.com" };
const GRANT: KeyUse<'_> =
    KeyUse { action: "kms:CreateGrant", account: ACCOUNT, through: "ec2.us-west-2.amazonaws.com" };

/// What a policy of these statements says.
fn judged(statements: Value, judge: impl FnOnce(&KeyPolicy) -> Verdict) -> Option<Verdict> {
    let document: Value =
        [("Version", json!("2012-10-17")), ("Id", json!("key-default-1")), ("Statement", statements)]
            .into_iter()
            .collect();
    KeyPolicy::parse(&document.to_string()).ok().map(|policy| judge(&policy))
}

fn delegates(statements: Value) -> Option<Verdict> {
    judged(statements, |policy| policy.delegates(DECRYPT))
}

fn opens(statements: Value, key_use: KeyUse<'_>) -> Option<Verdict> {
    judged(statements, |policy| policy.allows_everyone(key_use))
}

fn root() -> Value {
    json!({"AWS": "arn:aws:iam::111122223333:root"})
}

/// The console's first statement.
fn enable_iam() -> Value {
    json!({"Sid": "Enable IAM User Permissions", "Effect": "Allow", "Principal": root(), "Action": "kms:*", "Resource": "*"})
}

/// As AWS writes it for alias/aws/ebs.
fn of_ebs() -> Value {
    json!([
        {
            "Sid": "Allow access through EBS for all principals in the account that are authorized to use EBS",
            "Effect": "Allow", "Principal": {"AWS": "*"},
            "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:CreateGrant", "kms:DescribeKey"],
            "Resource": "*",
            "Condition": {"StringEquals": {
                "kms:CallerAccount": ACCOUNT, "kms:ViaService": "ec2.us-west-2.amazonaws.com"}},
        },
        {
            "Sid": "Allow direct access to key metadata to the account", "Effect": "Allow", "Principal": root(),
            "Action": ["kms:Describe*", "kms:Get*", "kms:List*", "kms:RevokeGrant"], "Resource": "*",
        },
    ])
}

#[test]
fn the_policies_that_aws_writes_delegate() {
    assert_eq!(delegates(json!([enable_iam()])), Some(Verdict::Allowed));
    assert_eq!(delegates(enable_iam()), Some(Verdict::Allowed), "one statement without a list");
    let administrators = json!({
        "Sid": "Allow access for Key Administrators", "Effect": "Allow",
        "Principal": {"AWS": ["arn:aws:iam::111122223333:role/admin", "arn:aws:iam::111122223333:user/ada"]},
        "Action": ["kms:Create*", "kms:Describe*", "kms:ScheduleKeyDeletion"], "Resource": "*",
    });
    assert_eq!(delegates(json!([administrators.clone(), enable_iam()])), Some(Verdict::Allowed));
    assert_eq!(delegates(json!([administrators])), Some(Verdict::NotAllowed));
}

#[test]
fn a_policy_that_names_only_roles_does_not_delegate() {
    // kops#5532: the administrator and the roles of one cluster are listed, and nobody else.
    let listed = json!([
        {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:role/admin"}, "Action": "kms:*", "Resource": "*"},
        {"Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam::111122223333:role/masters.k8s.example.com"]},
         "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"], "Resource": "*"},
        {"Effect": "Allow", "Principal": {"Service": "s3.amazonaws.com"}, "Action": "kms:Decrypt", "Resource": "*"},
    ]);
    assert_eq!(delegates(listed), Some(Verdict::NotAllowed));
    let metadata = json!({"Effect": "Allow", "Principal": root(), "Action": ["kms:Describe*", "kms:Get*"], "Resource": "*"});
    assert_eq!(delegates(metadata), Some(Verdict::NotAllowed));
    let other = json!({"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::444455556666:root"}, "Action": "kms:*", "Resource": "*"});
    assert_eq!(delegates(other), Some(Verdict::NotAllowed));
}

#[test]
fn an_account_is_named_in_several_ways() {
    for principal in [
        json!("*"),
        json!({"AWS": "*"}),
        json!({"AWS": ACCOUNT}),
        json!({"AWS": ["444455556666", ACCOUNT]}),
        json!({"AWS": ["arn:aws:iam::444455556666:root", "arn:aws-cn:iam::111122223333:root"]}),
    ] {
        let statement = json!({"Effect": "Allow", "Principal": principal, "Action": ["kms:List*", "kms:De*"], "Resource": "*"});
        assert_eq!(delegates(statement), Some(Verdict::Allowed), "{principal}");
    }
    let all_but = json!({"Effect": "Allow", "Principal": root(), "NotAction": "kms:ScheduleKeyDeletion", "Resource": "*"});
    assert_eq!(delegates(all_but), Some(Verdict::Allowed));
    let all_but =
        json!({"Effect": "Allow", "Principal": root(), "NotAction": ["KMS:decrypt"], "Resource": "*"});
    assert_eq!(delegates(all_but), Some(Verdict::NotAllowed));
}

#[test]
fn conditions_may_exclude_the_use_or_not_be_understood() {
    let under = |condition: Value| {
        delegates(json!({
            "Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "kms:*", "Resource": "*", "Condition": condition,
        }))
    };
    assert_eq!(under(json!({"StringEquals": {"kms:CallerAccount": [ACCOUNT]}})), Some(Verdict::Allowed));
    assert_eq!(
        under(json!({"StringEquals": {"kms:CallerAccount": "444455556666"}})),
        Some(Verdict::NotAllowed)
    );
    assert_eq!(
        under(json!({"StringLike": {"kms:ViaService": ["s3.*.amazonaws.com"]}})),
        Some(Verdict::Allowed)
    );
    assert_eq!(
        under(json!({"StringEquals": {"kms:ViaService": "ec2.us-west-2.amazonaws.com"}})),
        Some(Verdict::NotAllowed)
    );
    assert_eq!(under(json!({"Bool": {"kms:GrantIsForAWSResource": true}})), Some(Verdict::NotAllowed));
    assert_eq!(
        under(
            json!({"StringEquals": {"aws:PrincipalOrgID": "o-a1b2c3"}, "Bool": {"aws:SecureTransport": "true"}})
        ),
        Some(Verdict::Conditional(vec!["aws:PrincipalOrgID".to_owned()]))
    );
}

#[test]
fn a_denial_counts_before_everything_else() {
    let with = |deny: Value| delegates(json!([enable_iam(), deny]));
    let deny = json!({"Effect": "Deny", "Principal": "*", "Action": "kms:Decrypt", "Resource": "*"});
    assert_eq!(with(deny), Some(Verdict::Denied));
    let all_but_one = json!({
        "Effect": "Deny", "NotPrincipal": {"AWS": ["arn:aws:iam::111122223333:role/admin", "arn:aws:iam::111122223333:root"]},
        "Action": "kms:*", "Resource": "*",
    });
    assert_eq!(with(all_but_one), Some(Verdict::Denied));
    let one_role = json!({"Effect": "Deny", "Principal": {"AWS": "arn:aws:iam::111122223333:role/x"}, "Action": "kms:*", "Resource": "*"});
    assert_eq!(with(one_role), Some(Verdict::Allowed));
    let deletion =
        json!({"Effect": "Deny", "Principal": "*", "Action": "kms:ScheduleKeyDeletion", "Resource": "*"});
    assert_eq!(with(deletion), Some(Verdict::Allowed));
    let without_tls = json!({
        "Effect": "Deny", "Principal": "*", "Action": "kms:*", "Resource": "*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    });
    assert_eq!(with(without_tls), Some(Verdict::Allowed));
    let others = json!({
        "Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "kms:*", "Resource": "*",
        "Condition": {"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::111122223333:role/admin"}},
    });
    assert_eq!(with(others), Some(Verdict::Conditional(vec!["aws:PrincipalArn".to_owned()])));
}

#[test]
fn a_key_is_open_to_an_account_as_ebs_opens_its_own() {
    assert_eq!(opens(of_ebs(), GRANT), Some(Verdict::Allowed));
    let reading = KeyUse { action: "kms:ReEncryptFrom", ..GRANT };
    assert_eq!(opens(of_ebs(), reading), Some(Verdict::Allowed));
    assert_eq!(opens(of_ebs(), DECRYPT), Some(Verdict::NotAllowed), "not through S3");
    let elsewhere = KeyUse { account: "444455556666", ..GRANT };
    assert_eq!(opens(of_ebs(), elsewhere), Some(Verdict::NotAllowed));
    assert_eq!(opens(enable_iam(), GRANT), Some(Verdict::NotAllowed), "IAM must allow it, too");
}

#[test]
fn what_is_no_policy_is_refused() {
    assert!(KeyPolicy::parse("").is_err());
    assert!(KeyPolicy::parse(r#"{"Version": "2012-10-17"}"#).is_err());
}
