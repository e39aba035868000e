//! The GPUs that nodes see, compared with those they should have.

use serde_json::{Value, json};

use super::{JobWorld, TRAIN};
use crate::schema_judge::expect_fit;
use crate::support::job_cluster::controller::Fate;

const TESLA: &str = "0, Tesla T4, 15360 MiB, 570.86\n";

#[track_caller]
fn expect_no_pods(world: &JobWorld) {
    world.cluster.wait_for("the pods to go", |state| (!state.has_pod_of("gpu-check")).then_some(()));
}

#[test]
fn nodes_that_see_their_gpus_pass() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", TESLA));
    let checked = world.run(["gpu-check"]).expect_code(0);
    assert_eq!(
        checked.stdout,
        "NODE   POOL  GPUS  SEEN\n\
         gpu-1  gpu   1     1     Tesla T4, 15360 MiB, 570.86\n\
         gpu-2  gpu   1     1     Tesla T4, 15360 MiB, 570.86\n\
         gpu-3  gpu   1     1     Tesla T4, 15360 MiB, 570.86\n"
    );
    expect_no_pods(&world);
    let document = world.run(["gpu-check", "--output", "json"]).expect_code(0);
    expect_fit("gpu-check", std::slice::from_ref(&document.stdout));
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document[2]["gpus"], json!(["0, Tesla T4, 15360 MiB, 570.86"]));
}

#[test]
fn the_fault_of_a_node_is_reported() {
    let world = JobWorld::new(TRAIN);
    world.cluster.put_node("gpu-4", "gpu", 1);
    world.cluster.change("nodes", "", "gpu-1", json!({"status": {"allocatable": {"nvidia.com/gpu": "0"}}}));
    let not_ready =
        json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"}]);
    world.cluster.change("nodes", "", "gpu-2", json!({"status": {"conditions": not_ready}}));
    world.cluster.decide(|_, _, _| Fate::Wait);
    let checking = world.infra(["gpu-check"]).spawn();
    for _ in 0..3 {
        let key = world.cluster.pod("gpu-check", 0);
        let node = world.cluster.object("pods", "default", &key.2).unwrap()["spec"]["nodeName"].clone();
        match node.as_str().unwrap() {
            "gpu-1" => world.cluster.end_pod(&key, 0, TESLA),
            "gpu-3" => world.cluster.end_pod(&key, 0, ""),
            _ => world.cluster.end_pod(&key, 9, "NVIDIA-SMI has failed because it couldn't communicate\n"),
        }
    }
    let checked = checking.wait().expect_code(3);
    checked
        .expect_stdout("gpu-1  gpu   1     1     Kubernetes offers pods 0 GPUs, but the machine has 1")
        .expect_stdout("gpu-2  gpu   1     0     the node is not Ready: KubeletNotReady: no CNI")
        .expect_stdout("gpu-3  gpu   1     0     nvidia-smi finds 0 GPUs, but the machine has 1")
        .expect_stdout(
            "gpu-4  gpu   1     0     nvidia-smi failed: gpu-check ended with 9 NVIDIA-SMI has failed",
        );
    expect_no_pods(&world);
}

#[test]
fn a_cluster_without_gpus_has_nothing_to_check() {
    let world = JobWorld::of_golden("tensorflow-tutorial", TRAIN);
    world.cluster.put_node("worker-1", "cpu", 0);
    world.run(["gpu-check"]).expect_code(0).expect_stdout("tensorflow: there are no GPU nodes");
    assert!(world.cluster.changes().is_empty());
}

#[test]
fn an_interrupted_check_leaves_no_pods() {
    let world = JobWorld::new(TRAIN);
    let checking = world.infra(["gpu-check"]).spawn();
    world.cluster.pod("gpu-check", 0);
    checking.interrupt();
    checking.wait().expect_code(130);
    expect_no_pods(&world);
}
