//! The numbered pods that train.

use serde_json::{Value, json};

use super::job::job;
use super::metadata::{metadata, pod_metadata};
use super::pod::{
    claim_mount, claim_volume, container_security, environment, pod_security, script_mount, script_volume,
    shared_memory_mount, shared_memory_volume,
};
use crate::job::framework::Framework;
use crate::job::names::{
    CLAIM_ANNOTATION, DIGEST_ANNOTATION, JOB_LABEL, PATH_ANNOTATION, POOL_LABEL, QUEUE_LABEL, RUN_LABEL,
    SCRIPT_DIRECTORY, helper_affinity,
};
use crate::job::run::Run;
use crate::job::workload::{RolePlan, Variable, Workload, failures_allowed};
use crate::well_known::GPU_RESOURCE;

/// The Job and its logs are kept for a week after it is done.
const SECONDS_KEPT: u32 = 604_800;

/// The Kubernetes Job of a role.
pub(super) fn training_job(run: &Run, role: &RolePlan) -> Value {
    let workload = &run.workload;
    let mut metadata = metadata(workload, &role.job, Some(role.role));
    let mut pod_metadata = pod_metadata(workload, role.role);
    metadata["labels"][RUN_LABEL] = json!(run.id.as_str());
    pod_metadata["labels"][RUN_LABEL] = json!(run.id.as_str());
    metadata["annotations"] = json!({
        DIGEST_ANNOTATION: run.digest,
        CLAIM_ANNOTATION: workload.claim,
        PATH_ANNOTATION: workload.path,
    });
    let mut spec = json!({
        "completionMode": "Indexed",
        "parallelism": role.replicas,
        "completions": role.replicas,
        "backoffLimit": failures_allowed(workload.retries, role.replicas),
        "ttlSecondsAfterFinished": SECONDS_KEPT,
        "template": {"metadata": pod_metadata, "spec": pod_spec(run, role)},
    });
    if let Some(seconds) = workload.deadline_seconds {
        spec["activeDeadlineSeconds"] = json!(seconds);
    }
    if let Some(queue) = &workload.queue {
        // Kueue starts it when the quota allows.
        metadata["labels"][QUEUE_LABEL] = json!(queue);
        spec["suspend"] = json!(true);
    }
    job(&metadata, role.role, spec)
}

fn pod_spec(run: &Run, role: &RolePlan) -> Value {
    let workload = &run.workload;
    let mut volumes = vec![claim_volume(&workload.claim), shared_memory_volume(workload)];
    let mut mounts = vec![claim_mount(workload), shared_memory_mount()];
    if !workload.scripts.is_empty() {
        volumes.push(script_volume(workload));
        mounts.push(script_mount());
    }
    let ports: Vec<Value> =
        role.ports.iter().map(|(name, port)| json!({"name": name, "containerPort": port})).collect();
    let mut spec = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": workload.asks_for_peers,
        "enableServiceLinks": false,
        "securityContext": pod_security(),
        "containers": [{
            "name": role.role,
            "image": role.image,
            "command": role.command,
            "env": environment(&run.variables_of(role)),
            "ports": ports,
            "resources": container_resources(workload, role),
            "securityContext": container_security(),
            "volumeMounts": mounts,
        }],
        "volumes": volumes,
    });
    if workload.has_peers() {
        spec["subdomain"] = json!(workload.name);
    }
    if workload.asks_for_peers {
        spec["serviceAccountName"] = json!(workload.name);
    }
    if let Some(data) = &workload.data {
        spec["initContainers"] = json!([await_data(workload, role, &data.stamp)]);
    }
    if let Some(pool) = &workload.pool {
        spec["nodeSelector"] = json!({POOL_LABEL: pool});
    }
    if !role.tolerations.is_empty() {
        spec["tolerations"] = json!(role.tolerations);
    }
    if role.gpus == 0 {
        spec["affinity"] = helper_affinity();
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

fn container_resources(workload: &Workload, role: &RolePlan) -> Value {
    let mut requests = json!({
        "cpu": workload.processors.to_string(),
        "memory": workload.requested_memory.to_string(),
    });
    let mut limits = json!({});
    if let Some(memory) = &workload.memory_limit {
        limits["memory"] = json!(memory.to_string());
    }
    if role.gpus > 0 {
        requests[GPU_RESOURCE] = json!(role.gpus.to_string());
        limits[GPU_RESOURCE] = json!(role.gpus.to_string());
    }
    let mut resources = json!({"requests": requests});
    if limits.as_object().is_some_and(|limits| !limits.is_empty()) {
        resources["limits"] = limits;
    }
    resources
}

/// Holds a pod back until its data is imported. `infra job submit` imports first, so this seldom waits.
fn await_data(workload: &Workload, role: &RolePlan, stamp: &str) -> Value {
    let variables = [Variable::text("DATA_STAMP", stamp)];
    json!({
        "name": "await-data",
        // This image is pulled anyway.
        "image": role.image,
        "command": ["/bin/sh", format!("{SCRIPT_DIRECTORY}/await-data.sh")],
        "env": environment(&variables),
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [claim_mount(workload), script_mount()],
    })
}
