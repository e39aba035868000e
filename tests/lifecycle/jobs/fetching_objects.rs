//! `data.url: s3://…`: links that the binary signs are fetched from the stand-in for S3, which verifies them, by the real program of the pod.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{JobWorld, TRAIN};
use crate::support::authorization;
use crate::support::fault_proxy::{Fault, FaultProxy, Times};
use crate::support::http::{Message, ask, percent_encode};
use crate::support::invocation::Invocation;
use crate::support::job_cluster::controller::Fate;
use crate::support::ministack::MiniStack;
use crate::support::outcome::Outcome;

pub(super) const GET: &str = "s3:GetObject";

/// A job whose data is in S3.
pub(super) struct ObjectWorld {
    pub(super) jobs: JobWorld,
    pub(super) proxy: FaultProxy,
    pub(super) bucket: String,
}

impl ObjectWorld {
    /// The job has this source below its bucket, and the rest of `data:`.
    pub(super) fn new(key: &str, rest: &str) -> Self {
        let jobs = JobWorld::new("");
        jobs.cluster.decide(|role, _, _| match role {
            "worker" => Fate::Succeed("gpu-1", ""),
            // They run their programs.
            _ => Fate::Wait,
        });
        let bucket = format!("sets-{}", jobs.workspace.account());
        let world = Self { jobs, proxy: FaultProxy::start(MiniStack::shared().url()), bucket };
        world.jobs.workspace.aws(MiniStack::shared().url()).create_bucket(&world.bucket);
        world.write_job(key, rest);
        world
    }

    pub(super) fn write_job(&self, key: &str, rest: &str) {
        self.jobs.write_job(&format!("{TRAIN}data: {{url: '{}'{rest}}}\n", self.uri(key)));
    }

    pub(super) fn uri(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    pub(super) fn put(&self, key: &str, content: impl AsRef<[u8]>) {
        self.put_in_class(key, content, "STANDARD");
    }

    pub(super) fn put_in_class(&self, key: &str, content: impl AsRef<[u8]>, class: &str) {
        put(self.jobs.workspace.account(), &self.bucket, key, content.as_ref(), class);
    }

    pub(super) fn submit<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Invocation {
        let all: Vec<&str> = ["submit"].into_iter().chain(more).collect();
        // The stand-in computes signatures with this key.
        self.jobs.infra(all).endpoint(&self.proxy.url()).env("AWS_SECRET_ACCESS_KEY", "test")
    }

    #[track_caller]
    pub(super) fn run<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.submit(more).run()
    }

    /// The keys that were asked for by links since this was last called.
    pub(super) fn take_fetched(&self) -> Vec<String> {
        let prefix = format!("{}/", self.bucket);
        let gets = self.proxy.calls().into_iter().filter(|call| call.operation == GET);
        let mut keys: Vec<String> =
            gets.filter_map(|call| Some(call.target?.strip_prefix(&prefix)?.to_owned())).collect();
        self.proxy.clear();
        keys.sort();
        keys
    }

    /// All files below a directory of the job, with what is in them.
    pub(super) fn files(&self, directory: &str) -> BTreeMap<String, String> {
        let root = self.jobs.cluster.claim().join("train").join(directory);
        let mut found = BTreeMap::new();
        read_below(&root, &root, &mut found);
        found
    }
}

pub(super) fn put(account: &str, bucket: &str, key: &str, content: &[u8], class: &str) {
    let who = authorization(account, "us-west-2", "s3");
    let headers = [("Authorization", who.as_str()), ("x-amz-storage-class", class)];
    let path: Vec<String> = key.split('/').map(percent_encode).collect();
    let target = format!("/{bucket}/{}", path.join("/"));
    let answer = ask(MiniStack::shared().url(), Message::request("PUT", &target, &headers, content)).unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

fn read_below(root: &Path, directory: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_below(root, &path, found);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

pub(super) fn texts<const COUNT: usize>(files: [(&str, &str); COUNT]) -> BTreeMap<String, String> {
    files.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

#[test]
fn a_prefix_is_fetched_once_and_then_only_what_changed() {
    let world = ObjectWorld::new("corpus/", "");
    world.put("corpus/", "");
    world.put("corpus/a.txt", "one");
    world.put("corpus/b c/ü+1.txt", "two");
    world.put("corpus-2/not.txt", "no");
    let first = world.run([]).expect_code(0);
    let uri = world.uri("corpus/");
    first
        .expect_stderr(&format!("data: listing {uri}\ndata: 2 files, 6 bytes\n"))
        .expect_stderr("data: fetched\n")
        .expect_stderr("the data is imported")
        .expect_stdout("complete, 2 of 2 done");
    assert_eq!(world.files("data"), texts([("a.txt", "one"), ("b c/ü+1.txt", "two")]));
    assert_eq!(world.take_fetched().len(), 2);
    // What was fetched is where the job reads it, and nowhere else.
    assert_eq!(world.files(".infra").keys().filter(|name| name.contains("tree/")).count(), 0);

    let again = world.run(["--replace"]).expect_code(0);
    again.expect_stderr("data: all of it is there\n");
    assert_eq!(world.take_fetched(), Vec::<String>::new());

    world.put("corpus/a.txt", "three");
    world.put("corpus/d.txt", "four");
    let changed = world.run(["--replace"]).expect_code(0);
    changed.expect_stderr("data: fetched 2 files with 9 bytes; the others were there\n");
    assert_eq!(world.take_fetched(), ["corpus/a.txt", "corpus/d.txt"]);
    assert_eq!(world.files("data"), texts([("a.txt", "three"), ("b c/ü+1.txt", "two"), ("d.txt", "four")]));
}

#[test]
fn an_archive_is_unpacked_and_divided_by_lines() {
    let world = ObjectWorld::new("sets/data.tar.gz", ", split: lines");
    world.jobs.put_archive(31);
    let archive = world.jobs.cluster.claim().join("import/data.tar.gz");
    world.put("sets/data.tar.gz", fs::read(&archive).unwrap());
    fs::remove_file(archive).unwrap();
    world.run([]).expect_code(0).expect_stderr("data: 1 file, ").expect_stdout("complete");
    let parts = [0, 1].map(|number| world.jobs.read_claim(&format!("train/{number}/data/train.txt")));
    assert_eq!(parts.each_ref().map(|part| part.lines().count()), [16, 15]);
    assert_eq!(world.jobs.read_claim("train/config/model.py"), "layers = 3\n");
}

#[test]
fn files_and_lines_of_a_prefix_are_divided() {
    let world = ObjectWorld::new("images", ", split: files");
    for name in ["cat/1.jpg", "cat/2.jpg", "dog/3.jpg"] {
        world.put(&format!("images/{name}"), name);
    }
    world.run([]).expect_code(0).expect_stdout("complete");
    assert_eq!(world.files("0/data"), texts([("cat/1.jpg", "cat/1.jpg"), ("dog/3.jpg", "dog/3.jpg")]));
    assert_eq!(world.files("1/data"), texts([("cat/2.jpg", "cat/2.jpg")]));
    // Files that were divided are found again.
    world.put("images/dog/4.jpg", "new");
    world.take_fetched();
    world.run(["--replace"]).expect_code(0);
    assert_eq!(world.take_fetched(), ["images/dog/4.jpg"]);

    world.put("text/train.txt", "1\n2\n3\n4\n");
    world.put("text/words.txt", "a\n");
    world.write_job("text/", ", split: lines");
    world.run(["--replace"]).expect_code(0);
    assert_eq!(world.files("1/data"), texts([("train.txt", "3\n4\n"), ("words.txt", "a\n")]));
    // An object by itself; and data that cannot be divided.
    world.write_job("text/train.txt", ", split: files");
    let refused = world.run(["--replace"]).expect_code(1);
    refused.expect_stderr("could not be imported: the data has 1 file for 2 trainers");
    world.write_job("text/train.txt", "");
    world.run(["--replace"]).expect_code(0).expect_stderr("data: all of it is there\n");
    assert_eq!(world.files("data"), texts([("train.txt", "1\n2\n3\n4\n")]));
}

#[test]
fn a_killed_submit_continues_with_what_is_missing() {
    let world = ObjectWorld::new("set/", "");
    let large = "0123456789abcdef".repeat(640 << 10);
    world.put("set/large.bin", &large);
    world.put("set/small.txt", "small");
    // One of the two stops in the middle.
    world.proxy.fault(GET, Fault::SlowBody(Duration::from_secs(200)), Times::Always);
    let mut running = world.submit([]).spawn();
    let has = |part: &str| world.files(".infra").keys().any(|name| name.contains(part));
    world.jobs.cluster.wait_for("a part that is safe", |_| has(".done").then_some(()));
    running.kill();
    running.wait();
    assert!(world.jobs.cluster.object("jobsets", "default", "train").is_none());
    world.proxy.heal();
    let done = world.run(["--output", "json"]).expect_code(0);
    assert_eq!(world.files("data"), texts([("large.bin", &large), ("small.txt", "small")]));
    let end: Value =
        serde_json::from_str(done.stdout.lines().find(|line| line.contains("transferred")).unwrap()).unwrap();
    // The part that had arrived is not fetched again.
    assert_eq!(end["movedFiles"], 2);
    assert!(end["movedBytes"].as_u64().unwrap() < large.len() as u64, "{end}");
}

#[test]
fn a_connection_that_breaks_and_a_server_that_is_busy_delay_only() {
    let world = ObjectWorld::new("set/", "");
    for number in 0..240 {
        world.put(&format!("set/{number}"), number.to_string());
    }
    world.jobs.cluster.break_exec_after(&[120_000]);
    world.run([]).expect_code(0).expect_stderr("; continuing\n");
    assert_eq!(world.files("data").len(), 240);
    // No object twice, but those that were on their way.
    assert!(world.take_fetched().len() < 400);
    world.put("set/1", "changed");
    world.proxy.fault(GET, Fault::Throttled, Times::First(1));
    let slow = world.run(["--replace"]).expect_code(0);
    slow.expect_stderr("warning: 1: SlowDown: Please reduce your request rate.; trying again\n")
        .expect_stderr("data: fetched 1 file with 7 bytes; the others were there\n");
}

#[test]
fn a_bucket_in_another_region_is_found() {
    let world = ObjectWorld::new("set/", "");
    let far = format!("far-{}", world.jobs.workspace.account());
    let mut aws = world.jobs.workspace.aws(MiniStack::shared().url());
    aws.region = "eu-central-1".to_owned();
    aws.create_bucket(&far);
    let answer = aws.send("s3", "eu-central-1", "PUT", &format!("/{far}/set/a"), "far");
    assert_eq!(answer.status(), 200, "{}", answer.text());
    world.jobs.write_job(&format!("{TRAIN}data: {{url: 's3://{far}/set/'}}\n"));
    world.run([]).expect_code(0);
    assert_eq!(world.files("data"), texts([("a", "far")]));
}

#[test]
fn an_interruption_leaves_no_job_and_no_pod() {
    let world = ObjectWorld::new("set/", "");
    world.put("set/a", "abc");
    world.proxy.fault(GET, Fault::Hang(Duration::from_secs(200)), Times::Always);
    let running = world.submit([]).spawn();
    world.proxy.wait_for(GET, 1);
    running.interrupt();
    let ended = running.wait().expect_code(5).expect_stderr(
        "interrupted; no job was created, and the same command continues with what is missing of the data",
    );
    assert!(!ended.stderr.contains("detaching"), "{}", ended.stderr);
    world.jobs.cluster.wait_for("the pod to go", |state| (!state.has_pod_of("files")).then_some(()));
    world.proxy.heal();
    world.run([]).expect_code(0);
}

#[test]
fn programs_read_of_what_is_fetched_before_they_read_of_the_job() {
    let world = ObjectWorld::new("set/", "");
    world.put("set/a", "abc");
    let submitted = world.run(["--output", "json"]).expect_code(0);
    let values: Vec<Value> =
        serde_json::Deserializer::from_str(&submitted.stdout).into_iter().map(Result::unwrap).collect();
    let kinds: Vec<&Value> = values.iter().map(|value| &value["type"]).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 2]), (&json!("transfer-began"), &json!("transferred")));
    let end = &values[values.len() - 2];
    assert_eq!(
        (&end["subject"], &end["movedFiles"], &end["movedBytes"]),
        (&json!("data"), &json!(1), &json!(3))
    );
    assert_eq!(values.last().unwrap()["state"], "complete");
}

#[test]
fn what_would_be_fetched_is_said_without_aws() {
    let world = ObjectWorld::new("set/", "");
    let (uri, mention) =
        (world.uri("set/"), "is fetched by `infra job submit`, with links that your AWS credentials sign");
    for command in ["lint", "render"] {
        let offline = world.jobs.infra([command]).env("AWS_ACCESS_KEY_ID", "").run().expect_code(0);
        offline.expect_stderr(&format!("data: {uri} {mention}\n"));
    }
    let plan = world.jobs.run(["submit", "--dry-run"]).expect_code(0);
    plan.expect_stdout(&format!(
        "its data in {uri}, which is fetched by links that your AWS credentials sign, then imported"
    ));
    let plan = world.run(["--dry-run", "--output", "json"]).expect_code(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!((&plan["fetchesFrom"], &plan["importsData"]), (&json!(uri), &json!(true)));
    assert!(world.proxy.calls().is_empty());
}
