//! Why a job's life went otherwise than asked.

use crate::kube::KubeError;
use crate::waiting::WaitEnd;

/// What went wrong with a job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The API did not do what it was asked.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// There is no such job.
    #[error("there is no job '{name}' in namespace {namespace}")]
    Missing {
        /// Its name.
        name: String,
        /// Where it was looked for.
        namespace: String,
    },
    /// It cannot be submitted as things are.
    #[error("the job cannot be submitted: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// Its data could not be imported.
    #[error("the data of job '{name}' could not be imported: {reason}")]
    Data {
        /// The job.
        name: String,
        /// Why.
        reason: String,
    },
    /// The results could not be read.
    #[error("the results of job '{name}' cannot be read: {reason}")]
    Results {
        /// The job.
        name: String,
        /// Why.
        reason: String,
    },
    /// It goes on without us.
    #[error("job '{name}' goes on")]
    StillRunning {
        /// The job.
        name: String,
        /// Whether the time was up or the user left.
        end: WaitEnd,
    },
}

impl JobError {
    /// What to do next.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => Some("`infra job list` shows every job".to_owned()),
            Self::StillRunning { name, .. } => {
                Some(format!("`infra job submit` or `infra job logs -f {name}` comes back to it"))
            }
            Self::Kube(error) if error.is_unreachable() => Some(
                "is the cluster up (`infra status`), and does its name lead to it from here? INFRA_API_SERVER=host:port names a tunnel".to_owned(),
            ),
            _ => None,
        }
    }
}
