//! The numbered pods that train, or serve those that do.

use serde_json::{Value, json};

use super::pod::{
    add_pull_secrets, claim_mount, claim_volume, code_mount, container_security, environment, pod_security,
    run_mounts, scratch_mount, scratch_volume, script_mount, script_volume, secret_variables, seed_mounts,
    shared_memory_mount, shared_memory_volume,
};
use crate::job::environment::MOST_RESTARTS;
use crate::job::framework::Framework;
use crate::job::names::{JOB_LABEL, POOL_LABEL, SCRIPT_DIRECTORY, helper_affinity, require_scratch};
use crate::job::run::Run;
use crate::job::workload::{RolePlan, Variable, Workload};
use crate::kube::{TaintEffect, Toleration};
use crate::well_known::{EFA_RESOURCE, GPU_RESOURCE, HUGE_PAGES_RESOURCE, STORAGE_RESOURCE};

/// A node that does not answer is given up after this time, not after Kubernetes' five minutes: the group waits for it.
const UNREACHABLE_SECONDS: u32 = 30;
const UNREACHABLE_TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The variables that name the directories of a run, and the most restarts.
const PREPARED: [&str; 9] = [
    MOST_RESTARTS,
    "INFRA_ATTEMPT",
    "INFRA_DEADLINE",
    "INFRA_JOBSET_UID",
    "INFRA_RUN",
    "INFRA_RUN_DIR",
    "INFRA_OUTPUT_DIR",
    "INFRA_LOG_DIR",
    "INFRA_MARK_DIR",
];

/// What a role's pods run, and on which machines.
pub(super) fn pod_spec(run: &Run, role: &RolePlan) -> Value {
    let workload = &run.workload;
    let mut volumes = vec![claim_volume(&workload.claim), shared_memory_volume(workload)];
    let mut mounts = vec![claim_mount(workload), shared_memory_mount()];
    mounts.extend(code_mount(workload));
    mounts.extend(run_mounts(run));
    if workload.asks_for_peers {
        mounts.extend(seed_mounts(run, role.role));
    }
    if let Some(gibibytes) = role.scratch_gib {
        volumes.push(scratch_volume(gibibytes));
        mounts.push(scratch_mount());
    }
    if !workload.scripts.is_empty() {
        volumes.push(script_volume(workload));
        mounts.push(script_mount());
    }
    let variables = run.variables_of(role);
    let ports: Vec<Value> =
        role.ports.iter().map(|(name, port)| json!({"name": name, "containerPort": port})).collect();
    let mut container = json!({
        "name": role.role,
        "image": role.image,
        "command": role.command,
        "env": environment(&variables),
        "ports": ports,
        "resources": container_resources(workload, role),
        "securityContext": container_security(),
        "volumeMounts": mounts,
    });
    if !workload.secrets.is_empty() {
        container["envFrom"] = secret_variables(&workload.secrets);
    }
    if let Some(directory) = &workload.workdir {
        container["workingDir"] = json!(directory);
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": workload.grace_seconds,
        "automountServiceAccountToken": workload.asks_for_peers,
        "enableServiceLinks": false,
        "securityContext": pod_security(),
        "containers": [container],
        "tolerations": pod_tolerations(role),
        "volumes": volumes,
    });
    add_pull_secrets(&mut spec, workload);
    if workload.asks_for_peers {
        spec["serviceAccountName"] = json!(workload.name);
    }
    if !workload.scripts.is_empty() {
        spec["initContainers"] = json!([preparing_container(run, role, variables)]);
    }
    if let Some(pool) = &workload.pool {
        spec["nodeSelector"] = json!({POOL_LABEL: pool});
    }
    if role.gpus == 0 {
        spec["affinity"] = helper_affinity();
    }
    if role.scratch_gib.is_some() {
        require_scratch(&mut spec["affinity"]);
    }
    if workload.framework == Framework::PaddleV0 && role.replicas > 1 {
        // Trainers of that generation expect a machine each.
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {JOB_LABEL: workload.name}},
        }]);
    }
    spec
}

fn pod_tolerations(role: &RolePlan) -> Vec<Toleration> {
    let patience = UNREACHABLE_TAINTS
        .map(|taint| Toleration::for_a_while(taint, TaintEffect::NoExecute, UNREACHABLE_SECONDS));
    role.tolerations.iter().cloned().chain(patience).collect()
}

fn container_resources(workload: &Workload, role: &RolePlan) -> Value {
    let mut requests = json!({
        "cpu": workload.processors.to_string(),
        "memory": workload.requested_memory.to_string(),
    });
    if let Some(gibibytes) = role.scratch_gib {
        requests[STORAGE_RESOURCE] = json!(format!("{gibibytes}Gi"));
    }
    let mut limits = json!({});
    if let Some(memory) = &role.memory_limit {
        limits["memory"] = json!(memory.to_string());
    }
    // Of these the limit must be the request.
    let devices = [
        (GPU_RESOURCE, Some(role.gpus).filter(|gpus| *gpus > 0).map(|gpus| gpus.to_string())),
        (EFA_RESOURCE, role.efa.map(|adapters| adapters.to_string())),
        (HUGE_PAGES_RESOURCE, role.huge_pages_mib.map(|mebibytes| format!("{mebibytes}Mi"))),
    ];
    for (resource, amount) in devices.into_iter().filter_map(|(name, amount)| Some((name, amount?))) {
        requests[resource] = json!(amount);
        limits[resource] = json!(amount);
    }
    let mut resources = json!({"requests": requests});
    if limits.as_object().is_some_and(|limits| !limits.is_empty()) {
        resources["limits"] = limits;
    }
    resources
}

/// Creates the directories of the run, writable for whatever user the image has, and waits until the data is imported.
fn preparing_container(run: &Run, role: &RolePlan, mut variables: Vec<Variable>) -> Value {
    let workload = &run.workload;
    variables.retain(|variable| PREPARED.contains(&variable.name.as_str()));
    let directories: Vec<&str> = workload.mounts.values().map(String::as_str).collect();
    if !directories.is_empty() {
        variables.push(Variable::text("INFRA_MOUNTS", directories.join(" ")));
    }
    if run.is_resumed {
        variables.push(Variable::text("INFRA_RESUMED", "yes"));
    }
    if workload.asks_for_peers {
        variables.push(Variable::text("INFRA_SEED_IMAGE", "yes"));
    }
    if let Some(code) = &workload.code {
        let directory = format!("{}/{}", workload.mount_path, code.directory);
        variables.push(Variable::text("INFRA_CODE_ON_CLAIM", directory));
    }
    variables.extend(workload.data.as_ref().map(|data| Variable::text("DATA_STAMP", &data.stamp)));
    let mut security = container_security();
    security["runAsUser"] = json!(0);
    security["runAsNonRoot"] = json!(false);
    json!({
        "name": "prepare",
        // This image is pulled anyway.
        "image": role.image,
        "command": ["/bin/sh", format!("{SCRIPT_DIRECTORY}/prepare.sh")],
        "env": environment(&variables),
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "securityContext": security,
        "volumeMounts": [claim_mount(workload), script_mount()],
    })
}
