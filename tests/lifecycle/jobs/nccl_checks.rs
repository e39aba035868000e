//! How fast machines all-reduce: what is said of what their pods print, and what becomes of the pods.

use serde_json::{Value, json};

use super::kubeconfigs::Elsewhere;
use super::{JobWorld, TRAIN};
use crate::schema_judge::expect_fit;
use crate::support::job_cluster::controller::Fate;
use crate::support::run_until_printed;

/// 1 GiB in 0.1 s by two processes: 10.7 GB/s.
const HEALTHY: &str = r#"{"round": 1, "of": 4}
{"group": [1, 2], "seconds": 0.1, "ranks": 2}
{"round": 2, "of": 4}
{"group": [0, 2], "seconds": 0.1, "ranks": 2}
{"round": 3, "of": 4}
{"group": [0, 1], "seconds": 0.11, "ranks": 2}
{"round": 4, "of": 4}
{"group": [0, 1, 2], "seconds": 0.14, "ranks": 3}
{"machine": 0, "network": ["Using network Socket"]}
{"machine": 1, "network": ["Using network Socket"]}
{"machine": 2, "network": ["Using network Socket"]}
{"end": true}
"#;
const SLOW: &str = r#"{"round": 1, "of": 4}
{"group": [1, 2], "seconds": 1.0, "ranks": 2}
{"round": 2, "of": 4}
{"group": [0, 2], "seconds": 0.1, "ranks": 2}
{"round": 3, "of": 4}
{"group": [0, 1], "seconds": 1.0, "ranks": 2}
{"round": 4, "of": 4}
{"group": [0, 1, 2], "seconds": 1.3, "ranks": 3}
{"end": true}
"#;
const HANGING: &str = r#"{"round": 1, "of": 4}
{"group": [1, 2], "errors": {"1": "no answer in time", "2": "Timed out waiting 60000ms for send operation"}}
{"round": 2, "of": 4}
{"group": [0, 2], "errors": {"0": "no answer in time", "2": "no answer in time"}}
{"round": 3, "of": 4}
{"group": [0, 1], "seconds": 0.1, "ranks": 2}
{"round": 4, "of": 4}
{"group": [0, 1], "seconds": 0.1, "ranks": 2}
{"end": true}
"#;

/// A cluster whose machines run, and whose conductor has printed this.
pub fn world(log: &'static str) -> JobWorld {
    let world = JobWorld::new(TRAIN);
    begin(&world, log);
    world
}

fn begin(world: &JobWorld, log: &'static str) {
    world.cluster.decide(move |role, _, _| match role {
        "nccl-check" => Fate::Run("gpu-1"),
        // It runs the real program.
        "team-directory" => Fate::Wait,
        _ => Fate::Succeed("gpu-1", log),
    });
}

#[track_caller]
pub fn expect_nothing_left(world: &JobWorld) {
    world.cluster.wait_for("the pods to go", |state| {
        let has_pods = state.has_pod_of("nccl-check") || state.has_pod_of("nccl-check-conductor");
        (!has_pods).then_some(())
    });
    let left = world.cluster.everything();
    let map =
        left.iter().find(|object| object.contains("\"kind\":\"ConfigMap\"") && object.contains("nccl-check"));
    assert_eq!(map, None);
}

pub fn label(world: &JobWorld, node: &str, labels: Value) {
    world.cluster.change("nodes", "", node, json!({"metadata": {"labels": labels}}));
}

#[test]
fn machines_that_are_as_fast_as_the_others_are_healthy() {
    let world = world(HEALTHY);
    let checked = world.run(["nccl-check"]).expect_code(0);
    assert_eq!(
        checked.stdout,
        "MACHINE  PAIRS      SLOWEST    WITH\n\
         gpu-1    10.7 GB/s  9.76 GB/s  gpu-2\n\
         gpu-2    10.7 GB/s  9.76 GB/s  gpu-1\n\
         gpu-3    10.7 GB/s  10.7 GB/s  gpu-2\n\
         all machines together: 10.2 GB/s\n"
    );
    checked
        .expect_stderr("starting a pod on each of 3 machines")
        .expect_stderr("bus bandwidth of all-reduces of 1024 MiB with nccl");
    expect_nothing_left(&world);
    let document = world.run(["nccl-check", "--pool", "gpu", "--output", "json"]).expect_code(0);
    expect_fit("nccl-check", std::slice::from_ref(&document.stdout));
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["machines"][2]["transport"], "tcp");
    assert_eq!(document["pairs"].as_array().unwrap().len(), 3);
    assert_eq!((&document["problems"], &document["expected"]), (&json!([]), &Value::Null));
}

#[test]
fn the_slow_machine_is_named() {
    let world = world(SLOW);
    let checked = world.run(["nccl-check"]).expect_code(3);
    checked
        .expect_stdout(
            "gpu-2    1.07 GB/s  1.07 GB/s  gpu-3  slow: at most 1.07 GB/s, others reach 10.7 GB/s\n",
        )
        .expect_stdout("gpu-1    10.7 GB/s  1.07 GB/s  gpu-2\n")
        .expect_stderr(
            "`infra logs gpu-2` shows the machine's console; `kubectl cordon gpu-2` keeps jobs away",
        );
    expect_nothing_left(&world);
}

#[test]
fn a_machine_that_hangs_is_named() {
    let world = world(HANGING);
    let checked = world.run(["nccl-check"]).expect_code(3);
    checked.expect_stdout(
        "gpu-3    -          -          -      it reaches no other machine, in 2 pairs: Timed out waiting 60000ms",
    );
    expect_nothing_left(&world);
}

#[test]
fn tcp_is_named_where_there_is_efa_and_the_table_says_what_to_expect() {
    let world = world(HEALTHY);
    for number in 1..=3 {
        let labels = json!({"infra.internal/efa": "32", "node.kubernetes.io/instance-type": "p5.48xlarge"});
        label(&world, &format!("gpu-{number}"), labels);
        give_adapters(&world, &format!("gpu-{number}"), 32);
    }
    world.cluster.decide(|role, _, _| match role {
        "nccl-check" => Fate::Run("gpu-1"),
        _ => Fate::Wait,
    });
    let checking = world.infra(["nccl-check"]).spawn();
    // As a job's, the pods get every GPU and adapter of their machine.
    let key = world.cluster.pod("nccl-check", 0);
    let pod = world.cluster.object("pods", "default", &key.2).unwrap();
    let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits, &json!({"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "32"}));
    let conductor = world.cluster.pod("nccl-check-conductor", 0);
    world.cluster.end_pod(&conductor, 0, HEALTHY);
    let checked = checking.wait().expect_code(3);
    checked
        .expect_stdout("gpu-1    10.7 GB/s  9.76 GB/s  gpu-2  NCCL uses TCP instead of EFA")
        .expect_stderr("these machines should reach 240 GB/s");
}

pub fn give_adapters(world: &JobWorld, node: &str, count: u32) {
    let given = json!({"vpc.amazonaws.com/efa": count.to_string()});
    world.cluster.change("nodes", "", node, json!({"status": {"allocatable": given}}));
}

#[test]
fn machines_that_jobs_use_are_left_out() {
    let world = world(HEALTHY);
    world.cluster.put_node("gpu-4", "gpu", 1);
    world.cluster.put_node("gpu-5", "gpu", 1);
    world.cluster.change("nodes", "", "gpu-5", json!({"spec": {"unschedulable": true}}));
    put_job_pod(&world, "gpu-4");
    world
        .run(["nccl-check"])
        .expect_code(0)
        .expect_stdout(
            "gpu-4    -          -          -      left out: job 'train' of namespace vision runs there\n",
        )
        .expect_stdout("gpu-5    -          -          -      left out: the node is cordoned\n");
    assert!(world.cluster.object("pods", "vision", "train-worker-0-0-abcde").is_some());
    // Of one machine alone nothing can be said.
    world.cluster.take("nodes", "", "gpu-2");
    world.cluster.take("nodes", "", "gpu-3");
    let before = world.cluster.changes().len();
    world.run(["nccl-check"]).expect_code(1)
        .expect_stderr("only one machine of pool gpu is free, so there is nothing to compare it with; gpu-4: job 'train' of namespace vision runs there; gpu-5: the node is cordoned")
        .expect_stderr("run it again when at least two machines are free");
    assert_eq!(world.cluster.changes().len(), before, "nothing was created");
    // A machine with a problem is reported, whoever uses the others.
    let not_ready =
        json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"}]);
    world.cluster.change("nodes", "", "gpu-5", json!({"status": {"conditions": not_ready}}));
    let before = world.cluster.changes().len();
    world
        .run(["nccl-check"])
        .expect_code(3)
        .expect_stdout("left out: job 'train' of namespace vision runs there\n")
        .expect_stdout("the node is not Ready: KubeletNotReady: no CNI\n")
        .expect_stdout("only one machine of pool gpu is free, so there is nothing to compare it with\n");
    assert_eq!(world.cluster.changes().len(), before, "nothing was created");
}

fn put_job_pod(world: &JobWorld, node: &str) {
    world.cluster.put(
        "pods",
        json!({"metadata": {"name": "train-worker-0-0-abcde", "namespace": "vision",
                            "labels": {"infra.internal/job": "train", "jobset.sigs.k8s.io/jobset-name": "train"}},
               "spec": {"nodeName": node, "containers": [{"name": "a"}]},
               "status": {"phase": "Running"}}),
    );
}

#[test]
fn a_pool_with_fewer_than_two_machines_has_nothing_to_compare() {
    let world = JobWorld::of_golden("tensorflow-tutorial", TRAIN);
    // cluster.yaml wants three.
    world.run(["nccl-check"]).expect_code(3).expect_stdout("pool gpu has no machines, and should have 3\n");
    world.cluster.put_node("worker-1", "cpu", 0);
    world
        .run(["nccl-check", "--pool", "cpu", "--backend", "gloo"])
        .expect_code(0)
        .expect_stderr("pool cpu has one machine: there is nothing to compare it with");
    assert!(world.cluster.changes().is_empty());
}

#[test]
fn the_pool_must_be_one_that_can_be_measured() {
    let world = JobWorld::new(TRAIN);
    for (arguments, said) in [
        (&["--pool", "gpus"][..], "did you mean 'gpu'?"),
        (&["--pool", "cpu"], "pool cpu has no GPUs"),
        (&["--backend", "gloo"], "name one with `--pool`: cpu, gpu"),
        (&["--size", "100Gi"], "'100Gi' is not between 1Mi and 16Gi"),
    ] {
        world.run(["nccl-check"].iter().chain(arguments).copied()).expect_code(2).expect_stderr(said);
    }
    assert!(world.cluster.changes().is_empty());
}

#[test]
fn a_machine_whose_pod_does_not_start_is_named_and_the_others_are_measured() {
    let world = JobWorld::new(TRAIN);
    begin(&world, "{\"group\": [0, 1], \"seconds\": 0.1, \"ranks\": 2}\n{\"end\": true}\n");
    world.cluster.put_node("gpu-4", "gpu", 1);
    world.cluster.put_node("gpu-5", "gpu", 1);
    let not_ready =
        json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"}]);
    world.cluster.change("nodes", "", "gpu-2", json!({"status": {"conditions": not_ready}}));
    world.cluster.decide(|role, _, _| match role {
        "nccl-check" => Fate::Wait,
        _ => Fate::Succeed("gpu-1", "{\"group\": [0, 1], \"seconds\": 0.1, \"ranks\": 2}\n{\"end\": true}\n"),
    });
    let checking = world.infra(["nccl-check"]).spawn();
    for number in [0, 3] {
        world.cluster.change("pods", "default", &pod_name(&world, number), running());
    }
    world.cluster.change("pods", "default", &pod_name(&world, 2), unpulled("gpu-3"));
    let unplaced = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/6 nodes are available: 1 Insufficient nvidia.com/gpu"}]}});
    world.cluster.change("pods", "default", &pod_name(&world, 4), unplaced);
    let checked = checking.wait().expect_code(3);
    checked
        .expect_stdout("gpu-2    -          -          -      the node is not Ready: KubeletNotReady: no CNI")
        .expect_stdout("gpu-3    -          -          -      its pod does not start: ErrImagePull: no such image")
        .expect_stdout("gpu-5    -          -          -      left out: its pod does not start: 0/6 nodes are available: 1 Insufficient nvidia.com/gpu")
        .expect_stdout("gpu-1    10.7 GB/s  10.7 GB/s  gpu-4\n")
        .expect_stderr("waiting for 2 pods, such as that of gpu-3: ErrImagePull: no such image");
    expect_nothing_left(&world);
}

/// The pod of the machine with this number, as soon as it is there.
fn pod_name(world: &JobWorld, number: usize) -> String {
    let end = format!("-{number}");
    world.cluster.wait_for("the pod of a machine", |state| state.pod_named("infra-nccl-check-", &end))
}

fn running() -> Value {
    json!({"spec": {"nodeName": "gpu-1"}, "status": {"phase": "Running", "podIP": "10.2.1.7"}})
}

fn unpulled(node: &str) -> Value {
    let waiting = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
    json!({"spec": {"nodeName": node}, "status": {"containerStatuses": [{"name": "nccl-check", "state": waiting}]}})
}

#[test]
fn an_image_that_no_machine_can_pull_is_an_error() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Wait);
    let checking = world.infra(["nccl-check", "--image", "registry.example.com/missing:1"]).spawn();
    for number in 0..3 {
        world.cluster.change(
            "pods",
            "default",
            &pod_name(&world, number),
            unpulled(&format!("gpu-{}", number + 1)),
        );
    }
    checking
        .wait()
        .expect_code(1)
        .expect_stderr("fewer than two machines could begin; gpu-1: its pod does not start: ErrImagePull: no such image; gpu-2:")
        .expect_stderr("name an image that the machines can pull with `--image`");
    expect_nothing_left(&world);
}

#[test]
fn an_image_without_pytorch_is_an_error() {
    let world = JobWorld::new(TRAIN);
    let log = "{\"machine\": 0, \"error\": \"ModuleNotFoundError: No module named 'torch'\"}\n\
               {\"machine\": 1, \"error\": \"ModuleNotFoundError: No module named 'torch'\"}\n\
               {\"machine\": 2, \"error\": \"ModuleNotFoundError: No module named 'torch'\"}\n{\"end\": true}\n";
    begin(&world, log);
    world
        .run(["nccl-check"])
        .expect_code(1)
        .expect_stderr("no machine could begin; gpu-1: ModuleNotFoundError: No module named 'torch'")
        .expect_stderr("the image needs python3 with PyTorch");
    world.cluster.decide(|role, _, _| match role {
        "nccl-check" => Fate::Run("gpu-1"),
        _ => Fate::Fail("gpu-1", 127, "sh: python3: not found\n"),
    });
    world
        .run(["nccl-check"])
        .expect_code(1)
        .expect_stderr(
            "the pod that conducts the check ended early: nccl-check ended with 127; last line: sh: python3: not found",
        )
        .expect_stderr("`--image` names another image, if python3 or PyTorch is missing");
    expect_nothing_left(&world);
}

#[test]
fn a_check_that_takes_too_long_says_what_it_knows() {
    let world = JobWorld::new(TRAIN);
    let log = "{\"round\": 1, \"of\": 4}\n{\"group\": [1, 2], \"seconds\": 0.1, \"ranks\": 2}\n";
    world.cluster.decide(move |role, _, _| match role {
        "nccl-check" => Fate::Run("gpu-1"),
        _ => Fate::Print("gpu-1", log),
    });
    let checked = run_until_printed("gpu-2    10.7 GB/s  10.7 GB/s  gpu-3\n", |limit| {
        let checked = world.run(["nccl-check", "--timeout", limit]);
        expect_nothing_left(&world);
        checked
    });
    checked.expect_code(3).expect_stdout("the check was not complete in time; `--timeout` gives it longer");
}

#[test]
fn an_interrupted_check_leaves_nothing() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Wait);
    let checking = world.infra(["nccl-check"]).spawn();
    pod_name(&world, 2);
    checking.interrupt();
    checking.wait().expect_code(130);
    expect_nothing_left(&world);
}

#[test]
fn two_checks_do_not_meet_and_what_a_killed_one_left_is_deleted() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Wait);
    let mut first = world.infra(["nccl-check"]).spawn();
    let name = pod_name(&world, 0);
    for number in 0..3 {
        let at = json!({"spec": {"nodeName": format!("gpu-{}", number + 1)}, "status": {"phase": "Running"}});
        world.cluster.change("pods", "default", &pod_name(&world, number), at);
    }
    world.run(["nccl-check"]).expect_code(1).expect_stderr("gpu-1: another nccl-check runs there");
    assert!(world.cluster.object("pods", "default", &name).is_some());
    first.kill();
    // Kubernetes ends them, however they were left.
    for number in 0..3 {
        world.cluster.change(
            "pods",
            "default",
            &pod_name(&world, number),
            json!({"status": {"phase": "Failed"}}),
        );
    }
    begin(&world, HEALTHY);
    world.run(["nccl-check"]).expect_code(0);
    expect_nothing_left(&world);
}

#[test]
fn users_of_teams_are_told_whose_check_it_is() {
    let world = world(HEALTHY);
    world
        .workspace
        .infra(["team", "add", "vision"])
        .env("INFRA_API_SERVER", &world.cluster.address())
        .run()
        .expect_code(0);
    let added = world.workspace.infra(["user", "add", "ada", "--team", "vision"]);
    added.env("INFRA_API_SERVER", &world.cluster.address()).run().expect_code(0);
    let user = Elsewhere::new(&world);
    let kubeconfig = world.workspace.path("credentials/users/vision-ada.kubeconfig");
    std::fs::copy(kubeconfig, user.path("ada")).unwrap();
    let refused = user.infra(["job", "nccl-check", "--kubeconfig", "ada"]).run().expect_code(1);
    refused
        .expect_stderr("may not list pods in the whole cluster")
        .expect_stderr("the check is for the cluster's administrator");
    // With the administrator's kubeconfig no cluster.yaml is needed.
    let text = world.workspace.infra(["kubeconfig"]).run().expect_code(0).stdout;
    user.write("admin", &text);
    user.infra(["job", "nccl-check", "--kubeconfig", "admin"])
        .run()
        .expect_code(0)
        .expect_stdout("gpu-1    10.7 GB/s");
}
