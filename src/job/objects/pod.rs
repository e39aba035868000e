//! Volumes, mounts, environments and security contexts of pods.

use serde_json::{Value, json};

use crate::job::names::{SCRATCH_DIRECTORY, SCRIPT_DIRECTORY, role_job_name, scripts_name};
use crate::job::run::{OUTPUT_DIRECTORY, Run};
use crate::job::workload::{Variable, VariableSource, Workload};

const CLAIM_VOLUME: &str = "storage";
const SCRIPT_VOLUME: &str = "scripts";
const SHARED_MEMORY_VOLUME: &str = "shared-memory";
const SCRATCH_VOLUME: &str = "scratch";
/// Readable and executable by everyone; decimal, because YAML readers disagree about octal numbers.
const EXECUTABLE: u32 = 0o555;

/// Variables as a container lists them.
pub(super) fn environment(variables: &[Variable]) -> Value {
    let entry = |variable: &Variable| match &variable.source {
        VariableSource::Text(value) => json!({"name": variable.name, "value": value}),
        VariableSource::Field(path) => {
            json!({"name": variable.name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
        }
    };
    variables.iter().map(entry).collect()
}

/// The variables of Secrets, as a container lists them. Those in `env` win over them.
pub(super) fn secret_variables(secrets: &[String]) -> Value {
    secrets.iter().map(|name| json!({"secretRef": {"name": name}})).collect()
}

/// Lets a pod pull images with the job's logins to registries.
pub(super) fn add_pull_secrets(spec: &mut Value, workload: &Workload) {
    if !workload.image_pull_secrets.is_empty() {
        let names = workload.image_pull_secrets.iter();
        spec["imagePullSecrets"] = names.map(|name| json!({"name": name})).collect();
    }
}

/// The claim, as a volume of a pod.
pub(super) fn claim_volume(claim: &str) -> Value {
    json!({"name": CLAIM_VOLUME, "persistentVolumeClaim": {"claimName": claim}})
}

/// The claim, as a container sees it.
pub(super) fn claim_mount(workload: &Workload) -> Value {
    json!({"name": CLAIM_VOLUME, "mountPath": workload.mount_path})
}

/// The code, as a container sees it.
pub(super) fn code_mount(workload: &Workload) -> Option<Value> {
    workload.code.as_ref().map(|code| {
        json!({"name": CLAIM_VOLUME, "mountPath": code.mounted_at, "subPath": code.directory, "readOnly": true})
    })
}

/// Directories of the run, where the program expects them.
pub(super) fn run_mounts(run: &Run) -> impl Iterator<Item = Value> {
    let own = run.directory_on_claim();
    run.workload.mounts.iter().map(move |(at, directory)| {
        json!({"name": CLAIM_VOLUME, "mountPath": at, "subPath": format!("{own}/{directory}")})
    })
}

/// The job's directory and the output of the run, where a seed image expects both: below the name of its Job.
pub(super) fn seed_mounts(run: &Run, role: &str) -> Vec<Value> {
    let workload = &run.workload;
    let at = format!("{}/{}", workload.mount_path, role_job_name(&workload.name, role));
    let output = format!("{}/{OUTPUT_DIRECTORY}", run.directory_on_claim());
    vec![
        json!({"name": CLAIM_VOLUME, "mountPath": at, "subPath": workload.path}),
        json!({"name": CLAIM_VOLUME, "mountPath": format!("{at}/{OUTPUT_DIRECTORY}"), "subPath": output}),
    ]
}

/// The scripts, as a volume of a pod.
pub(super) fn script_volume(workload: &Workload) -> Value {
    json!({
        "name": SCRIPT_VOLUME,
        "configMap": {"name": scripts_name(&workload.name), "defaultMode": EXECUTABLE},
    })
}

/// The scripts, as a container sees them.
pub(super) fn script_mount() -> Value {
    json!({"name": SCRIPT_VOLUME, "mountPath": SCRIPT_DIRECTORY, "readOnly": true})
}

/// /dev/shm, as a volume of a pod.
pub(super) fn shared_memory_volume(workload: &Workload) -> Value {
    let size = workload.shared_memory.to_string();
    json!({"name": SHARED_MEMORY_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}})
}

/// /dev/shm, as a container sees it.
pub(super) fn shared_memory_mount() -> Value {
    json!({"name": SHARED_MEMORY_VOLUME, "mountPath": "/dev/shm"})
}

/// A part of the machine's own drives, as a volume of a pod.
pub(super) fn scratch_volume(gibibytes: u32) -> Value {
    json!({"name": SCRATCH_VOLUME, "emptyDir": {"sizeLimit": format!("{gibibytes}Gi")}})
}

/// A part of the machine's own drives, as a container sees it.
pub(super) fn scratch_mount() -> Value {
    json!({"name": SCRATCH_VOLUME, "mountPath": SCRATCH_DIRECTORY})
}

/// What no container of ours may do.
pub(super) fn container_security() -> Value {
    json!({"allowPrivilegeEscalation": false})
}

/// What no pod of ours may do.
pub(super) fn pod_security() -> Value {
    json!({"seccompProfile": {"type": "RuntimeDefault"}})
}
