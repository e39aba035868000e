//! Pools are created, changed, shrunk and deleted, each alone, and jobs on their nodes are named first.

use serde_json::json;

use crate::support::reading::is_reading;
use crate::support::run_into_time_limit;
use crate::support::world::World;

const OTHER_POOL: &str = "pools:\n- {name: spare, instanceType: m5.large, count: 1}\n";

/// The stacks that got a change set or were deleted, in order.
fn touched(world: &World) -> Vec<String> {
    let calls = world.proxy.calls().into_iter().filter(|call| {
        matches!(call.operation.as_str(), "cloudformation:CreateChangeSet" | "cloudformation:DeleteStack")
    });
    let name = |target: String| target.split('/').nth(1).unwrap_or(&target).to_owned();
    calls.filter_map(|call| call.target).map(name).collect()
}

#[test]
fn a_new_pool_changes_no_other_stack_and_is_deleted_only_with_prune() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("pools:\n", OTHER_POOL));
    world.proxy.clear();
    world.up([]).expect_code(0);
    assert_eq!(touched(&world), ["minimal-pool-spare"]);

    world.workspace.edit(|text| text.replace(OTHER_POOL, "pools:\n"));
    world.run(["plan"]).expect_code(0).expect_stdout("pool spare: DELETE");
    world.run_job("spare");
    world.proxy.clear();
    // There is no terminal to answer it, so the pool stays; everything else is done.
    world
        .up([])
        .expect_code(0)
        .expect_stderr("pools that are no longer in cluster.yaml are kept; `--prune` deletes them");
    assert_eq!(touched(&world), [""; 0]);

    world
        .up(["--prune"])
        .expect_code(1)
        .expect_stderr("job default/train runs on")
        .expect_stderr("`--yes` answers yes");
    assert_eq!(touched(&world), [""; 0]);
    let outcome = world.up(["--prune", "--yes"]).expect_code(0).expect_stderr("job default/train runs on");
    assert!(!outcome.stderr.contains("no stack had to change"), "{}", outcome.stderr);
    assert_eq!(touched(&world), ["minimal-pool-spare"]);
    assert_eq!(world.aws().stack_status("minimal-pool-spare"), None);
    world.run(["status"]).expect_code(0).expect_stdout("healthy");
}

#[test]
fn up_can_be_limited_to_one_pool() {
    let world = World::of_golden("ha-gpu-efs");
    world.up(["--pool", "gpu"]).expect_code(1).expect_stderr("pool gpu cannot be created before the cluster");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| {
        text.replace("count: 2, maxCount: 4", "count: 3, maxCount: 4").replace("maxCount: 8", "maxCount: 9")
    });
    world.proxy.clear();
    world.up(["--pool", "gpu"]).expect_code(0);
    assert_eq!(touched(&world), ["research-pool-gpu"]);
    world
        .run(["plan"])
        .expect_code(0)
        .expect_stdout("pool cpu: update")
        .expect_stdout("pool gpu: no changes");
    world
        .up(["--pool", "nobody"])
        .expect_code(2)
        .expect_stderr("cluster.yaml has no pool 'nobody'")
        .expect_stderr("it has cpu, gpu");
    world
        .run(["plan", "--pool", "nobody"])
        .expect_code(2)
        .expect_stderr("cluster.yaml has no pool 'nobody'")
        .expect_stderr("it has cpu, gpu");
}

#[test]
fn jobs_are_named_before_a_pool_leaves_an_availability_zone_or_changes_its_purchase_option() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    for (pool, from, to) in [
        ("cpu", "count: 2, maxCount: 4", "count: 2, maxCount: 4, availabilityZones: [us-west-2a]"),
        ("gpu", "  spot: true\n", ""),
    ] {
        world.run_job(pool);
        let before = world.workspace.read("cluster.yaml");
        world.workspace.edit(|text| text.replace(from, to));
        world.proxy.clear();
        world
            .up([])
            .expect_code(1)
            .expect_stderr("job default/train runs on")
            .expect_stderr("1 job pod will be terminated. Continue?")
            .expect_stderr("`--yes` answers yes");
        assert_eq!(touched(&world), [""; 0]);
        world.workspace.edit(|_| before);
    }
}

#[test]
fn up_asks_for_a_yes_when_it_cannot_tell_whether_jobs_run() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("instanceType:", "rootVolumeGiB: 150, instanceType:"));
    world.api.set_unreachable(true);
    world.proxy.clear();
    world
        .up([])
        .expect_code(1)
        .expect_stderr("! jobs may be running on machines that will be terminated: ")
        .expect_stderr("Jobs may be running on nodes that will be terminated. Continue?")
        .expect_stderr("`--yes` answers yes");
    assert_eq!(touched(&world), [""; 0]);
    world.up(["--yes", "--wait", "stacks"]).expect_code(0);
    assert_eq!(touched(&world), ["minimal-pool-cpu"]);
}

/// Gives the pool of GPU machines another label, which its machines do not have until they are replaced.
fn change_gpu_pool(world: &World) {
    world.workspace.edit(|text| {
        let (head, pools) = text.split_once("pools:").unwrap();
        let (first, gpu) = pools.split_once("name: gpu").unwrap();
        format!(
            "{head}pools:{first}name: gpu{}",
            gpu.replacen("instanceType:", "labels: {rack: b}, instanceType:", 1)
        )
    });
}

fn gpu_nodes(world: &World) -> Vec<serde_json::Value> {
    let nodes = world.api.nodes().into_iter();
    nodes.filter(|node| node["metadata"]["labels"]["infra.internal/pool"] == "gpu").collect()
}

fn machines(world: &World) -> Vec<String> {
    let nodes = gpu_nodes(world).into_iter();
    nodes.map(|node| node["spec"]["providerID"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_manual_rollout_replaces_outdated_machines_one_by_one_after_their_jobs() {
    let world = World::of_golden("tensorflow-tutorial");
    world.up([]).expect_code(0);
    let before = machines(&world);
    change_gpu_pool(&world);
    // GPU nodes are not touched by the change itself.
    world.up([]).expect_code(0);
    assert_eq!(machines(&world), before);
    world.run(["status"]).expect_stdout("outdated");

    let node = world.run_job("gpu");
    let patches = || world.api.requests().iter().filter(|request| request.starts_with("PATCH")).count();
    let mut earlier_patches = 0;
    let outcome = run_into_time_limit(&format!("job default/train on {node}"), |limit| {
        earlier_patches = patches();
        world.up(["--pool", "gpu", "--replace-nodes", "--timeout", limit])
    });
    outcome.expect_stderr("takes new pods again");
    assert_eq!(machines(&world), before, "a job is not ended by a rollout");
    assert_eq!(patches() - earlier_patches, 2, "cordoned, and open again");

    world.api.set_pods(Vec::new());
    world.proxy.clear();
    world.up(["--pool", "gpu", "--replace-nodes", "--max", "1"]).expect_code(0);
    assert_eq!(world.proxy.count("autoscaling:TerminateInstanceInAutoScalingGroup"), 1);
    world.up(["--pool", "gpu", "--replace-nodes"]).expect_code(0);
    let after = machines(&world);
    assert_eq!(after.len(), before.len());
    assert!(before.iter().all(|machine| !after.contains(machine)), "{before:?} {after:?}");
    world
        .up(["--pool", "gpu", "--replace-nodes"])
        .expect_code(0)
        .expect_stderr("every machine of pool gpu is up to date");
    world.proxy.clear();
    world.up([]).expect_code(0);
    assert!(world.proxy.operations().iter().all(|name| is_reading(name)));
}

#[test]
fn a_manual_rollout_replaces_machines_that_never_got_ready() {
    let world = World::of_golden("tensorflow-tutorial");
    world.up([]).expect_code(0);
    let before = machines(&world);
    for node in gpu_nodes(&world) {
        let broken = json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no driver"}]);
        let name = node["metadata"]["name"].as_str().unwrap();
        world.api.change_node(name, json!({"status": {"conditions": broken}}));
    }
    change_gpu_pool(&world);
    world
        .up(["--pool", "gpu", "--replace-nodes", "--timeout", "250s"])
        .expect_code(0)
        .expect_stderr("replacing 3 now, one by one")
        .expect_stderr("the cluster is ready");
    assert!(machines(&world).iter().all(|machine| !before.contains(machine)));
}

#[test]
fn a_rollout_leaves_out_machines_that_the_autoscaler_has_terminated() {
    let world = World::of_golden("tensorflow-tutorial");
    world.workspace.edit(|text| text.replace("count: 3,", "count: 3, minCount: 1,"));
    world.up([]).expect_code(0);
    change_gpu_pool(&world);
    world.up([]).expect_code(0);
    let node = world.run_job("gpu");
    let mut running = world.up_invocation(["--pool", "gpu", "--replace-nodes"]).spawn();
    running.wait_for_stderr(&format!("job default/train on {node}"));
    let is_idle = |found: &&serde_json::Value| found["metadata"]["name"] != node.as_str();
    let idle = gpu_nodes(&world).iter().find(is_idle).unwrap()["spec"]["providerID"].clone();
    let idle = idle.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let aws = world.aws();
    aws.post(
        "autoscaling",
        &aws.region,
        &[
            ("Action", "TerminateInstanceInAutoScalingGroup"),
            ("Version", "2011-01-01"),
            ("InstanceId", &idle),
            ("ShouldDecrementDesiredCapacity", "true"),
        ],
    );
    world.proxy.clear();
    world.api.set_pods(Vec::new());
    running.wait().expect_code(0).expect_stderr("the cluster is ready");
    assert_eq!(world.proxy.count("autoscaling:TerminateInstanceInAutoScalingGroup"), 2);
    assert_eq!(gpu_nodes(&world).len(), 2);
}

#[test]
fn a_rollout_waits_for_an_unreachable_api() {
    let world = World::of_golden("tensorflow-tutorial");
    world.up([]).expect_code(0);
    change_gpu_pool(&world);
    world.up([]).expect_code(0);
    let node = world.run_job("gpu");
    let mut running = world.up_invocation(["--pool", "gpu", "--replace-nodes", "--max", "1"]).spawn();
    running.wait_for_stderr(&format!("job default/train on {node}"));
    world.api.refuse(Some(503));
    running.wait_for_stderr("(503 ServiceUnavailable); retrying");
    world.api.set_pods(Vec::new());
    world.api.refuse(None);
    running.wait_for_stderr("the Kubernetes API answers again");
    running.wait_for_stderr("waiting for its replacement");
    world.api.refuse(Some(429));
    running.wait_for_stderr("(429 TooManyRequests); retrying");
    world.api.refuse(None);
    running.wait().expect_code(0);

    // A user without permission is told so, and not that the node could not be uncordoned.
    world.run_job("gpu");
    let mut running = world.up_invocation(["--pool", "gpu", "--replace-nodes"]).spawn();
    running.wait_for_stderr("job default/train on ");
    world.api.refuse(Some(403));
    let outcome = running
        .wait()
        .expect_code(1)
        .expect_stderr(" takes no new pods: ")
        .expect_stderr("`kubectl uncordon ");
    let error = outcome.stderr.split("error: ").last().unwrap();
    assert!(error.contains("refused GET /api/v1/pods"), "{error}");
}

#[test]
fn a_busy_api_does_not_end_the_wait_for_nodes() {
    let world = World::of_golden("minimal");
    for status in [429, 503] {
        world.api.refuse(Some(status));
        let mut running = world.up_invocation([]).spawn();
        running.wait_for_stderr(&format!("({status} "));
        world.api.refuse(None);
        running.wait().expect_code(0).expect_stderr("the cluster is ready");
    }
}

#[test]
fn a_cluster_is_ready_only_with_its_gpus_and_its_claim() {
    let world = World::of_golden("ha-gpu-efs");
    world.api.gpus("gpu", 0);
    world.api.claim("efs", "Pending");
    let mut running = world.up_invocation([]).spawn();
    running.wait_for_stderr("pool gpu: 0 of 3 nodes have 1 GPU available");
    running.wait_for_stderr("the file system's claim is Pending");
    running.interrupt();
    running.wait().expect_code(5).expect_stderr("run the same command again");
    world
        .run(["status"])
        .expect_code(3)
        .expect_stdout("NOT HEALTHY")
        .expect_stdout("0 of 3 nodes have 1 GPU available");
    world.api.gpus("gpu", 1);
    world.api.claim("efs", "Bound");
    world.api.set_ready(false);
    world.run(["status"]).expect_code(3).expect_stdout("not-ready");
    world.api.set_ready(true);
    world.up([]).expect_code(0).expect_stderr("the cluster is ready");
}

#[test]
fn a_missing_cluster_is_reported() {
    let world = World::of_golden("minimal");
    world.run(["status"]).expect_code(3).expect_stdout("there is no such cluster");
    world.run(["rollback"]).expect_code(1).expect_stderr("there is no cluster minimal");
    world
        .run(["logs", "etcd-0"])
        .expect_code(1)
        .expect_stderr("no machine of this cluster is called 'etcd-0'");
}
