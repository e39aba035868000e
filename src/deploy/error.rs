//! How a deployment can fail.

use std::fmt;

use super::event::{FailureReport, Finding, Refusal};
use crate::aws::{AwsError, StackStatus};
use crate::kube::KubeError;

/// Why a command of this layer did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// A call to AWS failed.
    #[error(transparent)]
    Aws(#[from] AwsError),
    /// Nobody says where assets are to be uploaded.
    #[error("there is no place to upload to")]
    NoS3Uri,
    /// Something may not change.
    #[error("{}", join(.0.iter().map(|refusal| &refusal.what)))]
    Refused(Vec<Refusal>),
    /// Preflight found what would fail later.
    #[error("preflight found {} that would fail later; nothing was changed", count(.0.len()))]
    Preflight(Vec<Finding>),
    /// Stacks failed.
    #[error("{}", join(.0.iter()))]
    Failed(Vec<FailureReport>),
    /// Stacks stand, but their groups cannot start the machines that are wanted.
    #[error("{}", join(.0.iter().map(FailureReport::without_machines)))]
    NoMachines(Vec<FailureReport>),
    /// A stack is in a state that needs a decision.
    #[error("stack {stack} is in {status}: {reason}")]
    Stuck {
        /// The stack.
        stack: String,
        /// Its status.
        status: StackStatus,
        /// Why.
        reason: String,
        /// What to do next.
        help: String,
    },
    /// Somebody else deleted a stack that this run was at work on.
    #[error("{stack} was deleted by somebody else meanwhile")]
    TakenAway {
        /// The stack.
        stack: String,
    },
    /// The user went away, or the time was up, while AWS goes on.
    #[error("{what}; {} in AWS", goes_on(.running))]
    StillRunning {
        /// What ended the wait.
        what: String,
        /// The stacks that AWS still works on.
        running: Vec<String>,
    },
    /// The Kubernetes API failed us.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// Anything else that the user can mend.
    #[error("{what}")]
    Unusable {
        /// What is wrong.
        what: String,
        /// What to do next.
        help: String,
    },
}

impl DeployError {
    /// What the user can do about it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoS3Uri => Some(
                "`--s3-uri s3://bucket/prefix`, or s3URI in cluster.yaml; `--create-bucket` makes a missing bucket".to_owned(),
            ),
            Self::Refused(refusals) => Some(
                refusals.iter().map(|refusal| refusal.instead.as_str()).collect::<Vec<_>>().join("\n      "),
            ),
            Self::Preflight(_) => {
                Some("mend what is listed above; `--skip-preflight` goes on regardless".to_owned())
            }
            Self::Failed(reports) => {
                let hints = hints_of(reports);
                (!hints.is_empty()).then(|| hints.join("\n      "))
            }
            Self::NoMachines(reports) => {
                let mut lines = hints_of(reports);
                lines.push("AWS goes on trying, and the same command comes back to it");
                Some(lines.join("\n      "))
            }
            Self::Stuck { help, .. } | Self::Unusable { help, .. } => Some(help.clone()),
            Self::TakenAway { .. } => Some(
                "settle with them whether the cluster shall be there: `infra up` brings it up again, `infra destroy` takes away \
                 whatever is left of it"
                    .to_owned(),
            ),
            Self::StillRunning { .. } => Some(
                "run the same command again to come back to it; `infra status` looks without waiting"
                    .to_owned(),
            ),
            // What AWS says is explained by `explain::hint`.
            Self::Aws(_) | Self::Kube(_) => None,
        }
    }
}

/// The hints of some reports, each once.
fn hints_of(reports: &[FailureReport]) -> Vec<&str> {
    let mut hints: Vec<&str> = Vec::new();
    for hint in reports.iter().filter_map(|report| report.hint.as_ref()) {
        if !hints.contains(&hint.text.as_str()) {
            hints.push(&hint.text);
        }
    }
    hints
}

fn join(texts: impl Iterator<Item = impl fmt::Display>) -> String {
    texts.map(|text| text.to_string()).collect::<Vec<_>>().join("\n       ")
}

fn count(number: usize) -> String {
    if number == 1 { "one thing".to_owned() } else { format!("{number} things") }
}

fn goes_on(running: &[String]) -> String {
    match running {
        [] => "nothing is running".to_owned(),
        [one] => format!("{one} goes on"),
        many => format!("{} go on", many.join(", ")),
    }
}
