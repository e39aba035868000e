//! Findings of the preflight in an account before anything is created there: each condition with its exact finding.

use serde_json::{Value, json};

use crate::support::authorization;
use crate::support::http::{Message, ask};
use crate::support::reading::is_reading;
use crate::support::workspace::Workspace;
use crate::support::world::World;

/// The calls since the last `clear` that change something.
pub fn changing_calls(world: &World) -> Vec<String> {
    world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect()
}

/// Puts into the account what every cluster needs and a new account lacks: then nothing is found.
pub fn ready(world: World) -> World {
    let account = world.workspace.account().to_owned();
    world.workspace.edit(|text| text.replace(":111122223333:key", &format!(":{account}:key")));
    close(&world, &world.bucket());
    world.make_zone("example.com", false);
    expect(&world, &[]);
    world
}

fn close(world: &World, bucket: &str) {
    let aws = world.aws();
    let flags = ["BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"];
    let flags: String = flags.map(|flag| format!("<{flag}>true</{flag}>")).concat();
    let body = format!("<PublicAccessBlockConfiguration>{flags}</PublicAccessBlockConfiguration>");
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{bucket}?publicAccessBlock"), &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

/// The findings of `validate --online`, which are `severity: subject: what`, and nothing else.
#[track_caller]
pub fn expect(world: &World, expected: &[&str]) -> Vec<Value> {
    expect_with(world, &["--s3-uri", &format!("s3://{}/clusters", world.bucket())], expected)
}

#[track_caller]
pub fn expect_with(world: &World, more: &[&str], expected: &[&str]) -> Vec<Value> {
    let arguments = ["validate", "--online", "--output", "json"].into_iter().chain(more.iter().copied());
    let outcome = world.run(arguments);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:#?}"));
    let findings = report["account"].as_array().unwrap_or_else(|| panic!("{outcome:#?}")).clone();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let found: Vec<String> = findings
        .iter()
        .map(|finding| ["severity", "subject", "what"].map(|key| text(finding, key)).join(": "))
        .collect();
    assert_eq!(found, expected, "{report:#}");
    assert!(findings.iter().all(|finding| !text(finding, "why").is_empty()), "{report:#}");
    let refused = expected.iter().any(|finding| finding.starts_with("refused"));
    assert_eq!(report["valid"], !refused);
    outcome.expect_code(if refused { 2 } else { 0 });
    findings
}

/// What is found with one edit of cluster.yaml.
#[track_caller]
pub fn expect_if(world: &World, from: &str, to: &str, expected: &[&str]) -> Vec<Value> {
    let before = world.workspace.read("cluster.yaml");
    world.workspace.edit(|text| text.replacen(from, to, 1));
    let findings = expect(world, expected);
    world.workspace.edit(|_| before);
    findings
}

#[track_caller]
pub fn is_fixed_by(findings: &[Value], part: &str) {
    let fixes: Vec<&str> = findings.iter().map(|finding| finding["fix"].as_str().unwrap()).collect();
    assert!(fixes.iter().any(|fix| fix.contains(part)), "'{part}' is not in {fixes:#?}");
}

#[test]
fn the_bucket_must_be_private_in_the_region_and_in_the_account() {
    let world = ready(World::of_golden("minimal"));
    let aws = world.aws();
    let name = |kind: &str| format!("{kind}-{}", world.workspace.account());
    let place = |kind: &str| format!("s3://{}", name(kind));
    let (open, far, foreign, missing) = (name("open"), name("far"), name("foreign"), name("missing"));
    aws.create_bucket(&open);
    let body = "<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>";
    assert_eq!(aws.send("s3", "eu-west-1", "PUT", &format!("/{far}"), body).status(), 200);
    Workspace::of_golden("minimal").aws(&world.proxy.url()).create_bucket(&foreign);

    expect_with(&world, &[], &["refused: bucket: no S3 URI is given"]);
    let found = expect_with(
        &world,
        &["--s3-uri", &place("missing")],
        &[&format!("refused: bucket: there is no bucket {missing}")],
    );
    is_fixed_by(&found, "--create-bucket");
    let found = expect_with(
        &world,
        &["--s3-uri", &place("far")],
        &[&format!("refused: bucket: the bucket {far} is in eu-west-1, but the cluster is in us-west-2")],
    );
    is_fixed_by(&found, "name a bucket in us-west-2");
    expect_with(
        &world,
        &["--s3-uri", &place("foreign")],
        &[&format!(
            "refused: bucket: the bucket {foreign} is not yours, or the caller may not read it (403)"
        )],
    );
    let found = expect_with(
        &world,
        &["--s3-uri", &place("open")],
        &[&format!("warning: bucket: the bucket {open} does not block public access")],
    );
    is_fixed_by(&found, &format!("aws s3api put-public-access-block --bucket {open}"));
}

#[test]
fn the_account_must_have_the_region_partition_and_iam_roles() {
    let world = ready(World::alone("ha-gpu-efs"));
    let account = world.workspace.account();
    let place = format!("s3://{}/clusters", world.bucket());
    // What else would be found there is found in the wrong region.
    let found = expect_with(
        &world,
        &["--s3-uri", &place, "--region", "eu-west-1"],
        &["refused: account: the region in use is eu-west-1, but cluster.yaml names us-west-2"],
    );
    is_fixed_by(&found, "leave out --region");
    expect_if(
        &world,
        &format!(":{account}:key"),
        ":111122223333:key",
        &[&format!(
            "warning: account: the key in kmsKeyArn belongs to account 111122223333, the caller to {account}"
        )],
    );

    let roles = ["AutoScaling", "ElasticLoadBalancing", "EC2Spot", "AmazonElasticFileSystem"];
    world.control(json!({"missing_roles": roles.map(|role| format!("AWSServiceRoleFor{role}"))}));
    let found = expect(
        &world,
        &[
            "warning: service-linked roles: the account has no IAM role AWSServiceRoleForAutoScaling",
            "warning: service-linked roles: the account has no IAM role AWSServiceRoleForElasticLoadBalancing",
            "refused: service-linked roles: the account has no IAM role AWSServiceRoleForEC2Spot",
            "warning: service-linked roles: the account has no IAM role AWSServiceRoleForAmazonElasticFileSystem",
        ],
    );
    is_fixed_by(&found, "run: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com");

    // A key can be given only to a role that is there.
    world.control(json!({"missing_roles": ["AWSServiceRoleForAutoScaling"]}));
    world
        .workspace
        .edit(|text| text.replace("sshAllowedCIDRs", "encryptDisksWithKmsKey: true\nsshAllowedCIDRs"));
    let found = expect(
        &world,
        &["refused: service-linked roles: the account has no IAM role AWSServiceRoleForAutoScaling"],
    );
    is_fixed_by(
        &found,
        "run: aws iam create-service-linked-role --aws-service-name autoscaling.amazonaws.com",
    );
}

#[test]
fn in_china_the_partition_is_checked_and_no_image_publisher_is_known() {
    let world = World::of_golden("minimal");
    let account = world.workspace.account();
    world.workspace.edit(|text| {
        let text = text
            .replace("arn:aws:kms:us-west-2:111122223333", &format!("arn:aws-cn:kms:cn-north-1:{account}"));
        text.replace("us-west-2", "cn-north-1")
    });
    let bucket = format!("china-{account}");
    world.aws().create_bucket(&bucket);
    close(&world, &bucket);
    world.make_zone("example.com", false);
    expect_with(
        &world,
        &["--s3-uri", &format!("s3://{bucket}")],
        &[
            "refused: account: the credentials belong to partition aws, but cn-north-1 belongs to aws-cn",
            "refused: image: no publisher of Flatcar images is known in cn-north-1",
        ],
    );
    // The same with an image in the lock, whose publisher is not known; and with an owner in cluster.yaml.
    let lock = "cluster: minimal\nregion: cn-north-1\nimage:\n  id: ami-00000000000000001\n  name: Flatcar-stable-4459.2.1-hvm\n";
    std::fs::write(world.workspace.path("infra.lock"), lock).unwrap();
    let outcome = world.run(["plan", "--s3-uri", &format!("s3://{bucket}")]).expect_code(1);
    outcome.expect_stderr("no publisher of Flatcar images is known").expect_stderr("set os.imageOwner");
    std::fs::remove_file(world.workspace.path("infra.lock")).unwrap();
    world.workspace.edit(|text| format!("{text}os: {{imageOwner: \"{account}\"}}\n"));
    let kind = ("VirtualizationType", "hvm");
    let root = ("RootDeviceName", "/dev/xvda");
    world.made(
        "RegisterImage",
        &[("Name", "Flatcar-stable-4459.2.1-hvm"), ("Architecture", "x86_64"), root, kind],
        "imageId",
    );
    expect_with(
        &world,
        &["--s3-uri", &format!("s3://{bucket}")],
        &["refused: account: the credentials belong to partition aws, but cn-north-1 belongs to aws-cn"],
    );
}

#[test]
fn the_kms_key_must_be_enabled_and_symmetric() {
    let world = ready(World::alone("minimal"));
    let key = world.workspace.setting("kmsKeyArn");
    let id = key.rsplit('/').next().unwrap();
    for (state, fix) in [
        ("Disabled", "aws kms enable-key"),
        ("PendingDeletion", "aws kms cancel-key-deletion"),
        ("Updating", "wait"),
    ] {
        world.control(json!({"keys": {id: state}}));
        let found = expect(&world, &[&format!("refused: key: the KMS key {key} is not enabled: {state}")]);
        is_fixed_by(&found, fix);
    }
    world.control(json!({}));
    let other = key.replace(id, "00000000-0000-4000-8000-000000000000");
    expect_if(&world, &key, &other, &[&format!("refused: key: there is no KMS key {other}")]);

    let who = authorization(world.workspace.account(), "us-west-2", "kms");
    let headers = [("Authorization", who.as_str()), ("X-Amz-Target", "TrentService.CreateKey")];
    let body = br#"{"KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC"}"#;
    let made = ask(&world.proxy.url(), Message::request("POST", "/", &headers, body)).unwrap().text();
    let made: Value = serde_json::from_str(&made).unwrap();
    let other = made["KeyMetadata"]["Arn"].as_str().unwrap();
    let expected = format!("refused: key: the key {other} is a HMAC_256 key for GENERATE_VERIFY_MAC");
    expect_if(&world, &key, other, &[&expected]);
}

#[test]
fn the_key_pair_availability_zones_and_instance_types_must_exist() {
    let world = ready(World::alone("ha-gpu-efs"));
    let found = expect_if(
        &world,
        "keyName: team-key",
        "keyName: nobodys-key",
        &["refused: key pair: there is no key pair 'nobodys-key' in us-west-2"],
    );
    is_fixed_by(&found, "aws ec2 import-key-pair --key-name 'nobodys-key'");
    let found = expect_if(
        &world,
        "us-west-2b, us-west-2c]",
        "us-west-2b, us-west-2f]",
        &["refused: availability zones: the account has no availability zone us-west-2f"],
    );
    is_fixed_by(&found, "availability zones of this account: us-west-2a, us-west-2b, us-west-2c, us-west-2d");

    world.control(json!({"not_offered": [["m5.large", "us-west-2b"], ["m5.large", "us-west-2c"]]}));
    let found = expect(
        &world,
        &["refused: instance types: pool cpu of m5.large cannot start in us-west-2b, us-west-2c"],
    );
    is_fixed_by(&found, "it is offered in us-west-2a, us-west-2d: set the pool's availabilityZones to those");
    let everywhere = ["a", "b", "c", "d"].map(|zone| ["m5.large".to_owned(), format!("us-west-2{zone}")]);
    world.control(json!({"not_offered": everywhere}));
    let found = expect(
        &world,
        &["refused: instance types: pool cpu of m5.large cannot start in us-west-2a, us-west-2b, us-west-2c"],
    );
    is_fixed_by(&found, "no availability zone of this region offers it");
    world.control(json!({"not_offered": [["g5.2xlarge", "us-west-2a"]]}));
    expect(&world, &["warning: instance types: pool gpu cannot have g5.2xlarge in us-west-2a"]);
    world.control(json!({"not_offered": [["g5.xlarge", "us-west-2a"], ["g5.2xlarge", "us-west-2a"]]}));
    expect(
        &world,
        &["refused: instance types: pool gpu of g5.xlarge, g5.2xlarge cannot start in us-west-2a"],
    );
}

#[test]
fn quotas_must_cover_the_initial_machines() {
    let world = ready(World::alone("ha-gpu-efs"));
    let spot = |wanted: &str, quota: u32| {
        format!("{wanted} are needed by pool gpu; the quota is {quota}, and 0 are in use")
    };
    let cases = [
        (json!({"L-3819A6DF": 11}), format!("refused: quotas: {}", spot("12 vCPUs of spot G machines", 11))),
        (json!({"L-3819A6DF": 63}), format!("warning: quotas: {}", spot("64 vCPUs of spot G machines at maxCount", 63))),
        (
            json!({"L-1216C47A": 8}),
            "refused: quotas: 14 vCPUs of on-demand standard machines are needed by etcd members, controllers, pool cpu; \
             the quota is 8, and 0 are in use"
                .to_owned(),
        ),
        (
            json!({"L-0263D0A3": 2}),
            "refused: quotas: the cluster needs 3 elastic addresses; 0 of 2 are in use".to_owned(),
        ),
    ];
    for (quotas, expected) in cases {
        world.control(json!({"quotas": quotas}));
        let found = expect(&world, &[&expected]);
        is_fixed_by(
            &found,
            "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-",
        );
    }
    world.control(json!({"quotas": {"L-DB2E81BA": 0, "L-417A185B": 0, "L-3819A6DF": 0, "L-7212CCBC": 0, "L-34B43A08": 0}}));
    let pool = |kind: &str, spot: bool| format!("instanceType: {kind}, spot: {spot}, count: 2, maxCount: 4");
    for (kind, spot, quota) in [
        ("g5.xlarge", false, "8 vCPUs of on-demand G"),
        ("p3dn.24xlarge", false, "192 vCPUs of on-demand P"),
        ("p3dn.24xlarge", true, "192 vCPUs of spot P"),
        ("m5.large", true, "4 vCPUs of spot standard"),
    ] {
        let pools = format!("{quota} machines are needed by pool cpu; the quota is 0, and 0 are in use");
        let gpu = "12 vCPUs of spot G machines are needed by pool gpu; the quota is 0, and 0 are in use";
        let both = [format!("refused: quotas: {pools}"), format!("refused: quotas: {gpu}")];
        let mut both: Vec<&str> = both.iter().map(String::as_str).collect();
        if quota.contains("spot P") {
            both.reverse();
        }
        expect_if(&world, "instanceType: m5.large, count: 2, maxCount: 4", &pool(kind, spot), &both);
    }

    // What others of the account use counts too.
    world.ec2(
        "RunInstances",
        &[("ImageId", "ami-1"), ("InstanceType", "m5.large"), ("MinCount", "2"), ("MaxCount", "2")],
    );
    world.control(json!({"quotas": {"L-1216C47A": 16}}));
    expect(
        &world,
        &[
            "warning: quotas: 14 vCPUs of on-demand standard machines are needed by etcd members, controllers, pool cpu; \
           the quota is 16, and 4 are in use",
        ],
    );
}

#[test]
fn the_image_must_exist_and_fit() {
    let world = ready(World::alone("minimal"));
    let stable =
        world.ec2("DescribeImages", &[("Filter.1.Name", "name"), ("Filter.1.Value.1", "Flatcar-stable-*")]);
    let gone: Vec<&str> = stable.split("<imageId>").skip(1).map(|rest| &rest[..21]).collect();
    world.control(json!({"gone_images": gone}));
    expect(
        &world,
        &["refused: image: there is no image Flatcar-stable-*-hvm of account 075585003325 in us-west-2"],
    );
    world.control(json!({}));
    world.run(["lock"]).expect_code(0);
    expect(&world, &[]);
    let lock = world.workspace.read("infra.lock");
    let locked = lock.split_once("id: ").unwrap().1.lines().next().unwrap();
    world.control(json!({"gone_images": [locked]}));
    let found = expect(
        &world,
        &[&format!("refused: image: the image {locked}, which infra.lock names, no longer exists")],
    );
    is_fixed_by(&found, "infra up --upgrade-os");

    let made = [("Name", "ours"), ("Architecture", "arm64"), ("RootDeviceName", "/dev/sda1")];
    let ours = world.made("RegisterImage", &made, "imageId");
    std::fs::write(world.workspace.path("infra.lock"), lock.replace(locked, &ours)).unwrap();
    expect(
        &world,
        &[
            &format!(
                "refused: image: the image {ours} (ours) belongs to account {}, not to 075585003325",
                world.workspace.account()
            ),
            &format!("refused: image: the image {ours} (ours) is for arm64"),
            &format!("refused: image: the root disk of image {ours} (ours) is /dev/sda1"),
        ],
    );
}
