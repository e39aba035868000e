//! A TensorBoard that watches a job's output, seen through a port-forward.

use serde_json::{Value, json};

use super::metadata::metadata;
use super::pod::{claim_mount, claim_volume, container_security, environment};
use super::template::helper_template;
use crate::job::environment::no_gpus;
use crate::job::names::{JOB_LABEL, ROLE_LABEL, TENSORBOARD_ROLE as ROLE, tensorboard_name};
use crate::job::workload::Workload;

const PORT: u16 = 6006;

/// The Deployment and its Service.
pub(super) fn tensorboard(workload: &Workload) -> Vec<Value> {
    let Some(image) = &workload.tensorboard else { return Vec::new() };
    let name = tensorboard_name(&workload.name);
    let selector = json!({JOB_LABEL: workload.name, ROLE_LABEL: ROLE});
    let output = format!("{}/output", workload.root());
    let mut mount = claim_mount(workload);
    mount["readOnly"] = json!(true);
    let container = json!({
        "name": ROLE,
        "image": image,
        "command": ["tensorboard", "--logdir", output, "--host", "0.0.0.0", "--port", PORT.to_string()],
        "env": environment(&[no_gpus()]),
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": container_security(),
        "volumeMounts": [mount],
    });
    let volumes = [claim_volume(&workload.claim)];
    vec![
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(workload, &name, Some(ROLE)),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": selector},
                "template": helper_template(workload, ROLE, &container, &volumes),
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
