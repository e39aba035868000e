//! What is uploaded for a cluster is ours when it is used, whoever else may write to the bucket; and the bucket is the account's own.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::aws::Aws;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

const FILLING: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// A cluster whose control plane has too large a template for a call, because of its tags: it is uploaded to S3.
fn large_world() -> World {
    let world = World::of_golden("minimal");
    let tags: String = (10..40).map(|number| format!("  tag-{number}: {FILLING}{FILLING}\n")).collect();
    world.workspace.edit(|text| format!("{text}tags:\n{tags}"));
    world
}

/// The uploaded templates by their keys.
fn templates(aws: &Aws, bucket: &str) -> BTreeMap<String, String> {
    let path = format!("/{bucket}?list-type=2&prefix=clusters/minimal/stacks/");
    let listed = aws.send("s3", &aws.region, "GET", &path, "").text();
    let keys = listed.split("<Key>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
    keys.map(|key| {
        let body = aws.send("s3", &aws.region, "GET", &format!("/{bucket}/{key}"), "").text();
        (key, body)
    })
    .collect()
}

/// The same with one more role, which another account may assume, and as long as it was.
fn planted(body: &str) -> String {
    let role = json!({
        "Type": "AWS::IAM::Role",
        "Properties": {
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/AdministratorAccess"],
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [{
                "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::666666666666:root"}, "Action": "sts:AssumeRole"}]},
        },
    });
    let mut text = body.replacen("\"Resources\":{", &format!("\"Resources\":{{\"Planted\":{role},"), 1);
    while text.len() > body.len() {
        let shorter = &FILLING[(text.len() - body.len()).min(FILLING.len())..];
        text = text.replacen(FILLING, shorter, 1);
    }
    assert!(text.contains("Planted") && text.len() == body.len());
    text
}

fn plant(aws: &Aws, bucket: &str, key: &str, body: &str) {
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{bucket}/{key}"), body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

/// From now on, someone replaces every template just before CloudFormation reads it.
fn replace_templates_in_time(world: &World) {
    let (aws, bucket) = (world.aws(), world.bucket());
    world.proxy.before("cloudformation:CreateChangeSet", move || {
        for (key, body) in templates(&aws, &bucket) {
            if !body.contains("Planted") {
                plant(&aws, &bucket, &key, &planted(&body));
            }
        }
    });
}

fn cloudformation(world: &World, action: &str) -> String {
    let aws = world.aws();
    let form = [("Action", action), ("Version", "2010-05-15"), ("StackName", "minimal-control-plane")];
    aws.post("cloudformation", &aws.region, &form)
}

#[test]
fn a_planted_object_of_the_same_name_and_size_is_replaced() {
    let before = large_world();
    before.up([]).expect_code(0);
    let ours = templates(&before.aws(), &before.bucket());
    assert_eq!(ours.len(), 1, "only the control plane's is that large");

    let world = large_world();
    let (key, body) = ours.first_key_value().unwrap();
    plant(&world.aws(), &world.bucket(), key, &planted(body));
    world.up([]).expect_code(0);
    assert_eq!(templates(&world.aws(), &world.bucket()), ours);
    assert!(!cloudformation(&world, "GetTemplate").contains("Planted"));
    world.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_stdout("No changes");

    // What is ours is not uploaded again.
    world.proxy.clear();
    world.workspace.edit(|text| text.replace("instanceType: m5.large", "instanceType: m5.xlarge"));
    world.up(["--yes"]).expect_code(0);
    assert_eq!(templates(&world.aws(), &world.bucket()), ours);
    let uploads = world.proxy.calls().into_iter().filter(|call| call.operation == "s3:PutObject");
    let uploads: Vec<String> = uploads.filter_map(|call| call.target).collect();
    assert!(uploads.iter().all(|target| !target.contains("/stacks/")), "{uploads:?}");
}

#[test]
fn a_template_that_is_replaced_before_cloudformation_reads_it_is_refused() {
    let refused = "CloudFormation read a template for minimal-control-plane that infra did not write";
    let world = large_world();
    replace_templates_in_time(&world);
    let outcome = world.up([]).expect_code(1);
    outcome.expect_stderr(refused).expect_stderr("find out who may write below the S3 URI");
    assert_eq!(world.aws().stack_status("minimal-control-plane"), None);
    world.proxy.heal();
    world.up([]).expect_code(0);
    assert!(!cloudformation(&world, "GetTemplate").contains("Planted"));

    // A change of a cluster that exists.
    world.workspace.edit(|text| text.replace("tag-10: ", "tag-10: y"));
    replace_templates_in_time(&world);
    let plan = world.run(["plan"]).expect_code(1);
    let plan = plan.expect_stderr(refused);
    assert!(!plan.stdout.contains("Plan:") && !plan.stdout.contains("No changes"), "{}", plan.stdout);
    world.up(["--yes"]).expect_code(1).expect_stderr(refused);
    assert!(!cloudformation(&world, "GetTemplate").contains("Planted"));
    let left = cloudformation(&world, "ListChangeSets");
    assert!(!left.contains("<ExecutionStatus>AVAILABLE"), "{left}");
    world.proxy.heal();
    world.run(["plan"]).expect_code(0).expect_stdout("Plan:");
    world.up(["--yes"]).expect_code(0);
    assert!(!cloudformation(&world, "GetTemplate").contains("Planted"));
}

#[test]
fn in_a_bucket_with_versions_cloudformation_reads_the_version_that_was_uploaded() {
    let world = large_world();
    let aws = world.aws();
    let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{}?versioning", world.bucket()), enabled);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    replace_templates_in_time(&world);
    world.up([]).expect_code(0);
    let newest = templates(&aws, &world.bucket());
    assert!(newest.values().all(|body| body.contains("Planted")), "it was replaced in time");
    assert!(!cloudformation(&world, "GetTemplate").contains("Planted"));
}

#[test]
fn every_call_to_s3_names_the_account_that_must_own_the_bucket() {
    let world = large_world();
    let aws = world.aws();
    aws.send("s3", &aws.region, "DELETE", &format!("/{}", world.bucket()), "");
    world.up(["--create-bucket"]).expect_code(0);
    world
        .workspace
        .edit(|text| text.replace("instanceType: m5.large", "instanceType: m5.large, labels: {a: b}"));
    world.run(["plan"]).expect_code(0);
    world.up(["--create-bucket", "--yes"]).expect_code(0);
    let place = format!("s3://{}/clusters", world.bucket());
    let paid = ["--delete-data", "--confirm", "minimal", "--yes", "--s3-uri", &place];
    world.run(["destroy"].into_iter().chain(paid)).expect_code(0);
    let mut operations: BTreeMap<String, Option<String>> = BTreeMap::new();
    for call in world.proxy.calls().into_iter().filter(|call| call.operation.starts_with("s3:")) {
        let owner = operations.entry(call.operation).or_insert_with(|| call.bucket_owner.clone());
        *owner = owner.take().filter(|owner| Some(owner) == call.bucket_owner.as_ref());
    }
    // Whoever creates a bucket owns it.
    assert_eq!(operations.remove("s3:CreateBucket"), Some(None));
    let account = Some(world.workspace.account().to_owned());
    assert!(operations.values().all(|owner| *owner == account), "{operations:#?}");
    let names: Vec<&str> = operations.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "s3:DeleteBucketLifecycleConfiguration",
            "s3:DeleteObjects",
            "s3:GetBucketLifecycleConfiguration",
            "s3:GetBucketVersioning",
            "s3:GetObject",
            "s3:GetPublicAccessBlock",
            "s3:HeadBucket",
            "s3:HeadObject",
            "s3:ListObjectVersions",
            "s3:ListObjectsV2",
            "s3:PutBucketEncryption",
            "s3:PutBucketLifecycleConfiguration",
            "s3:PutBucketPolicy",
            "s3:PutBucketVersioning",
            "s3:PutObject",
            "s3:PutPublicAccessBlock",
        ]
    );
}

/// As a permission is that was granted a moment ago.
#[test]
fn a_bucket_that_is_denied_once_is_not_called_foreign() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    for number in 1..=2 {
        world.proxy.fault("s3:HeadBucket", Fault::AccessDenied, Times::Nth(number));
        let outcome = world.up([]).expect_code(0);
        assert!(!outcome.stderr.contains("another account than"), "{}", outcome.stderr);
        world.proxy.heal();
    }
}

#[test]
fn nothing_is_written_to_a_bucket_of_another_account() {
    let world = World::of_golden("minimal");
    let other = world.neighbour("minimal");
    let bucket = other.bucket();
    let policy = json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": "*", "Action": "s3:*",
        "Resource": [format!("arn:aws:s3:::{bucket}"), format!("arn:aws:s3:::{bucket}/*")]}]});
    let aws = other.aws();
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{bucket}?policy"), &policy.to_string());
    assert!(answer.status() < 300, "{}", answer.text());
    let place = format!("s3://{bucket}/clusters");
    let refused = format!(
        "the bucket {bucket} belongs to another account than {}, the caller's",
        world.workspace.account()
    );
    world.run(["validate", "--online", "--s3-uri", &place]).expect_code(2).expect_stderr(&refused);
    world.run(["up", "--s3-uri", &place]).expect_code(1).expect_stderr(&refused);
    let outcome = world.run(["up", "--s3-uri", &place, "--skip-preflight"]).expect_code(1);
    outcome.expect_stderr("AccessDenied");
    let outcome = world.run(["up", "--s3-uri", &place, "--skip-preflight", "--create-bucket"]).expect_code(1);
    outcome.expect_stderr(&format!("the bucket {bucket} belongs to another account"));
    assert_eq!(other.census()["objects"], 0);
    assert!(world.stacks().is_empty());
}
