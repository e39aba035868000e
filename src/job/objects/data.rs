//! The Job that imports data, without a GPU.

use serde_json::{Value, json};

use super::job::{LostMachine, with_failure_policy};
use super::metadata::metadata;
use super::pod::{claim_mount, claim_volume, container_security, environment, script_mount, script_volume};
use super::template::helper_template;
use crate::job::names::{
    CLAIM_ANNOTATION, DIGEST_ANNOTATION, PATH_ANNOTATION, RESUMED_ANNOTATION, RUN_LABEL, SCRIPT_DIRECTORY,
    data_job_name,
};
use crate::job::run::Run;

/// The Job and its log are kept for a day after it is done.
const SECONDS_KEPT: u32 = 86400;
/// How often a failed import is tried again.
pub(crate) const IMPORT_RETRIES: u32 = 3;
const ROLE: &str = "data";

/// The import, if there is something to import.
pub(super) fn data_job(run: &Run) -> Option<Value> {
    let workload = &run.workload;
    let data = workload.data.as_ref()?;
    let mut metadata = metadata(workload, &data_job_name(&workload.name), Some(ROLE));
    metadata["labels"][RUN_LABEL] = json!(run.name);
    metadata["annotations"] = json!({
        DIGEST_ANNOTATION: run.digest,
        CLAIM_ANNOTATION: workload.claim,
        PATH_ANNOTATION: workload.path,
    });
    if run.is_resumed {
        // Who attaches to the import starts the same run.
        metadata["annotations"][RESUMED_ANNOTATION] = json!("yes");
    }
    let container = json!({
        "name": ROLE,
        "image": data.image,
        "command": ["python3", "-u", format!("{SCRIPT_DIRECTORY}/import_data.py")],
        "env": environment(&data.variables),
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": container_security(),
        "volumeMounts": [claim_mount(workload), script_mount()],
    });
    let volumes = [claim_volume(&workload.claim), script_volume(workload)];
    let mut template = helper_template(workload, ROLE, &container, &volumes);
    template["spec"]["restartPolicy"] = json!("Never");
    template["metadata"]["labels"][RUN_LABEL] = json!(run.name);
    let spec = json!({
        "backoffLimit": IMPORT_RETRIES,
        "ttlSecondsAfterFinished": SECONDS_KEPT,
        "template": template,
    });
    let spec = with_failure_policy(spec, LostMachine::Replace);
    Some(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}))
}
