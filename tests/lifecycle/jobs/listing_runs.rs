//! `job runs`: every run of a job, also when the job is gone.

use serde_json::{Value, json};

use super::{JobWorld, TRAIN};
use crate::schema_judge::expect_fit;
use crate::support::job_cluster::controller::Fate;

/// The rows of the table without its heading, each as cells; the time of day and the duration differ from run to run.
fn rows(world: &JobWorld) -> Vec<Vec<String>> {
    let text = world.run(["runs"]).expect_code(0).stdout;
    let heading = text.lines().next().unwrap().to_owned();
    assert_eq!(
        heading.split_whitespace().collect::<Vec<_>>(),
        ["RUN", "STATE", "SUBMITTED", "DURATION", "RESTARTS", "CHANGED"]
    );
    let place = |name: &str| heading.find(name).unwrap();
    let cells = |line: &str| {
        let cell = |from: &str, to: Option<&str>| {
            let end = to.map_or(line.len(), place).min(line.len());
            line.get(place(from).min(end)..end).unwrap().trim().to_owned()
        };
        vec![
            cell("RUN", Some("STATE")),
            cell("STATE", Some("SUBMITTED")),
            cell("RESTARTS", Some("CHANGED")),
            cell("CHANGED", None),
        ]
    };
    text.lines().skip(1).map(cells).collect()
}

fn documents(world: &JobWorld) -> Vec<Value> {
    let printed = world.run(["runs", "train", "--output", "json"]).expect_code(0).stdout;
    expect_fit("job-runs", std::slice::from_ref(&printed));
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn runs_are_listed_with_what_changed_and_stay_when_their_job_is_deleted() {
    let world = JobWorld::new(&format!("{TRAIN}env: {{LR: \"0.1\", TOKEN_OF_NOBODY: \"hush\"}}\n"));
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit", "--run", "first"]).expect_code(0);
    assert_eq!(rows(&world), [["first", "complete", "0", ""]]);

    let second = TRAIN.replace("retries: 0", "retries: 2").replace("train:1", "train:2");
    world.write_job(&format!("{second}env: {{LR: \"0.01\", TOKEN_OF_NOBODY: \"hush\"}}\n"));
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--replace", "--detach", "--run", "second"]).expect_code(0);
    world.cluster.finish("worker", 1, 1);
    world.cluster.wait_for_attempt("worker", 1, 2);
    world.cluster.evict("worker", 1);
    world.cluster.wait_for_attempt("worker", 2, 2);
    let expected =
        [["first", "complete", "0", ""], ["second", "running", "1 failed, 1 lost", "env.LR, image, retries"]];
    assert_eq!(rows(&world), expected);

    world.run(["delete", "--yes"]).expect_code(0);
    let expected = [expected[0], ["second", "deleted", "1 failed, 1 lost", "env.LR, image, retries"]];
    assert_eq!(rows(&world), expected);
    let all = documents(&world);
    assert_eq!(all[1]["restarts"], json!({"failures": 1, "lostMachines": 1, "allowed": 2}));
    assert_eq!(all[1]["directory"], "train/runs/second");
    assert!(all.iter().all(|run| run["ended"].as_u64() >= Some(1)), "{all:#?}");
    assert_eq!(all[0]["changed"], Value::Null);
    // Values may be secret: neither they nor anything they can be told from is kept.
    let kept = world.cluster.object("configmaps", "default", "train-runs").unwrap().to_string();
    assert!(!kept.contains("hush") && !kept.contains("0.01"), "{kept}");

    // The same file again: nothing changed.
    world.run(["submit", "--detach", "--run", "third"]).expect_code(0);
    assert_eq!(rows(&world)[2], ["third", "running", "0", ""]);
    assert_eq!(documents(&world)[2]["changed"], json!([]));
    world.run(["submit", "--replace", "--detach", "--yes", "--resume", "second"]).expect_code(0);
    let last = rows(&world);
    assert_eq!(last[1], ["third", "deleted", "0", "env.LR, image, retries"]);
    assert_eq!(last[2], ["second (resumed)", "running", "0", ""]);
}

#[test]
fn a_run_whose_end_nobody_saw_is_said_to_be_unknown() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    world.cluster.take("jobsets", "default", "train");
    // The garbage collector looks when something has changed.
    world.cluster.change("nodes", "", "gpu-1", json!({}));
    world.cluster.wait_for("the end of the Jobs", |state| (!state.has_job("train-worker-0")).then_some(()));
    let list = world.run(["runs", "train"]).expect_code(0);
    let line = list.stdout.lines().nth(1).unwrap();
    assert!(line.starts_with("first  unknown  20") && line.ends_with("UTC  -         -"), "{}", list.stdout);
}

#[test]
fn a_job_without_runs_and_a_run_that_nobody_recorded_are_reported() {
    let world = JobWorld::new(TRAIN);
    let missing = world.run(["runs"]).expect_code(1);
    missing.expect_stderr("there is no job 'train' in namespace default").expect_stderr("`infra job list`");
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    super::earlier_versions::put_old_job(&world);
    let list = world.run(["runs"]).expect_code(0);
    list.expect_stdout("r-first  running  -          -         -");
}

#[test]
fn only_the_newest_runs_are_kept() {
    let world = JobWorld::new(TRAIN);
    let entry = |number: u32| {
        let record = json!({"submitted": 1_700_000_000 + number, "state": "complete", "claim": "efs",
                            "directory": format!("train/runs/old-{number}")});
        (format!("old-{number}"), Value::from(record.to_string()))
    };
    let mut data: serde_json::Map<String, Value> = (0..50).map(entry).collect();
    // Whoever wrote this is not asked.
    data.insert("notes".to_owned(), "no run".into());
    world.cluster.put(
        "configmaps",
        json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data,
               "metadata": {"name": "train-runs", "namespace": "default",
                            "labels": {"app.kubernetes.io/managed-by": "infra"}}}),
    );
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "new"]).expect_code(0);
    let all = documents(&world);
    assert_eq!((all.len(), &all[0]["run"], &all[49]["run"]), (50, &json!("old-1"), &json!("new")));
}

#[test]
fn a_list_that_is_not_ours_is_left_alone_and_training_begins() {
    let world = JobWorld::new(TRAIN);
    world.cluster.put_foreign("configmaps", "train-runs");
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    let sent = world.run(["submit", "--detach"]).expect_code(0);
    sent.expect_stderr("warning: `infra job runs` does not know this run: there is a ConfigMap train-runs in namespace default that infra did not create");
    assert_eq!(world.cluster.object("configmaps", "default", "train-runs").unwrap()["data"], Value::Null);
    let refused = world.run(["runs"]).expect_code(1);
    refused
        .expect_stderr("there is a ConfigMap train-runs in namespace default that infra did not create")
        .expect_stderr("delete or rename it; the list of the job's runs has this name");
}
