//! Data in S3 that cannot be fetched, or not any more: links, credentials, changes, permissions; and links that nobody else may see.

use super::TRAIN;
use super::fetching_objects::{GET, ObjectWorld, put, texts};
use crate::support::fault_proxy::{Fault, Times};
use crate::support::job_cluster::controller::Fate;

const LIST: &str = "s3:ListObjectsV2";

#[test]
fn links_that_expire_are_signed_again() {
    let world = ObjectWorld::new("set/", "");
    world.put("set/a", "a");
    world.proxy.fault(GET, Fault::OldLink, Times::First(1));
    world.run([]).expect_code(0).expect_stderr("data: fetched\n");
    assert_eq!(world.take_fetched(), ["set/a", "set/a"]);

    world.put("set/b", "b");
    world.proxy.fault(GET, Fault::OldLink, Times::Always);
    world
        .run(["--replace"])
        .expect_code(1)
        .expect_stderr("/set/b: S3 takes new links for expired ones: Request has expired")
        .expect_stderr("help: set this machine's clock");
}

#[test]
fn credentials_that_expire_end_it_and_the_same_command_continues() {
    let world = ObjectWorld::new("set/", "");
    world.put("set/a", "a");
    world.put("set/b", "b");
    world.proxy.fault(GET, Fault::ExpiredToken, Times::From(2, 99));
    let ended = world.run([]).expect_code(4);
    ended
        .expect_stderr("ExpiredToken: The provided token has expired.")
        .expect_stderr("renew them (`aws sso login`, a fresh session), or name a profile with --profile; the same command continues with what is missing");
    assert!(world.jobs.cluster.object("jobsets", "default", "train").is_none());
    world.proxy.heal();
    world.take_fetched();
    world.run([]).expect_code(0).expect_stderr("data: fetched 1 file with 1 byte; the others were there\n");
    assert_eq!(world.take_fetched().len(), 1);
    // Without any.
    let none =
        world.submit(["--replace"]).env("AWS_ACCESS_KEY_ID", "").env("AWS_SECRET_ACCESS_KEY", "").run();
    none.expect_code(4).expect_stderr("cannot be listed: s3:ListBucket: ").expect_stderr("help: renew them");
}

#[test]
fn an_object_that_changes_meanwhile_is_not_mixed_with_what_it_was() {
    let world = ObjectWorld::new("set/", "");
    world.put("set/a", "before");
    let (account, bucket) = (world.jobs.workspace.account().to_owned(), world.bucket.clone());
    world.proxy.before(GET, move || put(&account, &bucket, "set/a", b"after", "STANDARD"));
    let changed = world.run([]).expect_code(1);
    changed
        .expect_stderr(&format!("{} was changed or deleted while it was fetched\n", world.uri("set/a")))
        .expect_stderr(
            "help: run the same command again: it fetches what is there now, and keeps what has not changed",
        );
    world.proxy.heal();
    world.run([]).expect_code(0);
    assert_eq!(world.files("data"), texts([("a", "after")]));
}

#[test]
fn what_cannot_be_read_is_said_with_what_it_needs() {
    let world = ObjectWorld::new("set/", "");
    let refuse = |more: &[&str], code: i32, parts: &[&str]| {
        let refused = world.run(more.iter().copied()).expect_code(code);
        parts.iter().fold(refused, |refused, part| refused.expect_stderr(part));
        assert_eq!(world.take_fetched(), Vec::<String>::new());
    };
    refuse(
        &[],
        1,
        &[
            "error: there is no object at s3://sets-",
            "/set/, and none below it",
            "help: keys are case-sensitive",
        ],
    );
    world.put_in_class("set/old.bin", "x", "GLACIER");
    world.put_in_class("set/older.bin", "x", "DEEP_ARCHIVE");
    refuse(
        &[],
        1,
        &[
            "error: 2 archived objects must be restored first: old.bin (GLACIER), older.bin (DEEP_ARCHIVE)\n",
            "help: restore them (`aws s3api restore-object`)",
        ],
    );
    world.write_job("paths/", "");
    world.put("paths/a", "x");
    world.put("paths/a/b", "x");
    refuse(&[], 1, &["1 key would be a file and a directory at the same time: a\n"]);
    world.write_job("paths", ", sizeLimit: 1Mi");
    world.put("paths", "x".repeat(2 << 20));
    refuse(&[], 1, &["/paths is an object, and there are objects below ", "/paths/ for what is below it"]);
    world.write_job("large", ", sizeLimit: 1Mi");
    world.put("large", "x".repeat(2 << 20));
    refuse(&[], 1, &["/large has 1 file with 2 MiB, more than data.sizeLimit, which is 1Mi\n"]);
    world.jobs.write_job(&format!("{TRAIN}data: {{url: 's3://no-such-{}/x'}}\n", world.bucket));
    refuse(&[], 1, &["/x: there is no bucket no-such-sets-"]);
    // Nothing was created for any of them.
    assert!(!world.jobs.cluster.changes().iter().any(|change| change.contains("pods/")));
    world.write_job("set/", "");
    world.proxy.fault(LIST, Fault::AccessDenied, Times::Always);
    refuse(
        &[],
        1,
        &[
            "cannot be listed: s3:ListBucket: AccessDenied: ",
            "help: your credentials need s3:ListBucket on the bucket sets-",
            "one whose requester pays is not supported",
        ],
    );
    world.proxy.heal();
    world.write_job("large", "");
    world.proxy.fault(GET, Fault::AccessDenied, Times::Always);
    let denied = world.run([]).expect_code(1);
    denied
        .expect_stderr(&format!("error: {} cannot be read: AccessDenied: ", world.uri("large")))
        .expect_stderr(
            "s3:GetObject on it and, if it is encrypted with a KMS key, kms:Decrypt with that key",
        );
}

#[test]
fn detaching_is_refused_until_the_data_is_there() {
    let world = ObjectWorld::new("set/", "");
    world.put("set/a", "abc");
    let refused = world.run(["--detach"]).expect_code(1);
    let uri = world.uri("set/");
    refused
        .expect_stderr(&format!(
            "--detach is refused while data is missing on the claim: 1 file of {uri}, 3 bytes\n"
        ))
        .expect_stderr(
            "help: this command signs the links by which they are fetched: run it without --detach",
        );
    assert_eq!(world.take_fetched(), Vec::<String>::new());
    assert!(world.jobs.cluster.object("jobsets", "default", "train").is_none());
    world.run([]).expect_code(0);
    world.run(["--detach", "--replace"]).expect_code(0).expect_stderr("show its progress");
    // A job that is there needs no data, and no AWS.
    world.jobs.cluster.decide(|role, _, _| if role == "worker" { Fate::Run("gpu-1") } else { Fate::Wait });
    world.run(["--detach", "--replace"]).expect_code(0);
    world.proxy.clear();
    world.run(["--detach"]).expect_code(0).expect_stderr("attaching to it");
    assert!(world.proxy.calls().is_empty());
}

#[test]
fn no_link_is_written_anywhere() {
    let world = ObjectWorld::new("set/", "");
    for number in 0..20 {
        world.put(&format!("set/{number}"), number.to_string());
    }
    world.proxy.fault(GET, Fault::Throttled, Times::Nth(3));
    world.proxy.fault(GET, Fault::OldLink, Times::Nth(5));
    world.proxy.fault(GET, Fault::AccessDenied, Times::Nth(30));
    let mut outputs = Vec::new();
    for more in [&["-vv"][..], &["-vv", "--replace", "--output", "json"]] {
        let done =
            world.submit(more.iter().copied()).env("INFRA_LOG", "trace").env("RUST_BACKTRACE", "1").run();
        outputs.extend([done.stdout, done.stderr]);
    }
    world.proxy.heal();
    let done = world.run(["-vv", "--replace"]).expect_code(0);
    outputs.extend([done.stdout, done.stderr]);
    outputs.extend(world.files("").into_values());
    outputs.extend(world.jobs.cluster.everything());
    for text in outputs {
        for secret in ["X-Amz-Signature", "X-Amz-Credential", "x-amz-signature"] {
            let line = text.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{line:?}");
        }
    }
}
