//! One run of a workload: its name, its directory on the claim, its digest.

use crate::hexadecimal::hexadecimal;

use super::environment::{INDEX, INDEX_FIELD};
use super::values::RunName;
use super::workload::{RolePlan, Variable, Workload};

/// Which attempt of the group a pod belongs to, as JobSet counts them.
const ATTEMPT_FIELD: &str = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']";
/// The uid of the JobSet that a pod belongs to.
const UID_FIELD: &str = "metadata.labels['jobset.sigs.k8s.io/jobset-uid']";
/// The directory of a run that its results are in.
pub(crate) const OUTPUT_DIRECTORY: &str = "output";

/// A workload that is to run under a name.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// What runs.
    pub workload: Workload,
    /// The digest of the workload, the same in every run of it.
    pub digest: String,
    /// The name of the run.
    pub name: RunName,
    /// Whether an earlier run of this name is continued.
    pub is_resumed: bool,
    /// When the job ends at the latest, in seconds since 1970; not known before it is submitted.
    pub deadline: Option<u64>,
}

impl Run {
    /// A run of a workload.
    #[must_use]
    pub(crate) fn new(workload: Workload, name: RunName) -> Self {
        let digest = digest_of(&workload);
        Self { workload, digest, name, is_resumed: false, deadline: None }
    }

    /// The run whose objects are only rendered: without a name of its own it is named after the workload's digest.
    #[must_use]
    pub(crate) fn rendered(workload: Workload, name: Option<RunName>) -> Self {
        let name = name.unwrap_or_else(|| RunName::of_digest(&digest_of(&workload)));
        Self::new(workload, name)
    }

    /// The run with its deadline, if the job has one, counted from a moment in seconds since 1970.
    #[must_use]
    pub(super) fn ending_after(&self, now: u64) -> Self {
        let deadline = self.workload.deadline_seconds.map(|seconds| now.saturating_add(seconds));
        Self { deadline, ..self.clone() }
    }

    /// The directory of the run on the claim.
    pub(super) fn directory_on_claim(&self) -> String {
        format!("{}/{}", self.workload.path, run_directory(self.name.as_str()))
    }

    /// The directory of the run as its pods see it.
    pub(super) fn directory(&self) -> String {
        format!("{}/{}", self.workload.root(), run_directory(self.name.as_str()))
    }

    /// The variables of a role's containers. Those of the run come first, since others refer to them.
    pub(super) fn variables_of(&self, role: &RolePlan) -> Vec<Variable> {
        let directory = self.directory();
        let mut variables = vec![
            Variable::field(INDEX, INDEX_FIELD),
            Variable::field("INFRA_ATTEMPT", ATTEMPT_FIELD),
            Variable::field("INFRA_JOBSET_UID", UID_FIELD),
            Variable::text("INFRA_RUN", self.name.as_str()),
            Variable::text("INFRA_RUN_DIR", &directory),
            Variable::text("INFRA_OUTPUT_DIR", format!("{directory}/{OUTPUT_DIRECTORY}")),
            Variable::text("INFRA_LOG_DIR", format!("{directory}/logs")),
            // Marks of an earlier submission of the same run are never taken for those of this one.
            Variable::text("INFRA_MARK_DIR", format!("{directory}/.infra/$(INFRA_JOBSET_UID)")),
        ];
        variables.extend(self.deadline.map(|at| Variable::text("INFRA_DEADLINE", at.to_string())));
        variables.extend(role.variables.iter().cloned());
        variables
    }
}

/// The directory of a run below that of its job.
pub(crate) fn run_directory(run: &str) -> String {
    format!("runs/{run}")
}

fn digest_of(workload: &Workload) -> String {
    let text = serde_json::json!(workload).to_string();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    hexadecimal(&digest.as_ref()[..6])
}
