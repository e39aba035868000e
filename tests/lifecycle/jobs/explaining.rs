//! `job why`: the first cause of a failure or a restart, and what a job waits for.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::earlier_versions::put_old_job;
use super::{DATA, JobWorld, TRAIN};
use crate::schema_judge::{expect_exact, expect_fit};
use crate::support::job_cluster::controller::Fate;

/// A job whose launchers have a claim to write to, and whose replicas run unless the test says otherwise.
fn with_claim(retries: u32) -> JobWorld {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", &format!("retries: {retries}")));
    world.cluster.decide(|role, _, _| if role == "reader" { Fate::Wait } else { Fate::Run("gpu-1") });
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    world
}

impl JobWorld {
    /// What a launcher wrote in an attempt, `age` seconds ago.
    fn put_log(&self, attempt: u32, replica: &str, text: &str, age: u64) {
        let directory = self.cluster.claim().join(format!("train/runs/r-1/logs/attempt-{attempt}/{replica}"));
        fs::create_dir_all(&directory).unwrap();
        self.put_aged(&directory.join("output.log"), text, age);
    }

    /// A mark that a launcher left `age` seconds ago, as `failed.0.worker.1`.
    fn put_mark(&self, name: &str, age: u64) {
        let set = self.cluster.object("jobsets", "default", "train").unwrap();
        let uid = set["metadata"]["uid"].as_str().unwrap().to_owned();
        let directory = self.cluster.claim().join(format!("train/runs/r-1/.infra/{uid}"));
        fs::create_dir_all(&directory).unwrap();
        self.put_aged(&directory.join(name), "0\n", age);
    }

    fn put_aged(&self, path: &std::path::Path, text: &str, age: u64) {
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_763_000_000 - age)).unwrap();
    }

    /// A program that failed in an attempt, and whose peers were all there.
    fn put_failure(&self, attempt: u32, index: u32, code: u32, text: &str, age: u64) {
        let waits =
            "this pod waits up to 180 s, so that a lost machine is not counted as a failure of the program";
        let log = format!("{text}infra: the program exited with {code}; {waits}\n");
        self.put_log(attempt, &format!("worker-{index}"), &log, age);
        self.put_mark(&format!("failed.{attempt}.worker.{index}"), age);
        for peer in 0..2 {
            self.put_mark(&format!("alive.{attempt}.worker.{peer}"), age);
        }
    }
}

#[track_caller]
fn expect_no_reader(world: &JobWorld) {
    world.cluster.wait_for("the reader to go", |state| (!state.has_pod_of("reader")).then_some(()));
}

#[test]
fn the_first_cause_is_that_of_the_launchers_and_not_of_the_order_of_pods() {
    let world = with_claim(1);
    world.put_failure(0, 1, 1, "ConnectionError: no route\n", 300);
    world.put_log(0, "worker-0", "epoch 1\ninfra: this pod is being terminated\n", 290);
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 1, 2);
    // The peer of the culprit failed too, and its pod ended first.
    world.put_failure(1, 1, 1, "lost my peer\n", 95);
    world.put_failure(1, 0, 3, "epoch 1\nValueError: a bad sample\n", 100);
    world.cluster.finish_together("worker", &[1, 0], 3);
    world.cluster.wait_for_end("train");
    let why = world.run(["why"]).expect_code(3);
    assert_eq!(
        why.stdout,
        "default/train: failed (BackoffLimitExceeded: Job has reached the specified backoff limit (after 1 restart)), restarted after 1 failure of 1\n\
         run r-1\n\
         first cause: attempt 1, worker 0 on gpu-1: exit code 3, 2025-11-13T02:11:40Z\n\
         \x20   epoch 1\n\
         \x20   ValueError: a bad sample\n\
         \x20   infra: the program exited with 3; this pod waits up to 180 s, so that a lost machine is not counted as a failure of the program\n\
         then of the others 1 failed too\n\
         earlier attempts:\n\
         \x20 attempt 0, worker 1: exit code 1, 2025-11-13T02:08:20Z: ConnectionError: no route\n\
         next:\n\
         \x20 `infra job logs train --role worker --index 0 --attempt 1` shows its whole log\n\
         \x20 fix the cause, then `infra job submit --replace` starts a new run; with `--resume r-1` it continues from the checkpoints of this one\n"
    );
    why.expect_stderr("reading what its attempts left on the claim …");
    expect_no_reader(&world);
    let document = world.run(["why", "--output", "json"]).expect_code(3);
    expect_exact(&BTreeMap::from([("job-why", vec![document.stdout.clone()])]), &[]);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["firstCause"]["kind"], "exited");
    assert_eq!(document["firstCause"]["exitCode"], 3);
    assert_eq!(document["firstCause"]["others"], json!({"failed": 1, "terminated": 0, "succeeded": 0}));
    assert_eq!(document["earlier"][0]["attempt"], 0);
}

#[test]
fn a_machine_that_was_lost_is_told_from_the_failures_of_its_peers() {
    let world = with_claim(3);
    // Worker 0 failed because its peer was gone, and the peer never answered.
    world.put_log(0, "worker-0", "NCCL error\ninfra: the program exited with 1; this pod waits\n", 100);
    world.put_mark("failed.0.worker.0", 100);
    world.put_mark("alive.0.worker.0", 100);
    world.put_log(0, "worker-1", "step 100\ninfra: this pod is being terminated\n", 110);
    let pod = world.cluster.evict("worker", 1);
    for (kind, name, reason, message) in [
        ("Pod", pod.2.as_str(), "Scheduled", "Successfully assigned default/train to gpu-1"),
        ("Pod", "other-worker-0-1-x", "BackOff", "not ours"),
        ("Node", "gpu-1", "NodeShutdown", "Shutdown manager detected shutdown event"),
        ("Node", "gpu-2", "NodeNotReady", "not a node of this job"),
    ] {
        world.cluster.put(
            "events",
            json!({"metadata": {"name": format!("{name}.{reason}"), "namespace": "default"}, "type": "Normal",
                   "involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message,
                   "lastTimestamp": "2026-11-16T10:00:00Z"}),
        );
    }
    world.cluster.wait_for_attempt("worker", 1, 2);
    let why = world.run(["why"]).expect_code(0);
    let why = why
        .expect_stdout("default/train: running, restarted after 1 lost machine\n")
        .expect_stdout("restarted by: attempt 0, worker 1: Kubernetes terminated it: its node was drained or shut down, or it was evicted, 2025-11-13T02:11:30Z\n")
        .expect_stdout("    step 100\n")
        .expect_stdout("then of the others 1 failed too\n")
        .expect_stdout("  2026-11-16T10:00:00Z node gpu-1: NodeShutdown: Shutdown manager detected shutdown event\n")
        .expect_stdout("a lost machine restarts the group without counting");
    for foreign in ["other-worker", "gpu-2", "Successfully assigned"] {
        assert!(!why.stdout.contains(foreign), "{}", why.stdout);
    }
}

#[test]
fn pods_that_tell_it_all_need_no_reader() {
    let world = JobWorld::new(&TRAIN.replace("replicas: 2", "replicas: 1"));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.print("worker", 0, "epoch 1\n");
    let killed = json!({"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-16T11:00:00Z"});
    world.cluster.set_status(
        "worker",
        0,
        json!({"phase": "Failed", "containerStatuses": [{"name": "worker", "state": {"terminated": killed}}]}),
    );
    world.cluster.wait_for_end("train");
    let before = world.cluster.changes();
    let why = world.run(["why", "train"]).expect_code(3);
    why.expect_stdout("first cause: attempt 0, worker 0 on gpu-1: killed: it used more memory than its limit, 2026-11-16T11:00:00Z\n    epoch 1\n")
        .expect_stdout("raise memory in job.yaml");
    assert_eq!(world.cluster.changes(), before);
    let document = world.run(["why", "--output", "json"]).expect_code(3);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["firstCause"]["kind"], "out-of-memory");
}

#[test]
fn what_a_retry_cannot_fix_is_said_to_be_so() {
    let world = JobWorld::new(&TRAIN.replace("replicas: 2", "replicas: 1"));
    world
        .cluster
        .decide(|_, _, _| Fate::Fail("gpu-1", 64, "infra: there is no program 'pyhton' in this image\n"));
    world.run(["submit"]).expect_code(1);
    let why = world.run(["why"]).expect_code(3);
    why.expect_stdout("worker 0 on gpu-1: exit code 64, which ends the job at once")
        .expect_stdout("    infra: there is no program 'pyhton' in this image")
        .expect_stdout("its last lines say what to fix; a retry cannot help");
    world.run(["delete", "--yes"]).expect_code(0);
    world.cluster.decide(|_, _, _| Fate::Fail("gpu-1", 64, "infra: the deadline has passed\n"));
    world.run(["submit"]).expect_code(1);
    let why = world.run(["why"]).expect_code(3);
    why.expect_stdout("worker 0 on gpu-1: the deadline passed").expect_stdout("raise deadline in job.yaml");
}

#[test]
fn data_that_could_not_be_imported_is_the_cause() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.run(["submit"]).expect_code(1);
    let why = world.run(["why"]).expect_code(3);
    why.expect_stdout("first cause: attempt 0, data 0 on worker-1: exit code 64")
        .expect_stdout("copy the archive there first")
        .expect_stdout("`infra job logs train --role data` shows its whole log");
}

#[test]
fn a_job_that_waits_is_explained_by_what_it_waits_for() {
    let world = JobWorld::new(TRAIN);
    world.run(["submit", "--detach"]).expect_code(0);
    let unplaced = |message: &str| json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": message}]});
    let image = json!({"reason": "ImagePullBackOff", "message": "no such image"});
    let image =
        json!({"phase": "Pending", "containerStatuses": [{"name": "worker", "state": {"waiting": image}}]});
    let room = unplaced("0/4 nodes are available: 4 Insufficient nvidia.com/gpu.");
    let table = [
        (
            &room,
            &room,
            "waits for machines (worker-0, worker-1): 0/4 nodes are available",
            "`infra status` shows the machines",
        ),
        (
            &room,
            &image,
            "waits for the image (worker-1): ImagePullBackOff: no such image\n",
            "check the name of the image",
        ),
        (
            &unplaced("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
            &image,
            "waits for the claim (worker-0): 0/4 nodes",
            "the claim must be Bound",
        ),
    ];
    for (first, second, expected, next) in table {
        world.cluster.set_status("worker", 0, first.clone());
        world.cluster.set_status("worker", 1, second.clone());
        let why = world.run(["why"]).expect_code(0);
        why.expect_stdout("default/train: starting (worker 0: ").expect_stdout(expected).expect_stdout(next);
    }
    expect_fit("job-why", &[world.run(["why", "--output", "json"]).expect_code(0).stdout]);
    assert!(
        !world.cluster.history().iter().any(|event| event == "pod reader"),
        "the claim tells nothing of this"
    );
}

#[test]
fn queues_and_quotas_are_waited_for_too() {
    let world = JobWorld::new(&format!("{TRAIN}queue: team-a\n"));
    world.cluster.install_kueue(&["team-a"]);
    world.run(["submit", "--detach"]).expect_code(0);
    let why = world.run(["why"]).expect_code(0);
    why.expect_stdout("waits for its queue: queue team-a has not admitted it yet\n")
        .expect_stdout("`infra job list -n default` shows who holds GPUs");

    let world = JobWorld::new(TRAIN);
    world.cluster.set_quota(Some("pods \"train\" is forbidden: exceeded quota: team-a"));
    world.run(["submit", "--detach"]).expect_code(0);
    let why = world.run(["why"]).expect_code(0);
    why.expect_stdout(
        "waits for its pods to be allowed (worker-0, worker-1): no pod can be created: FailedCreate",
    )
    .expect_stdout("a quota or a rule of namespace default refuses its pods");
}

#[test]
fn jobs_without_trouble_and_jobs_of_earlier_versions_are_explained() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    let why = world.run(["why"]).expect_code(0);
    assert_eq!(
        why.stdout,
        "default/train: running\nrun r-1\nnext:\n  `infra job logs train --all -f` follows it\n"
    );
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    world.cluster.wait_for_end("train");
    let why = world.run(["why"]).expect_code(0);
    assert_eq!(
        why.stdout,
        "default/train: complete\nrun r-1\nnext:\n  `infra job fetch train` downloads the results\n"
    );
    world.run(["delete", "--yes"]).expect_code(0);

    world.cluster.decide(|_, index, _| match index {
        0 => Fate::Run("gpu-1"),
        _ => Fate::Fail("gpu-2", 3, "ValueError: a bad sample\n"),
    });
    put_old_job(&world);
    world.cluster.wait_for("the end of the job", |state| {
        state.history().iter().any(|event| event == "job train Failed").then_some(())
    });
    let why = world.run(["why"]).expect_code(3);
    why.expect_stdout("first cause: attempt 0, worker 1 on gpu-2: exit code 3")
        .expect_stdout("    ValueError: a bad sample\n")
        .expect_stdout("`infra job logs train --role worker --index 1` shows its whole log");
    let missing = world.run(["why", "other"]).expect_code(1);
    missing.expect_stderr("there is no job 'other' in namespace default").expect_stderr("`infra job list`");
}

#[test]
fn a_claim_that_cannot_be_read_leaves_what_the_pods_tell() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|role, index, _| match (role, index) {
        ("reader", _) => Fate::Fail("worker-1", 1, "Traceback\n"),
        (_, 0) => Fate::Run("gpu-1"),
        _ => Fate::Fail("gpu-2", 3, "ValueError: a bad sample\n"),
    });
    world.run(["submit"]).expect_code(1);
    let why = world.run(["why"]).expect_code(3);
    why.expect_stderr("warning: what the attempts of job 'train' left on the claim cannot be read: the pod that reads them ended: reader ended with 1; what follows is from the pods that are left")
        .expect_stdout("first cause: attempt 0, worker 1 on gpu-2: exit code 3")
        .expect_stdout("then of the others 1 was terminated\n");
    expect_no_reader(&world);
}

/// How torchrun begins to report a failure.
const FAILED: &str = "E1118 02:08:20.114000 71 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 3) local_rank: 0 (pid: 93) of binary: /usr/bin/python\n";

/// What torchrun prints then unless our program has started it: its own traceback, and a page about each process that failed.
fn page_of_torchrun(processes: u32) -> String {
    let mut page = "Traceback (most recent call last):\n".to_owned();
    for part in
        ["bin/torchrun", "errors/__init__.py", "run.py", "run.py", "launcher/api.py", "launcher/api.py"]
    {
        page += &format!("  File \"/opt/{part}\", line 8, in main\n    run(args)\n");
    }
    page += "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n";
    let (rule, line) = ("=".repeat(60), "-".repeat(60));
    page += &format!("{rule}\ntrain.py FAILED\n{line}\nFailures:\n");
    for rank in 0..processes {
        page += &format!(
            "[{rank}]:\n  time      : 2025-11-13_02:08:20\n  host      : train-worker-0-0\n  rank      : {rank} (local_rank: {rank})\n  \
             exitcode  : 3 (pid: 9{rank})\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
        );
    }
    format!("{FAILED}{page}{line}\nRoot Cause (first observed failure):\n{rule}\n")
}

/// A torchrun of the user's own prints a page after what the program has printed; ours a line.
#[test]
fn the_last_words_of_an_attempt_are_those_of_the_program() {
    let world = with_claim(2);
    let ours = format!("{FAILED}infra: process 1 of torchrun ended with exit code 3\n");
    world.put_failure(0, 1, 1, &format!("ConnectionError: no route\n{ours}"), 300);
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 1, 2);
    world.put_failure(1, 1, 1, &format!("ValueError: too large\n{}", page_of_torchrun(8)), 200);
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 2, 2);
    world.put_failure(2, 0, 1, &format!("epoch 1\nValueError: a bad sample\n{}", page_of_torchrun(8)), 100);
    world.cluster.finish_together("worker", &[1, 0], 1);
    world.cluster.wait_for_end("train");
    let why = world
        .run(["why"])
        .expect_code(3)
        .expect_stdout("attempt 0, worker 1: exit code 1, 2025-11-13T02:08:20Z: ConnectionError: no route\n")
        .expect_stdout("attempt 1, worker 1: exit code 1, 2025-11-13T02:10:00Z: ValueError: too large\n")
        .expect_stdout(&format!(
            "    epoch 1\n    ValueError: a bad sample\n    {FAILED}    infra: the program exited with 1; "
        ));
    for of_torchrun in ["train.py FAILED", "====", "Traceback", "error_file"] {
        assert!(!why.stdout.contains(of_torchrun), "{}", why.stdout);
    }
}

/// A pod that was alone tells it all by itself.
#[test]
fn the_page_of_torchrun_is_left_out_of_a_pods_log_too() {
    let world = JobWorld::new(&TRAIN.replace("replicas: 2", "replicas: 1"));
    let said: &'static str =
        Box::leak(format!("ValueError: a bad sample\n{}", page_of_torchrun(8)).into_boxed_str());
    world.cluster.decide(move |_, _, _| Fate::Fail("gpu-1", 1, said));
    world.run(["submit"]).expect_code(1).expect_stderr("ValueError: a bad sample");
    let why = world.run(["why"]).expect_code(3);
    why.expect_stdout(&format!("    ValueError: a bad sample\n    {FAILED}next:\n"));
}

#[test]
fn an_interruption_leaves_no_reader_behind() {
    let world = with_claim(0);
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_end("train");
    world.cluster.run_no_programs();
    let asking = world.infra(["why"]).spawn();
    world.cluster.pod("reader", 0);
    asking.interrupt();
    let left = asking.wait().expect_code(130);
    assert_eq!(left.stdout, "");
    expect_no_reader(&world);
}
