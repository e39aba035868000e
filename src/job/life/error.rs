//! Why a job's life went otherwise than asked.

use crate::kube::{KubeError, MayPass, ObjectName};
use crate::outcome::{Explain, Outcome};
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
    /// It went away while it was followed.
    #[error("job '{name}' was removed by somebody")]
    Removed {
        /// The job.
        name: String,
    },
    /// A job of this name is there, and is not taken away without being asked to.
    #[error("{what} is there already: '{name}', {state}")]
    AlreadyThere {
        /// Whether it is the same.
        what: &'static str,
        /// The job.
        name: String,
        /// How it is.
        state: &'static str,
    },
    /// The cluster does not have what the job needs.
    #[error("the cluster cannot run this job now")]
    NotReady,
    /// Somebody else changed the same thing at the same time.
    #[error("{object} was made by somebody else at the same time: {reason}")]
    Overtaken {
        /// What was to be made.
        object: ObjectName,
        /// What the API said.
        reason: String,
    },
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
        /// What to do next.
        help: Option<String>,
    },
    /// It goes on without us.
    #[error("job '{name}' goes on{}", time_is_up(*end))]
    StillRunning {
        /// The job.
        name: String,
        /// Whether the time was up or the user left.
        end: WaitEnd,
    },
    /// Its import goes on without us, and nobody is there to let training begin.
    #[error("the import of job '{name}' goes on{}, but training does not begin by itself", time_is_up(*end))]
    StillImporting {
        /// The job.
        name: String,
        /// Whether the time was up or the user left.
        end: WaitEnd,
    },
    /// It was told to go, and has not gone.
    #[error("job '{name}' is not gone yet: {} left", left.join(", "))]
    NotGone {
        /// The job.
        name: String,
        /// What is left.
        left: Vec<String>,
    },
}

fn time_is_up(end: WaitEnd) -> &'static str {
    match end {
        WaitEnd::TimedOut => ", the time to follow it is up",
        WaitEnd::Interrupted => "",
    }
}

impl Explain for JobError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => Some("`infra job list` shows every job".to_owned()),
            Self::Removed { .. } => Some("its files stay; `infra job submit` starts it anew".to_owned()),
            Self::AlreadyThere { name, .. } => Some(format!(
                "`infra job submit --replace` removes it first, `infra job delete {name}` removes it alone; files stay"
            )),
            Self::NotReady => Some("nothing was changed; mend this and submit again".to_owned()),
            Self::Overtaken { .. } => {
                Some("`infra job submit` again: it comes back to the job that is there".to_owned())
            }
            Self::Data { name, .. } => Some(format!(
                "`infra job logs {name} --role data` shows all it said; mend it, then `infra job submit --replace`"
            )),
            Self::Results { help, .. } => help.clone(),
            Self::StillRunning { name, .. } => {
                Some(format!("`infra job submit` or `infra job logs -f {name}` comes back to it"))
            }
            Self::StillImporting { .. } => Some(
                "`infra job submit` comes back to it, and lets training begin when the data is there".to_owned(),
            ),
            Self::NotGone { .. } => Some(
                "the same command goes on; a pod of a lost machine goes with its node, or with `kubectl delete pod --force`"
                    .to_owned(),
            ),
            Self::Kube(error) => error.help(),
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::StillRunning { .. } | Self::StillImporting { .. } | Self::NotGone { .. } => {
                Outcome::StillRunning
            }
            _ => Outcome::Failed,
        }
    }
}

impl MayPass for JobError {
    fn is_passing(&self) -> bool {
        matches!(self, Self::Kube(error) if error.is_passing())
    }
}
