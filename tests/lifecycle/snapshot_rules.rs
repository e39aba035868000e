//! The lifecycle rule that deletes old snapshots of etcd, among the rules that others have in the same bucket.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::aws::Aws;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::reading::is_reading;
use crate::support::world::World;

const OURS: &str = "<Rule><ID>infra-minimal-snapshots</ID><Filter><Prefix>clusters/minimal/snapshots/</Prefix></Filter>\
                    <Status>Enabled</Status><NoncurrentVersionExpiration><NoncurrentDays>30</NoncurrentDays>\
                    <NewerNoncurrentVersions>48</NewerNoncurrentVersions></NoncurrentVersionExpiration></Rule>";
const THEIRS: &str = "<Rule><ID>logs</ID><Filter><Prefix>logs/</Prefix></Filter><Status>Enabled</Status>\
                      <Transition><Days>30</Days><StorageClass>GLACIER</StorageClass></Transition>\
                      <Expiration><Days>90</Days></Expiration></Rule>";
const PUT: &str = "s3:PutBucketLifecycleConfiguration";
const GET: &str = "s3:GetBucketLifecycleConfiguration";
const NOTE: &str = "old versions of etcd's snapshots are deleted from now on";

/// A world whose bucket keeps versions.
fn versioned() -> World {
    let world = World::of_golden("minimal");
    let body = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    let aws = world.aws();
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{}?versioning", world.bucket()), body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    world
}

fn put_rules(aws: &Aws, bucket: &str, rules: &str) {
    let body = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{bucket}?lifecycle"), &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

/// The rules of the bucket; none if there is no configuration.
fn rules(world: &World) -> Vec<String> {
    let aws = world.aws();
    let text = aws.send("s3", &aws.region, "GET", &format!("/{}?lifecycle", world.bucket()), "").text();
    let rules = text.split("<Rule>").skip(1).map(|rest| rest.split("</Rule>").next().unwrap());
    rules.map(|rule| format!("<Rule>{rule}</Rule>")).collect()
}

fn changing_calls(world: &World) -> Vec<String> {
    world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect()
}

#[test]
fn the_rule_is_merged_once_into_those_of_others_and_deleted_with_the_data() {
    let world = versioned();
    put_rules(&world.aws(), &world.bucket(), THEIRS);
    world.up([]).expect_code(0).expect_stderr(NOTE);
    assert_eq!(rules(&world), [THEIRS, OURS]);
    world.proxy.clear();
    let again = world.up([]).expect_code(0);
    assert!(!again.stderr.contains("etcd's snapshots"), "{}", again.stderr);
    assert_eq!(changing_calls(&world), [""; 0]);

    // Someone has changed it.
    put_rules(&world.aws(), &world.bucket(), &format!("{}{THEIRS}", OURS.replace(">48<", ">1<")));
    world.up([]).expect_code(0).expect_stderr(NOTE);
    assert_eq!(rules(&world), [THEIRS, OURS]);

    let name = format!("lifecycle rule infra-minimal-snapshots of {}", world.bucket());
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    assert!(
        plan.stdout.split_once("To be kept:").unwrap().1.contains("infra-minimal-snapshots"),
        "{}",
        plan.stdout
    );
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(rules(&world), [THEIRS, OURS], "snapshots are kept, and so is their rule");
    let outcome = world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(0);
    outcome.expect_stderr(&format!("deleted {name}"));
    assert_eq!(rules(&world), [THEIRS]);
}

#[test]
fn the_only_rule_of_a_bucket_is_deleted_with_the_whole_configuration() {
    let world = versioned();
    world.up([]).expect_code(0).expect_stderr(NOTE);
    assert_eq!(rules(&world), [OURS]);
    world.proxy.fault("s3:DeleteBucketLifecycleConfiguration", Fault::AccessDenied, Times::Always);
    let outcome = world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(7);
    let outcome = outcome
        .expect_stderr(&format!("left over: lifecycle rule infra-minimal-snapshots of {}", world.bucket()));
    assert_eq!(outcome.stderr.matches("left over: ").count(), 1, "{}", outcome.stderr);
    world.proxy.heal();
    world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(0);
    assert_eq!(rules(&world), [""; 0]);
}

#[test]
fn a_bucket_without_versions_gets_no_rule() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    assert_eq!((world.proxy.count(PUT), rules(&world).len()), (0, 0));
}

#[test]
fn a_rule_that_may_not_be_written_is_printed_and_does_not_stop_the_run() {
    let world = versioned();
    put_rules(&world.aws(), &world.bucket(), THEIRS);
    let rule = "{\"ID\":\"infra-minimal-snapshots\",\"Status\":\"Enabled\",\"Filter\":{\"Prefix\":\"clusters/minimal/snapshots/\"},\
                \"NoncurrentVersionExpiration\":{\"NoncurrentDays\":30,\"NewerNoncurrentVersions\":48}}";
    for (operation, action) in [
        ("s3:GetBucketVersioning", "s3:GetBucketVersioning"),
        (GET, "s3:GetLifecycleConfiguration"),
        (PUT, "s3:PutLifecycleConfiguration"),
    ] {
        world.proxy.fault(operation, Fault::AccessDenied, Times::Always);
        let outcome = world.up([]).expect_code(0).expect_stderr(&format!("the caller may not {action}"));
        let text = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(rule), "{text}");
        assert_eq!(rules(&world), [THEIRS]);
        world.proxy.heal();
    }
    // Rules of the old kind, beside which S3 takes none of the new one.
    let old = "<Rule><ID>old</ID><Prefix>tmp/</Prefix><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>";
    put_rules(&world.aws(), &world.bucket(), old);
    world.up([]).expect_code(0).expect_stderr("Filter element can only be used in Lifecycle V2");
    assert_eq!(rules(&world), [old]);
}

#[test]
fn a_rule_that_another_process_overwrites_is_written_again() {
    let world = versioned();
    let (aws, bucket, looks) = (world.aws(), world.bucket(), AtomicUsize::new(0));
    // Someone who read the rules before ours was there writes theirs after it.
    world.proxy.before(GET, move || {
        if looks.fetch_add(1, Ordering::SeqCst) == 1 {
            put_rules(&aws, &bucket, THEIRS);
        }
    });
    world.up([]).expect_code(0).expect_stderr(NOTE);
    assert_eq!(rules(&world), [THEIRS, OURS]);
    assert_eq!(world.proxy.count(PUT), 2);
}

#[test]
fn a_rule_that_others_keep_overwriting_is_a_warning() {
    let world = versioned();
    let (aws, bucket) = (world.aws(), world.bucket());
    world.proxy.before(GET, move || put_rules(&aws, &bucket, THEIRS));
    let outcome = world.up([]).expect_code(0);
    outcome.expect_stderr("other processes change the rules of the bucket meanwhile");
    assert_eq!(world.proxy.count(PUT), 3);
}
