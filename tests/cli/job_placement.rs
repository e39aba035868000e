//! Whether a cluster can run a job, judged from its cluster.yaml alone.

use crate::support::{MINIMAL, Workspace};

const POOLS: &str = "\
pools:
- {name: cpu, instanceType: m5.large, count: 1}
- {name: gpu, instanceType: g5.xlarge, count: 1, maxCount: 3}
- {name: large, instanceType: g5.12xlarge, count: 2, taints: [{key: team, value: a, effect: NoSchedule}]}
- {name: empty, instanceType: g4dn.xlarge, count: 0}
storage: {efs: {}}
";
const JOB: &str = "name: train\nframework: pytorch\ncommand: [python, train.py]\n";
const IMAGE: &str = "image: pytorch/pytorch:2.15.0\n";

/// What `job lint` says of a job on the cluster with these pools.
fn lint(more: &str, code: i32) -> String {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}{POOLS}"));
    workspace.write("job.yaml", format!("{JOB}{more}"));
    workspace.infra(["job", "lint"]).expect_code(code).stdout
}

#[test]
fn a_job_that_fits_no_pool_is_refused_with_every_reason() {
    let with_image = |more: &str| lint(&format!("{IMAGE}{more}"), 2);
    for (more, message, help) in [
        (
            "replicas: 1\npool: gpus\n",
            "job.yaml:6:7: cluster 'paddle' has no pool 'gpus'",
            "did you mean 'gpu'?",
        ),
        (
            "replicas: 1\ngpus: 8\n",
            "job.yaml:6:7: no pool can run a replica with 8 GPUs",
            "pool gpu has 1 GPU per machine; pool large has 4 GPUs per machine; pool empty has 1 GPU per machine",
        ),
        (
            "replicas: 1\ngpus: 4\n",
            "job.yaml:6:7: no pool can run a replica with 4 GPUs",
            "pool large has the taint team, which only jobs that name the pool with pool: tolerate",
        ),
        (
            "replicas: 1\ngpus: 1\npool: empty\n",
            "job.yaml:7:7: no pool can run a replica with 1 GPU",
            "pool empty has no machines: its maxCount is 0",
        ),
        (
            "replicas: 1\ngpus: 1\npool: gpu\nmemory: 16Gi\n",
            "job.yaml:7:7: no pool can run a replica with 1 GPU",
            "pool gpu has 16 GiB of memory per machine, a replica requests 16Gi",
        ),
        (
            "replicas: 1\ngpus: 1\npool: gpu\ncpu: \"4\"\n",
            "job.yaml:7:7: no pool can run a replica with 1 GPU",
            "pool gpu has 4 CPUs per machine, a replica requests 4 and the system needs some",
        ),
        (
            "replicas: 4\ngpus: 1\npool: gpu\n",
            "job.yaml:6:7: 4 replicas with 1 GPU each do not fit: pool gpu has room for 3 at full size",
            "raise the pool's maxCount in cluster.yaml, or request fewer",
        ),
    ] {
        let stdout = with_image(more);
        assert!(
            stdout.contains(message) && stdout.contains(help),
            "not '{message}' and '{help}' but\n{stdout}"
        );
    }
}

#[test]
fn a_job_that_fits_a_pool_is_accepted_and_tolerates_its_taints() {
    for more in
        ["replicas: 3\ngpus: 1\n", "replicas: 2\ngpus: 4\npool: large\nmemory: 100Gi\n", "replicas: 2\n"]
    {
        assert_eq!(lint(&format!("{IMAGE}{more}deadline: 1h\n"), 0), "", "{more}");
    }
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}{POOLS}"));
    workspace.write("job.yaml", format!("{JOB}{IMAGE}replicas: 2\ngpus: 4\npool: large\n"));
    let rendered = workspace.infra(["job", "render"]).expect_code(0).stdout;
    for part in ["infra.internal/pool: large", "key: nvidia.com/gpu", "key: team", "value: a"] {
        assert!(rendered.contains(part), "no '{part}' in\n{rendered}");
    }
}

/// Pools with EFA: 32 adapters for 8 GPUs, 2 for 4; one that could have it; one whose machines have none.
const EFA_POOLS: &str = "\
network: {topology: private}
pools:
- {name: h100, instanceType: p5.48xlarge, count: 2, image: deep-learning, efa: true, availabilityZones: [us-west-2a]}
- {name: l40s, instanceType: g6e.24xlarge, count: 2, image: deep-learning, efa: true, availabilityZones: [us-west-2a]}
- {name: plain, instanceType: g6e.24xlarge, count: 2}
- {name: small, instanceType: g6e.xlarge, count: 2}
storage: {efs: {}}
";

#[test]
fn groups_of_pods_have_their_share_of_efa_and_nothing_that_lets_them_do_more() {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}{EFA_POOLS}"));
    let render = |more: &str| {
        workspace.write("job.yaml", format!("{JOB}{IMAGE}{more}"));
        workspace.infra(["job", "render"]).expect_code(0).stdout
    };
    let adapters = |more: &str| -> Vec<String> {
        let rendered = render(more);
        let of_efa = rendered.lines().filter_map(|line| line.trim().strip_prefix("vpc.amazonaws.com/efa: "));
        let found: Vec<String> = of_efa.map(|count| count.trim_matches(['\'', '"']).to_owned()).collect();
        let settings = ["name: FI_PROVIDER", "name: FI_EFA_USE_HUGE_PAGE"];
        assert!(settings.iter().all(|name| rendered.contains(name) != found.is_empty()), "{rendered}");
        assert!(!rendered.contains("capabilities") && !rendered.contains("hugepages"), "{rendered}");
        found
    };
    // As request and as limit.
    assert_eq!(adapters("replicas: 2\ngpus: 8\npool: h100\n"), ["32", "32"]);
    assert_eq!(adapters("replicas: 4\ngpus: 2\npool: l40s\n"), ["1", "1"]);
    // Only h100 has that many GPUs.
    assert_eq!(adapters("replicas: 2\ngpus: 8\n"), ["32", "32"]);
    for without in [
        "replicas: 1\ngpus: 8\npool: h100\n",
        "replicas: 4\ngpus: 1\npool: l40s\n",
        "replicas: 2\ngpus: 4\npool: plain\n",
        // Some of its pods could be on plain.
        "replicas: 2\ngpus: 4\n",
    ] {
        assert_eq!(adapters(without), Vec::<String>::new(), "{without}");
    }
    let huge = "env: {FI_EFA_USE_HUGE_PAGE: \"1\", FI_PROVIDER: \"efa;ofi_rxd\"}\n";
    let rendered = render(&format!("replicas: 4\ngpus: 4\npool: h100\n{huge}"));
    assert!(
        rendered.contains("hugepages-2Mi: 5128Mi") && rendered.contains("value: efa;ofi_rxd"),
        "{rendered}"
    );
}

/// Pools by what they have of drives of their own: none, some types, each at least 75 GB, 250 GB.
const SCRATCH_POOLS: &str = "\
pools:
- {name: cpu, instanceType: m5.large, count: 1}
- {name: mixed, instanceType: m5d.large, instanceTypes: [m5.large], count: 1}
- {name: small, instanceType: m5d.2xlarge, instanceTypes: [m5d.large], count: 1}
- {name: gpu, instanceType: g5.xlarge, count: 2}
storage: {efs: {}}
";

#[test]
fn scratch_is_refused_where_machines_have_no_drives_of_their_own() {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}{SCRATCH_POOLS}"));
    let lint = |more: &str, code: i32| {
        workspace.write("job.yaml", format!("{JOB}{IMAGE}deadline: 1h\n{more}"));
        workspace.infra(["job", "lint"]).expect_code(code).stdout
    };
    for fits in [
        "replicas: 1\nscratchGiB: 41\n",
        "replicas: 2\ngpus: 1\nscratchGiB: 178\n",
        "replicas: 1\npool: small\n",
    ] {
        assert_eq!(lint(fits, 0), "", "{fits}");
    }
    for (more, expected) in [
        (
            "replicas: 1\nscratchGiB: 42\n",
            "job.yaml:7:13: no pool can run a replica with 42 GiB of scratch\n  \
             help: pool cpu has machines without instance store, which scratchGiB is a part of; \
             pool mixed has types without instance store, which scratchGiB is a part of; \
             pool small has 41 GiB of scratch per machine, a replica requests 42\n",
        ),
        (
            "replicas: 1\npool: cpu\nscratchGiB: 1\n",
            "job.yaml:7:7: no pool can run a replica with 1 GiB of scratch\n  \
             help: pool cpu has machines without instance store, which scratchGiB is a part of\n",
        ),
        (
            "replicas: 1\ngpus: 1\nscratchGiB: 179\n",
            "job.yaml:7:7: no pool can run a replica with 1 GPU and 179 GiB of scratch\n  \
             help: pool cpu has no GPUs; pool mixed has no GPUs; pool small has no GPUs; \
             pool gpu has 178 GiB of scratch per machine, a replica requests 179\n",
        ),
    ] {
        assert_eq!(lint(more, 2), expected, "{more}");
    }
    // Parameter servers have none, and run where workers do not.
    workspace.write("job.yaml", format!("{SERVERS}scratchGiB: 178\nps: 1\nworkers: 2\n"));
    assert_eq!(workspace.infra(["job", "lint"]).expect_code(0).stdout, "");
}

#[test]
fn registries_of_aws_are_compared_with_the_cluster() {
    let image = |registry: &str, code| lint(&format!("image: {registry}/train:1\nreplicas: 1\n"), code);
    assert_eq!(image("111122223333.dkr.ecr.us-west-2.amazonaws.com", 0), "");
    let far = image("111122223333.dkr.ecr.eu-west-1.amazonaws.com", 0);
    assert!(far.contains("warning: the image comes from eu-west-1, the machines are in us-west-2"), "{far}");
    let other = image("444455556666.dkr.ecr.us-west-2.amazonaws.com", 0);
    assert!(other.contains("warning: the image belongs to account 444455556666"), "{other}");
    assert!(other.contains("AmazonEC2ContainerRegistryPullOnly"), "{other}");
    // Every pool may pull AWS's own images for training.
    assert_eq!(image("763104351884.dkr.ecr.us-west-2.amazonaws.com", 0), "");
    let china = image("111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn", 2);
    assert!(china.contains("machines in us-west-2 cannot log in to a registry in cn-north-1"), "{china}");
}

#[test]
fn an_image_for_a_newer_cuda_than_the_driver_runs_is_a_warning() {
    let image =
        |image: &str, more: &str| lint(&format!("image: {image}\nreplicas: 1\ngrace: 30s\n{more}"), 0);
    let newer = "pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime";
    assert_eq!(
        image(newer, "gpus: 1\n"),
        "job.yaml:4:8: warning: the image is built on CUDA 13.0, but driver 570-open of pool gpu runs CUDA 12 at most\n  \
         help: use an image for CUDA 12, or one with NVIDIA's package cuda-compat; CUDA 13 needs driver 580 or newer \
         (nvidiaDriver of the pool)\n"
    );
    assert!(image(newer, "gpus: 4\npool: large\n").contains("of pool large runs CUDA 12 at most"));
    // Neither a minor version, nor an image with the compatibility package, nor a job without GPUs needs another driver.
    for good in
        ["pytorch/pytorch:2.8.0-cuda12.9-cudnn9-runtime", "nvcr.io/nvidia/pytorch:25.10-py3", "train:1"]
    {
        assert_eq!(image(good, "gpus: 1\n"), "", "{good}");
    }
    assert_eq!(image(newer, ""), "");
    let workspace = Workspace::new();
    let pools = POOLS.replace("g5.xlarge, ", "g5.xlarge, nvidiaDriver: 580-open, ");
    workspace.write("cluster.yaml", format!("{MINIMAL}{pools}"));
    workspace.write("job.yaml", format!("{JOB}image: {newer}\nreplicas: 1\ngpus: 1\ngrace: 30s\n"));
    assert_eq!(workspace.infra(["job", "lint"]).expect_code(0).stdout, "");
}

#[test]
fn a_cluster_without_files_has_no_claim() {
    let workspace = Workspace::with_cluster();
    workspace.write("job.yaml", format!("{JOB}{IMAGE}replicas: 1\n"));
    let run = workspace.infra(["job", "lint"]).expect_code(2);
    assert!(
        run.stdout.contains("cluster 'paddle' has no shared file system, so there is no claim 'efs'"),
        "{}",
        run.stdout
    );
    // In any other namespace than the cluster's own the job brings its claim.
    workspace.write("cluster.yaml", format!("{MINIMAL}{POOLS}"));
    workspace.write("job.yaml", format!("{JOB}{IMAGE}replicas: 1\nnamespace: research\n"));
    let rendered = workspace.infra(["job", "render"]).expect_code(0).stdout;
    for part in
        ["name: paddle-efs-research", "server: efs.paddle.infra.internal", "volumeName: paddle-efs-research"]
    {
        assert!(rendered.contains(part), "no '{part}' in\n{rendered}");
    }
}

const SERVERS: &str = "name: train\nframework: tensorflow\nimage: tensorflow/tensorflow:2.16.1\ncommand: [python, train.py]\n\
                       deadline: 1h\ngpus: 1\n";

#[test]
fn parameter_servers_are_placed_too() {
    let workspace = Workspace::new();
    let lint = |pools: &str, more: &str, code: i32| {
        workspace.write("cluster.yaml", format!("{MINIMAL}{pools}"));
        workspace.write("job.yaml", format!("{SERVERS}{more}"));
        workspace.infra(["job", "lint"]).expect_code(code).stdout
    };
    assert_eq!(lint(POOLS, "ps: 8\nworkers: 3\nmemory: 7Gi\n", 0), "");
    // A machine has memory for two such pods, and there are at most three machines.
    let shared = lint(POOLS, "ps: 8\nworkers: 3\nmemory: 7Gi\npool: gpu\n", 2);
    let message =
        "8 parameter servers and 3 workers do not fit: pool gpu has memory and CPUs for 6 pods at full size";
    assert!(shared.contains(message), "{shared}");
    assert_eq!(lint(POOLS, "ps: 3\nworkers: 3\nmemory: 7Gi\npool: gpu\n", 0), "");
    let gpus_only = "pools:\n- {name: gpu, instanceType: g5.xlarge, count: 3}\nstorage: {efs: {}}\n";
    let nowhere = lint(gpus_only, "ps: 1\nworkers: 2\n", 2);
    assert!(nowhere.contains("no pool can run a parameter server, which has no GPU"), "{nowhere}");
    assert!(
        nowhere.contains("add a pool without GPUs to the cluster, or name one pool for all with pool:"),
        "{nowhere}"
    );
    assert_eq!(lint(gpus_only, "ps: 1\nworkers: 2\npool: gpu\n", 0), "");
}

#[test]
fn every_problem_of_a_job_file_is_shown_at_once() {
    let workspace = Workspace::new();
    workspace.write(
        "job.yaml",
        "name: train\nframework: pytorch\nimage: pytorch/pytorch:2.15.0\nreplicas: 2\nmemory: 8Q\npool: GPU\n\
         command: [python train.py]\nenv: {RANK: \"1\"}\ndeadline: soon\nqueue: A_b\n\
         data: {archive: /data.tar.gz, image: \"no image\"}\n",
    );
    let stdout = workspace.infra(["job", "lint"]).expect_code(2).stdout;
    for line in [5, 6, 7, 8, 9, 10] {
        assert!(stdout.contains(&format!("job.yaml:{line}:")), "nothing about line {line} in\n{stdout}");
    }
    assert_eq!(stdout.matches("job.yaml:11:").count(), 2, "{stdout}");
}

#[test]
fn a_group_without_a_deadline_is_warned_about() {
    let workspace = Workspace::new();
    workspace.write("job.yaml", format!("{}ps: 1\nworkers: 2\n", SERVERS.replace("deadline: 1h\n", "")));
    let stdout = workspace.infra(["job", "lint"]).expect_code(0).stdout;
    assert!(
        stdout.contains("there is no deadline: a process that hangs holds its machines for ever"),
        "{stdout}"
    );
}

#[test]
fn processes_on_spot_machines_get_no_more_time_than_a_notice_leaves() {
    let pools = POOLS.replacen("instanceType: g5.xlarge", "instanceType: g5.xlarge, spot: true", 1);
    assert_ne!(pools, POOLS);
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}{pools}"));
    let job = |grace: &str| format!("{JOB}{IMAGE}replicas: 1\ngpus: 1\npool: gpu\n{grace}");
    workspace.write("job.yaml", job("grace: 80s\n"));
    workspace.infra(["job", "lint"]).expect_code(0);
    workspace.write("job.yaml", job("grace: 90s\n"));
    let stdout = workspace.infra(["job", "lint"]).expect_code(2).stdout;
    assert!(stdout.contains("grace is 90s, and the spot machines of pool gpu grant at most 80s"), "{stdout}");
}

#[test]
fn a_pod_without_a_memory_limit_gets_its_share_of_the_machine() {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}{POOLS}"));
    // A quarter of 192 GiB less what the system needs.
    workspace.write("job.yaml", format!("{JOB}{IMAGE}replicas: 1\ngpus: 1\npool: large\n"));
    let rendered = workspace.infra(["job", "render"]).expect_code(0).stdout;
    assert!(rendered.contains("memory: 48896Mi"), "{rendered}");
    assert_eq!(workspace.infra(["job", "lint"]).expect_code(0).stdout, "");
    // Nothing is known of a type that is newer than infra, unless the file says it.
    let pool = "pools:\n- {name: cpu, instanceType: m99.large, count: 1}\nstorage: {efs: {}}\n";
    workspace.write("cluster.yaml", format!("{MINIMAL}{pool}"));
    workspace.write("job.yaml", format!("{JOB}{IMAGE}replicas: 1\n"));
    let warned = workspace.infra(["job", "lint"]).expect_code(0).stdout;
    let warning = "warning: the job's pods have no memory limit, because the size of their machines is not known: with too much memory they are \
                   evicted, which does not count as a failure\n  help: write memory: in the job file\n";
    assert!(warned.contains(warning), "{warned}");
    workspace.write("job.yaml", format!("{JOB}{IMAGE}replicas: 1\nmemory: 4Gi\n"));
    assert_eq!(workspace.infra(["job", "lint"]).expect_code(0).stdout, "");
}
