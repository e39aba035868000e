//! Unmet preconditions of a job: all are reported together, and nothing is changed.

use std::fs;

use serde_json::json;

use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

#[track_caller]
fn expect_untouched(world: &JobWorld) {
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
}

#[test]
fn all_unmet_preconditions_are_reported_together() {
    let world = JobWorld::of_golden("tensorflow-tutorial", &format!("{TRAIN}namespace: vision\n"));
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr("- there is no namespace 'vision' (`infra team add vision` creates it)")
        .expect_stderr("- 2 replicas with 1 GPU each need more than the cluster has now: no node is usable")
        .expect_stderr("the cluster cannot run this job now")
        .expect_stderr("nothing was changed; fix this and submit again");
    expect_untouched(&world);
}

#[test]
fn submit_needs_a_bound_claim() {
    let world = JobWorld::new(&format!("{TRAIN}storage: {{claim: scratch}}\n"));
    world.run(["submit"]).expect_code(1).expect_stderr("- there is no claim 'scratch' in namespace default");
    world.cluster.put_claim("default", "scratch", "Pending");
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr("- the claim 'scratch' in namespace default is Pending, not Bound")
        .expect_stderr("`kubectl -n default describe pvc scratch` says why");
    expect_untouched(&world);
    // A claim of the cluster's name in another namespace that waits for someone else's volume is not ours to fix.
    world.write_job(&format!("{TRAIN}namespace: vision\n"));
    world.cluster.put("namespaces", json!({"metadata": {"name": "vision"}}));
    world.cluster.put_claim("vision", "efs", "Pending");
    world.run(["submit"]).expect_code(1).expect_stderr("the claim 'efs' in namespace vision is Pending");
    expect_untouched(&world);
}

#[test]
fn nodes_that_cannot_be_used_are_counted_with_their_reason() {
    let world = JobWorld::new(TRAIN);
    world.cluster.change("nodes", "", "gpu-1", json!({"spec": {"unschedulable": true}}));
    let not_ready =
        json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"}]);
    world.cluster.change("nodes", "", "gpu-2", json!({"status": {"conditions": not_ready}}));
    let taint = json!([{"key": "broken", "value": "yes", "effect": "NoExecute"}]);
    world.cluster.change("nodes", "", "gpu-3", json!({"spec": {"taints": taint}}));
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr(
        "the only usable node has no room (not usable: 1 cordoned, 1 not Ready, 1 tainted with broken)",
    );
    expect_untouched(&world);
    world.write_job(&TRAIN.replace("gpus: 1", "pool: cpu"));
    world.cluster.take("nodes", "", "worker-1");
    world.run(["submit"]).expect_code(1).expect_stderr("- pool cpu has no node that can run a replica");
    expect_untouched(&world);
}

#[test]
fn free_gpus_on_nodes_without_memory_are_not_enough() {
    let world = JobWorld::new(&format!("{TRAIN}memory: 8Gi\n"));
    let small = json!({"status": {"allocatable": {"cpu": "3920m", "memory": "6000Mi"}}});
    for node in ["gpu-1", "gpu-2", "gpu-3"] {
        world.cluster.change("nodes", "", node, small.clone());
    }
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr(
        "- 2 replicas with 1 GPU each need more than the cluster has now: none of 4 usable nodes has room",
    );
    expect_untouched(&world);
}

#[test]
fn machines_that_were_started_before_their_pool_had_scratch_are_not_usable() {
    let world = JobWorld::new(&format!("{TRAIN}pool: gpu\nscratchGiB: 100\n"));
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr(
        "- 2 replicas with 1 GPU each need more than pool gpu has now: no node is usable (not usable: 3 without scratch)",
    );
    expect_untouched(&world);
    let replace = |node: &str, gibibytes: u64| {
        let bytes = (gibibytes << 30).to_string();
        let labels = json!({"infra.internal/scratch-gib": "155"});
        let replaced =
            json!({"metadata": {"labels": labels}, "status": {"allocatable": {"ephemeral-storage": bytes}}});
        world.cluster.change("nodes", "", node, replaced);
    };
    replace("gpu-1", 155);
    // What a node offers counts, whatever its label says.
    replace("gpu-2", 99);
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr("there is room for 1 on 2 usable nodes (not usable: 1 without scratch)");
    expect_untouched(&world);
    replace("gpu-2", 100);
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit"]).expect_code(0);
}

#[test]
fn submit_needs_job_sets() {
    let world = JobWorld::new(TRAIN);
    world.cluster.install_job_sets(false);
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr("- the cluster has no JobSet, which runs jobs (`infra up` installs it; on a cluster of an earlier version, run it once)")
        .expect_stderr("nothing was changed");
    expect_untouched(&world);
    let file = world.workspace.path("cluster.yaml");
    let cluster = fs::read_to_string(&file).unwrap();
    assert!(!cluster.contains("addons:"), "{cluster}");
    fs::write(&file, format!("{cluster}\naddons: {{jobSet: false}}\n")).unwrap();
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr("(cluster.yaml has addons.jobSet: false; set it to true and run `infra up`, or install JobSet v0.12 yourself)");
    expect_untouched(&world);
    // Whoever installed it.
    world.cluster.install_job_sets(true);
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    world.run(["submit"]).expect_code(0);
}

#[test]
fn names_that_others_use_are_refused() {
    let job = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 1\nworkers: 2");
    let kinds = [
        ("services", "train", "Service"),
        ("jobs", "train-worker-0", "Job"),
        ("jobs", "train-ps-0", "Job"),
        ("jobsets", "train", "JobSet"),
        ("configmaps", "train-scripts", "ConfigMap"),
    ];
    let world = JobWorld::new(&job);
    world.cluster.run_job_set_controller(false);
    for (plural, name, kind) in kinds {
        world.cluster.put_foreign(plural, name);
        let refused = world.run(["submit"]).expect_code(1);
        refused.expect_stderr(&format!("- there is a {kind} {name} in namespace default that infra did not create; choose another name for the job"));
        expect_untouched(&world);
        world.cluster.take(plural, "default", name);
    }
    for (plural, name, _) in kinds {
        world.cluster.put_foreign(plural, name);
    }
    let refused = world.run(["submit"]).expect_code(1);
    assert_eq!(
        refused.stderr.matches("that infra did not create").count(),
        kinds.len(),
        "{}",
        refused.stderr
    );
    expect_untouched(&world);
}

#[test]
fn what_another_job_created_is_refused() {
    let world = JobWorld::new(TRAIN);
    let labels = json!({"app.kubernetes.io/managed-by": "infra", "infra.internal/job": "other"});
    let metadata = json!({"name": "train-scripts", "namespace": "default", "labels": labels});
    world.cluster.put("configmaps", json!({"metadata": metadata}));
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr("- there is a ConfigMap train-scripts in namespace default that belongs to job other; choose another name for the job");
    expect_untouched(&world);
}

#[test]
fn a_queue_must_exist() {
    let world = JobWorld::new(&format!("{TRAIN}queue: team-a\n"));
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr("- the job waits in queue 'team-a', and Kueue is not installed (docs/runbooks/share-with-queues.md shows how to install it)");
    let linted = world.run(["lint", "--online"]).expect_code(2);
    linted
        .expect_stdout(
            "job.yaml: on the cluster: the job waits in queue 'team-a', and Kueue is not installed",
        )
        .expect_stderr("has 1 problem");
    // Offline it is good.
    world.run(["lint"]).expect_code(0);
    world.cluster.install_kueue(&["team-b"]);
    let linted = world.run(["lint", "--online", "--output", "json"]).expect_code(2);
    linted.expect_stdout("there is no LocalQueue 'team-a' in namespace default");
    let refused = world.run(["submit"]).expect_code(1);
    refused.expect_stderr(
        "- there is no LocalQueue 'team-a' in namespace default (docs/runbooks/share-with-queues.md shows how to create one)",
    );
    expect_untouched(&world);
    world.cluster.install_kueue(&["team-a"]);
    world.run(["lint", "--online"]).expect_code(0).expect_stderr("good");
    world.run(["submit", "--detach"]).expect_code(0);
    let job_set = world.cluster.object("jobsets", "default", "train").unwrap();
    assert_eq!(job_set["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "team-a");
    assert_eq!(job_set["spec"]["suspend"], true);
    assert!(world.cluster.pods("worker").is_empty());
}

#[test]
fn an_autoscaler_may_start_what_is_missing() {
    let world = JobWorld::of_golden("ha-gpu-efs", &format!("{TRAIN}pool: gpu\n"));
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-1", ""));
    let sent = world.run(["submit"]).expect_code(0);
    sent.expect_stderr("2 replicas with 1 GPU each need more than pool gpu has now: no node is usable")
        .expect_stderr("; the autoscaler will start more");
}

/// What a pool may have is the most that an autoscaler starts.
#[test]
fn no_machines_are_promised_that_cannot_come() {
    let pool =
        |more: &str| format!("- {{name: gpu, instanceType: g5.xlarge, count: 1, minCount: 0, {more}}}\n");
    let world = JobWorld::with_pools(&pool("maxCount: 2"), TRAIN);
    world.cluster.put_node("gpu-1", "gpu", 1);
    let lacks = "2 replicas with 1 GPU each need more than the cluster has now";
    let one = format!("{lacks}: there is room for 1 on 1 usable node");
    expect_machines(&world, 0, &format!("{one}; the autoscaler will start more"));
    // At its most, and one of them is kept free of pods.
    world.cluster.put_node("gpu-2", "gpu", 1);
    world.cluster.change("nodes", "", "gpu-2", json!({"spec": {"unschedulable": true}}));
    expect_machines(&world, 1, &format!("{one} (not usable: 1 cordoned)"));
    // One that starts will be there.
    let starts =
        json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"}]);
    let starting = json!({"spec": {"unschedulable": false}, "status": {"conditions": starts}});
    world.cluster.change("nodes", "", "gpu-2", starting);
    expect_machines(
        &world,
        0,
        &format!("{one} (not usable: 1 not Ready); the job waits until machines that exist are Ready"),
    );
    world.workspace.edit(|text| format!("{text}addons: {{clusterAutoscaler: false}}\n"));
    expect_machines(&world, 1, &format!("{one} (not usable: 1 not Ready)"));
    // A pool that may be held at none, and that nothing starts again.
    let none = format!(
        "{lacks}: no node is usable; the autoscaler will start more, unless pool gpu has ended or its schedule holds it at none"
    );
    for held in [
        "maxCount: 2, schedule: [{at: 0 20 * * *, count: 0}]",
        "maxCount: 2, expires: \"2026-12-24T18:00:00Z\"",
    ] {
        expect_machines(&JobWorld::with_pools(&pool(held), TRAIN), 0, &none);
    }
    let world = JobWorld::with_pools(&pool("maxCount: 2, schedule: [{at: 0 20 * * *, count: 0}]"), TRAIN);
    world.cluster.put_node("gpu-1", "gpu", 1);
    expect_machines(&world, 0, &format!("{one}; the autoscaler will start more"));
}

#[test]
fn pools_that_grow_have_room_together() {
    let pools = "- {name: small, instanceType: g5.xlarge, count: 1, minCount: 0}\n\
                 - {name: other, instanceType: g5.2xlarge, count: 1, minCount: 0}\n";
    let lacks = "2 replicas with 1 GPU each need more than the cluster has now: no node is usable";
    expect_machines(
        &JobWorld::with_pools(pools, TRAIN),
        0,
        &format!("{lacks}; the autoscaler will start more"),
    );
    let world = JobWorld::with_pools(pools, TRAIN);
    world.cluster.put_node("other-1", "other", 1);
    world.cluster.change("nodes", "", "other-1", json!({"spec": {"unschedulable": true}}));
    expect_machines(&world, 1, &format!("{lacks} (not usable: 1 cordoned)"));
}

#[test]
fn parameter_servers_need_machines_without_gpus() {
    let servers = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 2\nworkers: 2");
    let world = JobWorld::new(&format!("{servers}memory: 8Gi\n"));
    let small = json!({"status": {"allocatable": {"cpu": "3920m", "memory": "15000Mi"}}});
    world.cluster.change("nodes", "", "worker-1", small);
    let refused = world.run(["submit"]).expect_code(1);
    refused
        .expect_stderr("- 2 parameter servers need more memory or CPUs than the cluster has now: there is room for 1 on 1 usable node (not usable: 3 tainted with nvidia.com/gpu)")
        .expect_stderr("nothing was changed");
    world.cluster.take("nodes", "", "worker-1");
    world
        .run(["submit"])
        .expect_code(1)
        .expect_stderr("- the cluster has no node that can run a parameter server");
    expect_untouched(&world);
}

#[test]
fn gpus_that_other_pods_hold_are_mentioned() {
    let world = JobWorld::new(TRAIN);
    for number in 1..=2 {
        let limits = json!({"limits": {"nvidia.com/gpu": "1"}});
        let node = format!("gpu-{number}");
        world.cluster.put(
            "pods",
            json!({"metadata": {"name": format!("other-{number}"), "namespace": "vision"},
                   "spec": {"nodeName": node, "containers": [{"name": "a", "resources": limits}]},
                   "status": {"phase": "Running"}}),
        );
    }
    world.cluster.decide(|_, _, _| Fate::Succeed("gpu-3", ""));
    let sent = world.run(["submit"]).expect_code(0);
    sent.expect_stderr("other pods hold GPUs: there is room for 1 of 2 replicas now, the others wait");
}

#[test]
fn a_pool_that_cluster_yaml_does_not_have_is_an_error_of_the_file() {
    let world = JobWorld::new(&format!("{TRAIN}pool: gpus\n"));
    let refused = world.run(["submit"]).expect_code(2);
    refused
        .expect_stderr("job.yaml:8:7")
        .expect_stderr("cluster 'tensorflow' has no pool 'gpus'")
        .expect_stderr("did you mean 'gpu'?");
    assert!(world.cluster.requests().is_empty());
}

#[test]
fn submit_without_a_cluster_explains_what_is_missing() {
    let world = JobWorld::new(TRAIN);
    world.cluster.set_unreachable(true);
    for command in ["submit", "status", "list", "logs", "fetch", "delete", "gpu-check", "nccl-check"] {
        let lost = world.run([command]).expect_code(1);
        lost.expect_stderr("cannot be reached")
            .expect_stderr("check that the cluster is up (`infra status`)");
    }
}

/// What `submit` says of the machines, and its exit code.
#[track_caller]
fn expect_machines(world: &JobWorld, code: i32, said: &str) {
    let plan = world.run(["submit", "--dry-run"]).expect_code(code);
    let heading = if code == 0 { "would wait for:" } else { "cannot run now:" };
    plan.expect_stdout(&format!("{heading}\n  {said}\n"));
}

#[test]
fn a_job_may_wait_for_the_capacity_block_of_its_pool() {
    let pool = "- {name: h100, image: deep-learning, instanceType: p5.48xlarge, count: 2, availabilityZones: [us-west-2a], \
                capacityReservationId: cr-0123456789abcdef0}\n";
    let job = TRAIN.replace("gpus: 1", "gpus: 8\npool: h100");
    let world = JobWorld::with_pools(pool, &job);
    let lacks = "2 replicas with 8 GPUs each need more than pool h100 has now";
    let waits =
        format!("{lacks}: no node is usable; the job waits until the capacity block of pool h100 is open");
    expect_machines(&world, 0, &waits);
    // Without a minimum there may be no machine in an open block.
    world.workspace.edit(|text| text.replace("count: 2,", "count: 2, minCount: 0,"));
    expect_machines(
        &world,
        0,
        &format!(
            "{lacks}: no node is usable; the autoscaler will start more while the capacity block of pool h100 is open"
        ),
    );
    world.workspace.edit(|text| text.replace(" minCount: 0,", ""));
    // An open block has its machines: others will not come.
    world.cluster.put_node("h100-1", "h100", 8);
    world.cluster.put_node("h100-2", "h100", 8);
    world.cluster.change("nodes", "", "h100-2", json!({"spec": {"unschedulable": true}}));
    expect_machines(
        &world,
        1,
        &format!("{lacks}: there is room for 1 on 1 usable node (not usable: 1 cordoned)"),
    );
    expect_untouched(&world);
    world.cluster.take("nodes", "", "h100-1");
    world.cluster.take("nodes", "", "h100-2");
    world.run(["submit", "--detach"]).expect_code(0).expect_stderr(&waits);
    assert!(world.cluster.object("jobsets", "default", "train").is_some());
    // A reservation of Flatcar machines is no block.
    let plain = pool.replace(" image: deep-learning,", "").replace("p5.48xlarge", "g6e.48xlarge");
    let world = JobWorld::with_pools(&plain, &job);
    expect_machines(&world, 1, &format!("{lacks}: no node is usable"));
}

#[test]
fn a_job_may_wait_for_the_schedule_of_its_pool() {
    let pool = |counts: &str, morning: u32| {
        format!(
            "- {{name: gpu, instanceType: g5.xlarge, {counts}, \
             schedule: [{{at: 0 20 * * *, count: 0}}, {{at: 0 8 * * *, count: {morning}}}]}}\n"
        )
    };
    let lacks = "2 replicas with 1 GPU each need more than the cluster has now: no node is usable";
    let by_schedule = format!("{lacks}; the job waits until the schedule of pool gpu starts machines");
    let scaled = format!("{lacks}; the autoscaler will start more when the schedule of pool gpu allows it");
    for (counts, morning, code, said) in [
        ("count: 2", 2, 0, by_schedule.as_str()),
        ("count: 2, minCount: 1, maxCount: 4", 1, 0, by_schedule.as_str()),
        ("count: 2, minCount: 0", 1, 0, scaled.as_str()),
        // Fewer machines than the job needs, or none.
        ("count: 2", 1, 1, lacks),
        ("count: 2", 0, 1, lacks),
    ] {
        let world = JobWorld::with_pools(&pool(counts, morning), TRAIN);
        expect_machines(&world, code, said);
    }
    // By day the autoscaler may start machines.
    let world = JobWorld::with_pools(&pool("count: 2, minCount: 1", 2), TRAIN);
    world.cluster.put_node("gpu-1", "gpu", 1);
    let plan = world.run(["submit", "--dry-run"]).expect_code(0);
    plan.expect_stdout("there is room for 1 on 1 usable node; the autoscaler will start more\n");
    // Who switched it off has the machines of the schedule alone.
    world.workspace.edit(|text| format!("{text}addons: {{clusterAutoscaler: false}}\n"));
    let plan = world.run(["submit", "--dry-run"]).expect_code(0);
    plan.expect_stdout("; the job waits until the schedule of pool gpu starts machines\n");
    expect_untouched(&world);
}
