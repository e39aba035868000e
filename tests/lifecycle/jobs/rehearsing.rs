//! `job submit --dry-run`: what would be used, whether it fits, what would be waited for; and nothing is written.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::{DATA, JobWorld, TRAIN};
use crate::schema_judge::expect_exact;
use crate::support::job_cluster::controller::Fate;

#[track_caller]
fn expect_nothing_written(world: &JobWorld) {
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
}

/// A pod of another job that holds GPUs of a node.
fn put_other(world: &JobWorld, namespace: &str, node: &str, gpus: u32) {
    let limits = json!({"nvidia.com/gpu": gpus.to_string()});
    world.cluster.put(
        "pods",
        json!({"metadata": {"name": format!("other-{node}"), "namespace": namespace},
               "spec": {"nodeName": node, "containers": [{"name": "a", "resources": {"limits": limits}}]},
               "status": {"phase": "Running"}}),
    );
}

#[test]
fn a_dry_run_says_what_would_be_used_and_writes_nothing() {
    let world = JobWorld::new(&TRAIN.replace("retries: 0", "retries: 1\ndeadline: 26h"));
    let plan = world.run(["submit", "--dry-run"]).expect_code(0);
    assert_eq!(
        plan.stdout,
        "default/train: submit would create a new run in train/runs on the claim efs\n\
         ROLE    REPLICAS  GPUS EACH  CPU  MEMORY  LIMIT    FITS NOW  IMAGE\n\
         worker  2         1          1    3Gi     31744Mi  2 of 2    registry.example.com/train:1\n\
         2 GPUs in all, any pool, 1 retry, at most 1d 2h\n"
    );
    plan.expect_stderr("nothing was written");
    let named = world.run(["submit", "--dry-run", "--run", "first", "--output", "json"]).expect_code(0);
    expect_exact(&BTreeMap::from([("job-dry-run", vec![named.stdout.clone()])]), &[]);
    let document: Value = serde_json::from_str(&named.stdout).unwrap();
    assert_eq!((&document["run"], &document["directory"]), (&json!("first"), &json!("train/runs/first")));
    assert_eq!((&document["gpus"], &document["roles"][0]["fitsNow"]), (&json!(2), &json!(2)));
    expect_nothing_written(&world);
}

#[test]
fn a_dry_run_says_what_the_machines_cost_by_the_lock() {
    let world = JobWorld::new(TRAIN);
    let name = world.workspace.setting("clusterName");
    let gpu = world.workspace.read("cluster.yaml");
    let gpu = gpu.split("name: gpu, instanceType: ").nth(1).unwrap().split([',', '}']).next().unwrap();
    let lock = |date: &str, machine: &str| {
        format!(
            "cluster: {name}\nregion: us-west-2\nimage: {{id: ami-1, name: Flatcar-stable-4459.2.1-hvm}}\n\
             prices: {{date: {date}, currency: USD, machines: {{{machine}: \"1.006\"}}}}\n"
        )
    };
    let write = |text: &str| fs::write(world.workspace.path("infra.lock"), text).unwrap();
    write(&lock("2020-02-01", gpu));
    let old = world.run(["submit", "--dry-run"]).expect_code(0);
    old.expect_stdout(
        "\nfills 2 machines of pool gpu: $2.01/h for them alone (prices of 2020-02-01, more than 90 days old)\n",
    );
    let document = world.run(["submit", "--dry-run", "--output", "json"]).expect_code(0).stdout;
    expect_exact(&BTreeMap::from([("job-dry-run", vec![document.clone()])]), &[]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["machines"], json!([{"pool": "gpu", "count": 2}]));
    assert_eq!(
        (&document["cost"]["perHour"], &document["cost"]["perMonth"]),
        (&json!("2.012"), &json!("1468.76"))
    );
    write(&lock("2020-02-01", "m5.large"));
    let missing = world.run(["submit", "--dry-run"]).expect_code(0);
    missing.expect_stdout(&format!(
        "at least $0.00/h for them alone (prices of 2020-02-01, more than 90 days old; no price: {gpu})"
    ));
    // Prices of another cluster's lock say nothing about this one.
    write(&lock("2020-02-01", gpu).replace(&format!("cluster: {name}"), "cluster: other"));
    let other = world.run(["submit", "--dry-run"]).expect_code(0);
    assert!(!other.stdout.contains("fills"), "{}", other.stdout);
    // Nor do those of another region about this cluster's namesake.
    write(&lock("2020-02-01", gpu).replace("region: us-west-2", "region: eu-west-1"));
    let other = world.run(["submit", "--dry-run"]).expect_code(0);
    assert!(!other.stdout.contains("fills"), "{}", other.stdout);
    expect_nothing_written(&world);

    // Machines of a capacity block are paid in advance.
    let id = "cr-0123456789abcdef0";
    world.workspace.edit(|text| {
        let pool = format!("name: gpu, image: deep-learning, capacityReservationId: {id}, instanceType: ");
        text.replace("spot: true", "spot: false").replace("name: gpu, instanceType: ", &pool)
    });
    let block = format!(
        "capacityBlocks: [{{id: {id}, begins: 2026-11-18T11:30:00Z, ends: 2026-11-20T11:30:00Z}}]\nprices: "
    );
    write(&lock("2020-02-01", gpu).replace("prices: ", &block));
    let prepaid = world.run(["submit", "--dry-run"]).expect_code(0);
    prepaid.expect_stdout(
        "\nfills 2 machines of pool gpu: $0.00/h for them alone (prices of 2020-02-01, more than 90 days old; not counted: 2 machines in \
         a capacity block, paid in advance)\n",
    );
}

#[test]
fn what_a_job_would_wait_for_is_said_before() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}queue: team-a\n"));
    world.cluster.install_kueue(&["team-a"]);
    put_other(&world, "vision", "gpu-1", 1);
    put_other(&world, "default", "gpu-2", 1);
    let plan = world.run(["submit", "--dry-run"]).expect_code(0);
    plan.expect_stdout("1 of 2    registry.example.com/train:1\n").expect_stdout(
        "would wait for:\n  its data, which is imported first\n  queue team-a, until its quota has room\n  \
         other pods hold GPUs: there is room for 1 of 2 replicas now, the others wait\n",
    );
    expect_nothing_written(&world);
}

#[test]
fn who_does_not_see_other_namespaces_learns_what_fits_at_most() {
    let world = JobWorld::new(TRAIN);
    put_other(&world, "vision", "gpu-1", 1);
    put_other(&world, "default", "gpu-2", 1);
    put_other(&world, "default", "gpu-3", 1);
    world.cluster.limit_to_namespace(Some("default"));
    let plan = world.run(["submit", "--dry-run"]).expect_code(0);
    plan.expect_stdout("at most 1 of 2  registry.example.com/train:1\n").expect_stdout(
        "other pods hold GPUs: there is room for at most 1 of 2 replicas now, the others wait\n",
    );
    expect_nothing_written(&world);
}

#[test]
fn what_submit_would_refuse_is_refused() {
    let world = JobWorld::new(&format!("{TRAIN}storage: {{claim: scratch}}\n").replace("gpus: 1", "gpus: 2"));
    let plan = world.run(["submit", "--dry-run"]);
    // The pools of the cluster cannot hold it, whatever is free.
    plan.expect_code(2);
    world.write_job(&format!("{TRAIN}storage: {{claim: scratch}}\n"));
    let plan = world.run(["submit", "--dry-run"]).expect_code(1);
    plan.expect_stdout("cannot run now:\n  there is no claim 'scratch' in namespace default\n");
    for more in [["--detach"].as_slice(), &["--timeout", "1h"]] {
        let arguments = ["submit", "--dry-run"].into_iter().chain(more.iter().copied());
        world.run(arguments).expect_code(2).expect_stderr("cannot be used with");
    }
    expect_nothing_written(&world);
}

#[test]
fn a_job_that_exists_would_be_attached_to_or_replaced() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "first"]).expect_code(0);
    let before = world.cluster.changes();
    let plan = world.run(["submit", "--dry-run"]).expect_code(0);
    plan.expect_stdout("default/train exists and is running: submit would attach to it, run first in train/runs/first on the claim efs\n");
    let plan = world.run(["submit", "--dry-run", "--replace"]).expect_code(0);
    plan.expect_stdout("default/train exists and is running: submit would delete it, then create a new run in train/runs on the claim efs\n");
    world.write_job(&TRAIN.replace("train:1", "train:2"));
    let refused = world.run(["submit", "--dry-run"]).expect_code(1);
    refused.expect_stderr("another job of this name already exists: 'train', running");
    assert_eq!(world.cluster.changes(), before);
    assert!(!world.cluster.pods("worker").is_empty());
}
