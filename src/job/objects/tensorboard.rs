//! A TensorBoard that watches a job's output, seen through a port-forward.

use serde_json::{Value, json};

use super::metadata::metadata;
use super::pod::{claim_mount, claim_volume, container_security, environment};
use super::template::helper_template;
use crate::job::environment::no_gpus;
use crate::job::names::{JOB_LABEL, ROLE_LABEL, TENSORBOARD_ROLE as ROLE, tensorboard_name};
use crate::job::run::Run;

const PORT: u16 = 6006;
/// What it needs to start; it grows with what it shows.
const TENSORBOARD_MEMORY: &str = "512Mi";

/// The Deployment and its Service.
pub(super) fn tensorboard(run: &Run) -> Vec<Value> {
    let workload = &run.workload;
    let Some(plan) = &workload.tensorboard else { return Vec::new() };
    let name = tensorboard_name(&workload.name);
    let selector = json!({JOB_LABEL: workload.name, ROLE_LABEL: ROLE});
    // All runs of the job, to compare them.
    let runs = format!("{}/runs", workload.root());
    let mut mount = claim_mount(workload);
    mount["readOnly"] = json!(true);
    let container = json!({
        "name": ROLE,
        "image": plan.image,
        "command": ["tensorboard", "--logdir", runs, "--host", "0.0.0.0", "--port", PORT.to_string()],
        "env": environment(&[no_gpus()]),
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "resources": {
            "requests": {"cpu": plan.processors.to_string(), "memory": TENSORBOARD_MEMORY},
            "limits": {"memory": plan.memory.to_string()},
        },
        "securityContext": container_security(),
        "volumeMounts": [mount],
    });
    let volumes = [claim_volume(&workload.claim)];
    let mut template = helper_template(workload, ROLE, &container, &volumes);
    // The autoscaler may move it to save a machine.
    template["metadata"].as_object_mut().map(|metadata| metadata.remove("annotations"));
    vec![
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(workload, &name, Some(ROLE)),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": selector},
                "template": template,
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(workload, &name, Some(ROLE)),
            "spec": {"selector": selector, "ports": [{"name": "http", "port": PORT, "targetPort": "http"}]},
        }),
    ]
}
