//! The objects of a check: the program, a pod on each machine, and the pod that conducts the check.

use serde_json::{Value, json};

use super::report::Backend;
use crate::job::environment::{efa_settings, nccl_sockets, no_gpus};
use crate::job::names::{JOB_LABEL, MANAGER, MANAGER_LABEL, ROLE_LABEL, SCRIPT_DIRECTORY};
use crate::job::workload::{Variable, VariableSource};
use crate::kube::Node;
use crate::well_known::{EFA_RESOURCE, GPU_RESOURCE};

/// The role of a check's pod on a machine.
pub(super) const ROLE: &str = "nccl-check";
/// The namespace of every check.
pub(super) const NAMESPACE: &str = "default";
const NAME: &str = "infra-nccl-check";
/// What the program does in that pod.
const CONDUCT: &str = "conduct";
const FILE: &str = "nccl_check.py";
/// The role of the pod that conducts the check.
const CONDUCTOR_ROLE: &str = "nccl-check-conductor";

/// The objects of one check.
#[derive(Debug)]
pub(super) struct Objects<'a> {
    /// What distinguishes them from those of other checks.
    pub(super) mark: &'a str,
    /// The image; it needs python3 with PyTorch.
    pub(super) image: &'a str,
    /// The library to measure with.
    pub(super) backend: Backend,
    /// When pods that were left behind are terminated.
    pub(super) longest_seconds: u64,
}

impl Objects<'_> {
    /// What all of them are found by.
    pub(super) fn selector(&self) -> String {
        format!("{JOB_LABEL}={}", self.name())
    }

    /// The pod of a machine.
    pub(super) fn pod_name(&self, number: usize) -> String {
        format!("{}-{number}", self.name())
    }

    /// The pod that conducts the check.
    pub(super) fn conductor_name(&self) -> String {
        format!("{}-conductor", self.name())
    }

    fn name(&self) -> String {
        format!("{NAME}-{}", self.mark)
    }

    /// The program.
    pub(super) fn program(&self, text: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self.metadata(&self.name(), ROLE),
            "data": {FILE: text},
        })
    }

    /// The pod of a machine. It gets all GPUs and adapters of its machine, as a job's would.
    pub(super) fn machine(&self, number: usize, node: &Node, processes: u32) -> Value {
        let mut variables = vec![
            json!({"name": "INFRA_PROCESSES", "value": processes.to_string()}),
            json!({"name": "INFRA_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
        ];
        let mut limits = json!({});
        if self.backend == Backend::Nccl {
            variables.extend(nccl_sockets().iter().map(entry));
            limits[GPU_RESOURCE] = json!(node.gpus.to_string());
            if node.efa > 0 {
                variables.extend(efa_settings().iter().map(entry));
                limits[EFA_RESOURCE] = json!(node.efa.to_string());
            }
        } else {
            variables.push(entry(&no_gpus()));
        }
        let mut pod = self.pod(&self.pod_name(number), "machine", &node.name, variables);
        let container = &mut pod["spec"]["containers"][0];
        container["resources"]["limits"] = limits;
        if let Some(mounts) = container["volumeMounts"].as_array_mut() {
            mounts.push(json!({"name": "shared-memory", "mountPath": "/dev/shm"}));
        }
        if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
            // Processes of a machine talk through it where its GPUs are not connected.
            volumes.push(json!({"name": "shared-memory", "emptyDir": {"medium": "Memory"}}));
        }
        pod
    }

    /// The pod that conducts the check, on a machine that has the image already.
    pub(super) fn conductor(&self, node: &Node, plan: &Value) -> Value {
        let variables = vec![json!({"name": "INFRA_PLAN", "value": plan.to_string()}), entry(&no_gpus())];
        self.pod(&self.conductor_name(), CONDUCT, &node.name, variables)
    }

    fn pod(&self, name: &str, part: &str, node: &str, mut variables: Vec<Value>) -> Value {
        let role = if part == CONDUCT { CONDUCTOR_ROLE } else { ROLE };
        variables.push(json!({"name": "INFRA_BACKEND", "value": self.backend.name()}));
        variables.push(json!({"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}));
        let on_node = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self.metadata(name, role),
            "spec": {
                // The scheduler places it: a pod that was bound past it could take what a job has just been given.
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_node]}}},
                "restartPolicy": "Never",
                "activeDeadlineSeconds": self.longest_seconds,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "terminationGracePeriodSeconds": 1,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": ROLE,
                    "image": self.image,
                    "command": ["python3", "-u", format!("{SCRIPT_DIRECTORY}/{FILE}"), part],
                    "env": variables,
                    "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": false},
                    "volumeMounts": [{"name": "program", "mountPath": SCRIPT_DIRECTORY, "readOnly": true}],
                }],
                "volumes": [{"name": "program", "configMap": {"name": self.name()}}],
            },
        })
    }

    fn metadata(&self, name: &str, role: &str) -> Value {
        json!({
            "name": name,
            "namespace": NAMESPACE,
            "labels": {MANAGER_LABEL: MANAGER, JOB_LABEL: self.name(), ROLE_LABEL: role},
        })
    }
}

fn entry(variable: &Variable) -> Value {
    match &variable.source {
        VariableSource::Text(value) => json!({"name": variable.name, "value": value}),
        VariableSource::Field(path) => {
            json!({"name": variable.name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
        }
    }
}
