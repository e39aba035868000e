//! What a submission would do and use, without doing it.

use schemars::JsonSchema;
use serde::Serialize;

use super::precondition::Precondition;
use super::preconditions::Checked;
use super::state::JobState;
use crate::blueprint::CostSummary;
use crate::job::needed_machines::NeededMachines;
use crate::job::run::{Run, run_directory};

/// What `job submit --dry-run` found. The exit code is 1 if there is something `unmet`, 0 otherwise.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmissionPlan {
    /// The name of the job.
    pub name: String,
    /// The namespace of the job.
    pub namespace: String,
    /// The framework of the job.
    pub framework: String,
    /// What `submit` would do.
    pub action: PlannedAction,
    /// The state of the job of that name; null if there is none.
    pub existing: Option<JobState>,
    /// The name of the run; null if `submit` would choose one.
    pub run: Option<String>,
    /// The claim.
    pub claim: String,
    /// The directory of the run on the claim; that of all runs if the run has no name yet.
    pub directory: String,
    /// The pool that the job names; null if any will do.
    pub pool: Option<String>,
    /// The queue that it would wait in; null if there is none.
    pub queue: Option<String>,
    /// The code that the job brings; null if it brings none.
    pub code: Option<PlannedCode>,
    /// Whether data is imported first.
    pub imports_data: bool,
    /// Where the data is in S3, from which it is fetched by links that your AWS credentials sign; null if it comes from elsewhere.
    pub fetches_from: Option<String>,
    /// How many seconds the job may take; null if there is no limit.
    pub deadline_seconds: Option<u64>,
    /// How often the group may be restarted because of a failure.
    pub retries: u32,
    /// GPUs of all replicas together.
    pub gpus: u32,
    /// The processes of the job.
    pub roles: Vec<PlannedRole>,
    /// Whether the pods of all namespaces could be read. If not, `fitsNow` is the most that may fit.
    pub sees_all: bool,
    /// The machines that the job needs, by pool; null if several pools would do, or if that is not known.
    pub machines: Option<Vec<NeededMachines>>,
    /// What those machines cost, without their disks and addresses; null if infra.lock has no prices.
    pub cost: Option<CostSummary>,
    /// What the job would wait for, and what else its author should know.
    pub remarks: Vec<String>,
    /// What may become of the job that its author does not want.
    pub warnings: Vec<String>,
    /// What keeps the job from running: `submit` would refuse it.
    pub unmet: Vec<String>,
}

/// Code that is uploaded before the run, unless it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedCode {
    /// How many files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The directory on the claim, which is named after its content.
    pub directory: String,
    /// Where the pods see it.
    pub mounted_at: String,
}

/// What `submit` would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlannedAction {
    /// Create the job.
    Create,
    /// Delete the job that exists, then create the new one.
    Replace,
    /// Follow the same job, which exists already.
    Attach,
}

/// The pods of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedRole {
    /// The role.
    pub role: String,
    /// How many pods.
    pub replicas: u32,
    /// GPUs of each.
    pub gpus: u32,
    /// CPUs that each requests.
    pub cpu: String,
    /// Memory that each requests.
    pub memory: String,
    /// The most memory of each; null if it is not limited.
    pub memory_limit: Option<String>,
    /// The image.
    pub image: String,
    /// How many of them the machines that exist have room for now; null if that is not known. For pods without GPUs, what other pods use
    /// of CPUs and memory is not known.
    pub fits_now: Option<u32>,
}

impl SubmissionPlan {
    /// The plan of a run.
    pub(super) fn new(
        run: &Run,
        has_name: bool,
        action: PlannedAction,
        existing: Option<JobState>,
        checked: &Checked,
    ) -> Self {
        let workload = &run.workload;
        let mut rooms = checked.rooms.iter();
        let roles: Vec<PlannedRole> = workload
            .roles
            .iter()
            .map(|role| PlannedRole {
                role: role.role.to_owned(),
                replicas: role.replicas,
                gpus: role.gpus,
                cpu: workload.processors.to_string(),
                memory: workload.requested_memory.to_string(),
                memory_limit: role.memory_limit.as_ref().map(ToString::to_string),
                image: role.image.clone(),
                fits_now: rooms.next().and_then(|room| room.free).map(|free| free.min(role.replicas)),
            })
            .collect();
        let (mut remarks, mut warnings, mut unmet) = (Vec::new(), Vec::new(), Vec::new());
        for precondition in &checked.preconditions {
            match precondition {
                Precondition::Remark(remark) => remarks.push(remark.clone()),
                Precondition::Warning(warning) => warnings.push(warning.clone()),
                Precondition::Unmet(reason) => unmet.push(reason.clone()),
            }
        }
        let parent = run_directory("").trim_end_matches('/').to_owned();
        Self {
            name: workload.name.clone(),
            namespace: workload.namespace.clone(),
            framework: workload.framework.name().to_owned(),
            action,
            existing,
            run: has_name.then(|| run.name.to_string()),
            claim: workload.claim.clone(),
            directory: if has_name {
                run.directory_on_claim()
            } else {
                format!("{}/{parent}", workload.path)
            },
            pool: workload.pool.as_ref().map(ToString::to_string),
            queue: workload.queue.clone(),
            code: None,
            imports_data: workload.data.is_some(),
            fetches_from: None,
            deadline_seconds: workload.deadline_seconds,
            retries: workload.retries,
            gpus: roles.iter().map(|role| role.gpus.saturating_mul(role.replicas)).sum(),
            roles,
            sees_all: checked.sees_all,
            machines: None,
            cost: None,
            remarks,
            warnings,
            unmet,
        }
    }
}
