//! A TensorBoard that watches a job's output until a day after the job, seen through `infra job tensorboard`.

use serde_json::{Value, json};

use super::job::{LostMachine, with_failure_policy};
use super::metadata::metadata;
use super::pod::{claim_mount, claim_volume, container_security, environment, script_mount, script_volume};
use super::template::helper_template;
use crate::job::environment::no_gpus;
use crate::job::names::{
    JOB_LABEL, ROLE_LABEL, SCRIPT_DIRECTORY, TENSORBOARD_PORT as PORT, TENSORBOARD_ROLE as ROLE,
    group_host_name, tensorboard_name,
};
use crate::job::run::Run;
use crate::job::values::Size;
use crate::job::workload::Variable;

/// What it needs to start; it grows with what it shows.
const MEBIBYTES: u64 = 512;
/// How often it is started again after a failure, such as too much memory. Pods on lost machines are replaced besides.
const RETRIES: u32 = 20;
/// When it has ended, its Kubernetes Job and its log are kept for an hour.
const SECONDS_KEPT: u32 = 3600;

/// The Kubernetes Job, which ends by itself, and its Service.
pub(super) fn tensorboard(run: &Run) -> Vec<Value> {
    let workload = &run.workload;
    let Some(plan) = &workload.tensorboard else { return Vec::new() };
    let name = tensorboard_name(&workload.name);
    let selector = json!({JOB_LABEL: workload.name, ROLE_LABEL: ROLE});
    // All runs of the job, to compare them.
    let runs = format!("{}/runs", workload.root());
    let mut mount = claim_mount(workload);
    mount["readOnly"] = json!(true);
    let variables = [
        no_gpus(),
        Variable::text("INFRA_RUN_DIR", run.directory()),
        Variable::text("INFRA_RUNS_DIR", &runs),
        Variable::text("INFRA_GROUP_NAME", group_host_name(&workload.name, &workload.namespace)),
    ];
    let launcher = format!("{SCRIPT_DIRECTORY}/tensorboard.sh");
    let port = PORT.to_string();
    // More than the limit would be refused.
    let usual = Size::of_mebibytes(MEBIBYTES);
    let memory = if plan.memory.bytes() < usual.bytes() { &plan.memory } else { &usual };
    let program = ["tensorboard", "--logdir", &runs, "--host", "0.0.0.0", "--port", &port];
    let command: Vec<&str> = ["/bin/sh", &launcher].into_iter().chain(program).collect();
    let container = json!({
        "name": ROLE,
        "image": plan.image,
        "command": command,
        "env": environment(&variables),
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "resources": {
            "requests": {"cpu": plan.processors.to_string(), "memory": memory.to_string()},
            "limits": {"memory": plan.memory.to_string()},
        },
        "securityContext": container_security(),
        "volumeMounts": [mount, script_mount()],
    });
    let volumes = [claim_volume(&workload.claim), script_volume(workload)];
    let mut template = helper_template(workload, ROLE, &container, &volumes);
    template["spec"]["restartPolicy"] = json!("Never");
    // The autoscaler may move it to save a machine.
    template["metadata"].as_object_mut().map(|metadata| metadata.remove("annotations"));
    let spec = json!({
        "backoffLimit": RETRIES,
        "ttlSecondsAfterFinished": SECONDS_KEPT,
        "template": template,
    });
    vec![
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata(workload, &name, Some(ROLE)),
            "spec": with_failure_policy(spec, LostMachine::Replace),
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(workload, &name, Some(ROLE)),
            "spec": {"selector": selector, "ports": [{"name": "http", "port": PORT, "targetPort": "http"}]},
        }),
    ]
}
