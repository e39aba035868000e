//! Jobs that versions of infra without JobSet submitted: they end as they began, and every command knows them.

use std::fs;

use serde_json::{Value, json};

use super::queries::without_ages;
use super::{DATA, JobWorld, TRAIN};
use crate::schema_judge::expect_fit;
use crate::support::job_cluster::controller::Fate;

const WORKERS: &[(&str, u32)] = &[("worker", 2)];
const SERVERS: &[(&str, u32)] = &[("ps", 1), ("worker", 2)];

/// What every object of a job has, and more.
fn labels(more: &[(&str, &str)]) -> Value {
    let own = [("app.kubernetes.io/managed-by", "infra"), ("infra.internal/job", "train")];
    let framework = ("infra.internal/framework", "pytorch");
    let all = own.into_iter().chain([framework]).chain(more.iter().copied());
    Value::from_iter(all.map(|(key, value)| (key, Value::from(value))))
}

fn rules(container: &str) -> Value {
    json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": container, "operator": "In", "values": [64]}},
    ]})
}

/// A job as those versions created it, which is not retried: a Service, scripts, and a Job with two workers.
pub(super) fn put_old_job(world: &JobWorld) {
    put_job(world, WORKERS, 0);
}

/// A job as those versions created it: a Service, scripts, and a Job for each role.
fn put_job(world: &JobWorld, roles: &[(&str, u32)], retries: u32) {
    let metadata = |name: &str| json!({"name": name, "namespace": "default", "labels": labels(&[])});
    world.cluster.put("services", json!({"metadata": metadata("train"), "spec": {"clusterIP": "None"}}));
    world.cluster.put("configmaps", json!({"metadata": metadata("train-scripts"), "data": {}}));
    let annotations = json!({"infra.internal/digest": "0123456789ab", "infra.internal/claim": "efs",
                             "infra.internal/path": "train"});
    for (role, count) in roles {
        let name = if roles.len() == 1 { "train".to_owned() } else { format!("train-{role}") };
        let own = [("infra.internal/role", *role), ("infra.internal/run", "r-first")];
        let gpus = if *role == "ps" { json!({}) } else { json!({"nvidia.com/gpu": "1"}) };
        let container =
            json!({"name": role, "image": "registry.example.com/train:1", "resources": {"limits": gpus}});
        let pods = json!({"metadata": {"labels": labels(&own)},
                          "spec": {"restartPolicy": "Never", "subdomain": "train", "containers": [container]}});
        world.cluster.put(
            "jobs",
            json!({"metadata": {"name": name, "namespace": "default", "labels": labels(&own), "annotations": annotations},
                   "spec": {"completionMode": "Indexed", "parallelism": count, "completions": count, "backoffLimit": retries,
                            "podReplacementPolicy": "Failed", "podFailurePolicy": rules(role), "template": pods}}),
        );
        world.cluster.change("jobs", "default", &name, json!({}));
    }
}

/// An import of those versions, which training had not begun after: it named neither a run nor its claim.
fn put_import(world: &JobWorld) {
    let own = labels(&[("infra.internal/role", "data")]);
    let annotations = json!({"infra.internal/digest": "0123456789ab"});
    let pods = json!({"metadata": {"labels": own}, "spec": {"restartPolicy": "Never", "containers": [{"name": "data"}]}});
    world.cluster.put(
        "jobs",
        json!({"metadata": {"name": "train-data", "namespace": "default", "labels": own, "annotations": annotations},
               "spec": {"backoffLimit": 3, "podReplacementPolicy": "Failed", "podFailurePolicy": rules("data"),
                        "template": pods}}),
    );
    world.cluster.change("jobs", "default", "train-data", json!({}));
}

/// A world with such a job whose pods run.
fn with_job(roles: &[(&str, u32)]) -> JobWorld {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|role, _, _| match role {
        "files" => Fate::Wait,
        "ps" => Fate::Run("worker-1"),
        _ => Fate::Run("gpu-1"),
    });
    put_job(&world, roles, 1);
    world
}

#[test]
fn status_and_list_show_it() {
    let world = with_job(WORKERS);
    let status = world.run(["status"]).expect_code(0);
    assert_eq!(
        status.stdout,
        "default/train: running, 0 of 2 done\n\
         run r-first in train on the claim efs\n\
         ROLE    INDEX  PHASE    NODE   RESTARTS  GPUS\n\
         worker  0      Running  gpu-1  0         1\n\
         worker  1      Running  gpu-1  0         1\n"
    );
    let document = world.run(["status", "--output", "json"]).expect_code(0);
    expect_fit("job-status", std::slice::from_ref(&document.stdout));
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!((&document["restarts"], &document["directory"]), (&Value::Null, &json!("train")));
    let list = world.run(["list"]).expect_code(0);
    assert_eq!(
        without_ages(&list.stdout),
        "NAMESPACE  JOB    FRAMEWORK  STATE    DONE  GPUS\n\
         default    train  pytorch    running  0/2   2\n"
    );
    // Such a job is complete when all of its replicas are.
    world.cluster.finish("worker", 0, 0);
    world.run(["status"]).expect_code(0).expect_stdout("train: running, 1 of 2 done");
    world.cluster.finish("worker", 1, 0);
    world.run(["status"]).expect_code(0).expect_stdout("train: complete, 2 of 2 done");
    assert!(world.cluster.changes().is_empty(), "reading changed something");
}

#[test]
fn one_that_is_restarted_or_fails_is_shown_as_such() {
    let world = with_job(SERVERS);
    world.cluster.finish("worker", 1, 1);
    let status = world.run(["status"]).expect_code(0);
    let status = status.expect_stdout("default/train: running, 0 of 3 done\n");
    let line = status.stdout.lines().find(|line| line.starts_with("worker  1")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["worker", "1", "Running", "gpu-1", "1", "1"]);
    world.run(["list"]).expect_code(0).expect_stdout("running  0/3   2");
    world.cluster.finish("worker", 1, 3);
    let failed = "job train-worker Failed".to_owned();
    world.cluster.wait_for("its end", |state| state.history().contains(&failed).then_some(()));
    let status = world.run(["status"]).expect_code(3);
    status.expect_stdout(
        "default/train: failed (BackoffLimitExceeded: Job has reached the specified backoff limit)",
    );
    world.run(["list"]).expect_code(0).expect_stdout("pytorch    failed");
}

#[test]
fn logs_read_the_newest_pod() {
    let world = with_job(SERVERS);
    world.cluster.print("worker", 1, "one\n");
    world.cluster.print("ps", 0, "serving\n");
    assert_eq!(world.run(["logs", "--index", "1"]).expect_code(0).stdout, "one\n");
    assert_eq!(world.run(["logs", "--role", "ps"]).expect_code(0).stdout, "serving\n");
    let mut following = world.infra(["logs", "-f", "--index", "1"]).spawn();
    following.wait_for_stdout("one\n");
    world.cluster.finish("worker", 1, 1);
    following.wait_for_stderr("-- restarted as train-worker-1-");
    world.cluster.print("worker", 1, "two\n");
    following.wait_for_stdout("two\n");
    world.cluster.finish("worker", 1, 0);
    following.wait().expect_code(0);
    assert!(world.cluster.changes().is_empty(), "reading changed something");
}

#[test]
fn attempts_that_were_not_kept_are_not_looked_for() {
    let world = with_job(WORKERS);
    let refused = world.run(["logs", "--attempt", "0"]).expect_code(1);
    refused
        .expect_stderr("an earlier version of infra submitted job 'train', and kept no logs of its attempts")
        .expect_stderr("`infra job logs train --role worker --index 0` reads the log of its pod");
    assert!(world.cluster.changes().is_empty(), "a pod was created to read what nobody wrote");
}

#[test]
fn its_results_are_found() {
    let world = with_job(WORKERS);
    let output = world.cluster.claim().join("train/output");
    fs::create_dir_all(&output).unwrap();
    fs::write(output.join("model"), "old").unwrap();
    world.run(["fetch"]).expect_code(0);
    assert_eq!(fs::read_to_string(world.workspace.path("results/train/model")).unwrap(), "old");
    world.cluster.wait_for("the pod of the files to go", |state| (!state.has_pod_of("files")).then_some(()));
    assert_eq!(world.cluster.pods("worker").len(), 2, "reading results disturbed it");
}

#[test]
fn it_is_deleted_with_everything_that_belongs_to_it() {
    let world = with_job(SERVERS);
    let refused = world.run(["delete"]).expect_code(1);
    refused.expect_stderr("Job 'train' is running. It will be deleted. Continue?");
    assert!(world.cluster.changes().is_empty());
    let gone = world.run(["delete", "--yes"]).expect_code(0);
    gone.expect_stderr("job 'train' is deleted").expect_stderr("its files stay in train on the claim efs");
    let objects = [
        ("jobs", "train-ps"),
        ("jobs", "train-worker"),
        ("services", "train"),
        ("configmaps", "train-scripts"),
    ];
    for (plural, name) in objects {
        assert!(world.cluster.object(plural, "default", name).is_none(), "{plural} {name} is left");
    }
    assert!(world.cluster.pods("worker").is_empty() && world.cluster.pods("ps").is_empty());
    world.run(["list"]).expect_code(0).expect_stdout("there are no jobs");
}

#[test]
fn it_is_replaced_only_with_the_flag() {
    let world = with_job(WORKERS);
    let old = world.cluster.pods("worker");
    assert_eq!(old.len(), 2, "{old:?}");
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr(
            "a job of this name that an earlier version of infra submitted already exists: 'train', running",
        )
        .expect_stderr("`infra job submit --replace` deletes it first");
    assert!(world.cluster.changes().is_empty(), "a refusal changed something");

    world.run(["submit", "--replace", "--yes", "--detach"]).expect_code(0);
    assert!(world.cluster.object("jobs", "default", "train").is_none());
    let pods = world.cluster.pods("worker");
    assert!(pods.len() == 2 && pods.iter().all(|pod| !old.contains(pod)), "{pods:?}");
    let service = world.cluster.object("services", "default", "train").unwrap();
    assert_eq!(service["metadata"]["ownerReferences"][0]["kind"], "JobSet", "the old Service is left");
}

#[test]
fn an_import_that_was_left_is_shown_and_replaced() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.put_archive(4);
    world.cluster.decide(|_, _, _| Fate::Run("worker-1"));
    put_import(&world);
    let status = world.run(["status"]).expect_code(0);
    assert_eq!(
        status.stdout,
        "default/train: importing\n\
         ROLE  INDEX  PHASE    NODE      RESTARTS  GPUS\n\
         data  0      Running  worker-1  0         0\n"
    );
    world.cluster.print("data", 0, "unpacking\n");
    assert_eq!(world.run(["logs", "--role", "data"]).expect_code(0).stdout, "unpacking\n");
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr(
        "a job of this name that an earlier version of infra submitted already exists: 'train', importing",
    );
    assert!(world.cluster.changes().is_empty(), "a refusal changed something");
    world.cluster.decide(|role, _, _| if role == "data" { Fate::Wait } else { Fate::Succeed("gpu-1", "") });
    world.run(["submit", "--replace", "--yes"]).expect_code(0).expect_stdout("complete");
    assert_eq!(world.read_claim("train/0/data/train.txt"), "line 0\nline 1\n");
}
