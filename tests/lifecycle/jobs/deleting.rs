//! Jobs that are deleted; their files are kept.

use std::fs;

use serde_json::json;

use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

#[test]
fn deleting_a_running_job_needs_a_yes() {
    let world = JobWorld::new(&format!("{TRAIN}tensorboard: true\n"));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let sent = world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    sent.expect_stderr("`infra job tensorboard train` shows its TensorBoard");
    fs::create_dir_all(world.cluster.claim().join("train/runs/first/output")).unwrap();
    let before = world.cluster.changes();
    let refused = world.run(["delete"]).expect_code(1);
    refused
        .expect_stderr("Job 'train' is running. It will be deleted. Continue?")
        .expect_stderr("`--yes` answers yes");
    world.at_terminal("delete", "n\n").expect_code(1).expect_stdout("declined; nothing was changed");
    assert_eq!(world.cluster.changes(), before);

    let gone = world.run(["delete", "--yes"]).expect_code(0);
    gone.expect_stderr("job 'train' is deleted").expect_stderr("its files stay in train on the claim efs");
    for (plural, name) in [
        ("jobsets", "train"),
        ("jobs", "train-worker-0"),
        ("services", "train"),
        ("services", "train-tensorboard"),
        ("configmaps", "train-scripts"),
        ("jobs", "train-tensorboard"),
    ] {
        assert!(world.cluster.object(plural, "default", name).is_none(), "{plural} {name} is left");
    }
    assert!(world.cluster.pods("worker").is_empty(), "it did not wait for the pods");
    assert!(world.cluster.object("persistentvolumeclaims", "default", "efs").is_some());
    assert!(world.cluster.claim().join("train/runs/first/output").exists());

    let again = world.run(["delete", "--yes"]).expect_code(0);
    again.expect_stderr("there is no job 'train' in namespace default; nothing to do");
}

#[test]
fn a_finished_job_is_deleted_without_a_question() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit"]).expect_code(0);
    world.run(["delete", "train"]).expect_code(0).expect_stderr("job 'train' is deleted");
    assert!(world.cluster.pods("worker").is_empty());
}

#[test]
fn a_yes_at_the_terminal_is_enough() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    let gone = world.at_terminal("delete train", "y\n").expect_code(0);
    gone.expect_stdout("Job 'train' is running. It will be deleted. Continue? [y/N]")
        .expect_stdout("job 'train' is deleted");
}

#[test]
fn delete_waits_until_the_pods_have_terminated() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.keep_pods(true);
    let mut deleting = world.infra(["delete", "--yes"]).spawn();
    deleting.wait_for_stderr("waiting for Pod train-worker-0-0-");
    assert!(world.cluster.state().has_job_set("train"), "it is gone before its pods");
    // A machine that is lost lets go when its node is removed; two processes with one number would disturb each other.
    for arguments in [vec!["submit"], vec!["submit", "--detach"]] {
        let early = world.run(arguments).expect_code(5);
        let early = early.expect_stderr("job 'train' is not deleted yet: Pod train-worker-0-0-");
        assert!(!early.stderr.contains("attaching"), "{}", early.stderr);
    }
    assert_eq!(world.cluster.pods("worker").len(), 2);
    assert!(deleting.is_running(), "it did not wait");
    world.cluster.keep_pods(false);
    deleting.wait().expect_code(0).expect_stderr("job 'train' is deleted");
    assert!(!world.cluster.state().has_job_set("train"));
}

#[test]
fn a_job_is_not_replaced_before_its_pods_have_terminated() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach"]).expect_code(0);
    let uid =
        || world.cluster.object("jobsets", "default", "train").map(|set| set["metadata"]["uid"].clone());
    let (first, pods) = (uid(), world.cluster.pods("worker"));
    world.cluster.keep_pods(true);
    world.write_job(&TRAIN.replace("train:1", "train:2"));
    let late = world.run(["submit", "--replace", "--yes", "--timeout", "10s"]).expect_code(5);
    late.expect_stderr("waiting for Pod train-worker-0-0-")
        .expect_stderr("job 'train' is not deleted yet: JobSet train, Pod train-worker-0-0-")
        .expect_stderr("`kubectl delete pod --force`");
    // It was deleted in the foreground: what is there is the first one, on its way out.
    let set = world.cluster.object("jobsets", "default", "train").unwrap();
    assert_eq!(set["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!((uid(), world.cluster.pods("worker")), (first.clone(), pods.clone()));

    let mut replacing = world.infra(["submit", "--replace", "--yes", "--detach"]).spawn();
    replacing.wait_for_stderr("waiting for Pod train-worker-0-0-");
    assert!(replacing.is_running(), "it did not wait");
    assert_eq!(uid(), first, "two jobs at once");
    world.cluster.keep_pods(false);
    replacing.wait().expect_code(0).expect_stderr("JobSet train: applied");
    assert!(uid().is_some() && uid() != first);
    let now = world.cluster.pods("worker");
    assert_eq!(now.len(), 2, "{now:?}");
    assert!(now.iter().all(|pod| !pods.contains(pod)), "{now:?}");
}

/// Deletes a JobSet with everything that it owns, as its time limit does it.
fn take_job_set(world: &JobWorld) {
    world.cluster.take("jobsets", "default", "train");
    world.cluster.change("namespaces", "", "default", json!({}));
    world.cluster.wait_for("the Jobs and pods to go", |state| {
        (!state.has_job("train-worker-0") && !state.has_pod_of("worker")).then_some(())
    });
}

#[test]
fn a_tensorboard_is_no_part_of_its_job() {
    let world = JobWorld::new(&format!("{TRAIN}tensorboard: true\n"));
    world.cluster.decide(|role, _, _| match role {
        "tensorboard" => Fate::Fail("gpu-1", 64, "no such option\n"),
        _ => Fate::Run("gpu-1"),
    });
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.wait_for("the TensorBoard to fail", |state| {
        (state.phases("tensorboard") == ["Failed"]).then_some(())
    });
    world.run(["status"]).expect_code(0).expect_stdout("running");

    // Whoever attaches gets one again.
    world.cluster.take("jobs", "default", "train-tensorboard");
    world.run(["submit", "--detach"]).expect_code(0).expect_stderr("attaching to it");
    assert!(world.cluster.object("jobs", "default", "train-tensorboard").is_some());
}

#[test]
fn a_tensorboard_of_a_deleted_job_does_not_block_the_next_one() {
    let world = JobWorld::new(&format!("{TRAIN}tensorboard: true\n"));
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit"]).expect_code(0);
    // Someone has deleted its JobSet, and what shows its results still runs.
    take_job_set(&world);
    assert!(!world.run(["list"]).expect_code(0).stdout.contains("train"), "a TensorBoard is no job");
    let labels = json!({"app.kubernetes.io/managed-by": "infra", "infra.internal/job": "train", "infra.internal/role": "tensorboard"});
    world.cluster.put(
        "pods",
        json!({"metadata": {"name": "train-tensorboard-1", "namespace": "default", "labels": labels},
               "status": {"phase": "Running"}}),
    );
    world.run(["submit"]).expect_code(0).expect_stdout("complete");
    assert!(world.cluster.object("jobs", "default", "train-tensorboard").is_some());

    // A job without one takes the old one away.
    take_job_set(&world);
    world.write_job(TRAIN);
    world.run(["submit"]).expect_code(0);
    for plural in ["jobs", "services"] {
        assert!(world.cluster.object(plural, "default", "train-tensorboard").is_none(), "{plural}");
    }
    assert!(world.cluster.object("services", "default", "train").is_some());
}
