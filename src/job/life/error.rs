//! What can go wrong with a job on the cluster.

use crate::kube::{KubeError, MayPass, ObjectName};
use crate::outcome::{Explain, Outcome};
use crate::waiting::WaitEnd;

/// What went wrong with a job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// A request to the API failed.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// The job does not exist.
    #[error("there is no job '{name}' in namespace {namespace}")]
    Missing {
        /// The name of the job.
        name: String,
        /// The address of the API.
        namespace: String,
    },
    /// The job was deleted while it was followed.
    #[error("job '{name}' was deleted by someone else")]
    Removed {
        /// The job.
        name: String,
    },
    /// A job of this name exists, and is only deleted if the user asks for it.
    #[error("{what} already exists: '{name}', {state}")]
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
    /// Another process changed the same object at the same time.
    #[error("{object} was created by another process at the same time: {reason}")]
    Overtaken {
        /// The object that was to be created.
        object: ObjectName,
        /// What the API said.
        reason: String,
    },
    /// The data of the job could not be imported.
    #[error("the data of job '{name}' could not be imported: {reason}")]
    Data {
        /// The job.
        name: String,
        /// Why the data could not be imported.
        reason: String,
    },
    /// What launchers left on the claim could not be read.
    #[error("what the attempts of job '{name}' left on the claim cannot be read: {reason}")]
    Records {
        /// The job.
        name: String,
        /// Why the attempts could not be read.
        reason: String,
    },
    /// Too few machines can be compared.
    #[error("{reason}")]
    CheckImpossible {
        /// Why the check is impossible.
        reason: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// A check of machines needs what users of teams may not do.
    #[error("{0}")]
    ForAdministrators(#[source] KubeError),
    /// An object of a name that infra needs belongs to someone else.
    #[error("there is a {object} in namespace {} that infra did not create", object.namespace)]
    Foreign {
        /// The object.
        object: ObjectName,
    },
    /// The job continues without the command.
    #[error("job '{name}' continues{}", time_is_up(*end))]
    StillRunning {
        /// The job.
        name: String,
        /// Whether the time was up or the user left.
        end: WaitEnd,
    },
    /// The import continues without the command, and nothing starts training after it.
    #[error("the import of job '{name}' continues{}, but training does not begin by itself", time_is_up(*end))]
    StillImporting {
        /// The job.
        name: String,
        /// Whether the time was up or the user left.
        end: WaitEnd,
    },
    /// The job was deleted, and its pods have not terminated.
    #[error("job '{name}' is not deleted yet: {} left", left.join(", "))]
    NotDeletedYet {
        /// The job.
        name: String,
        /// What is left.
        left: Vec<String>,
    },
}

fn time_is_up(end: WaitEnd) -> &'static str {
    match end {
        WaitEnd::TimedOut => ": the time limit for following it was reached",
        WaitEnd::Interrupted => "",
    }
}

impl JobError {
    /// Whether the user may not do this.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Kube(error) if error.is_forbidden())
    }
}

impl Explain for JobError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => Some("`infra job list` shows every job".to_owned()),
            Self::Removed { .. } => Some("its files stay; `infra job submit` starts it again".to_owned()),
            Self::AlreadyThere { name, .. } => Some(format!(
                "`infra job submit --replace` deletes it first, `infra job delete {name}` only deletes it; files stay"
            )),
            Self::NotReady => Some("nothing was changed; fix this and submit again".to_owned()),
            Self::Overtaken { .. } => {
                Some("run `infra job submit` again: it attaches to the job that exists".to_owned())
            }
            Self::Data { name, .. } => Some(format!(
                "`infra job logs {name} --role data` shows its whole log; fix the cause, then run `infra job submit --replace`"
            )),
            Self::Records { .. } => None,
            Self::CheckImpossible { advice, .. } => Some((*advice).to_owned()),
            Self::ForAdministrators(_) => Some(
                "the check is for the cluster's administrator: it reads the pods of all namespaces and runs on every free machine of a pool"
                    .to_owned(),
            ),
            Self::Foreign { .. } => Some("delete or rename it; the list of the job's runs has this name".to_owned()),
            Self::StillRunning { name, .. } => {
                Some(format!("`infra job submit` or `infra job logs -f {name}` follows it again"))
            }
            Self::StillImporting { .. } => Some(
                "run `infra job submit` again: it waits for the import, then starts training".to_owned(),
            ),
            Self::NotDeletedYet { .. } => Some(
                "run the same command again; a pod of a lost machine is deleted with its node, or by `kubectl delete pod --force`"
                    .to_owned(),
            ),
            Self::Kube(error) => error.help(),
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::StillRunning { .. } | Self::StillImporting { .. } | Self::NotDeletedYet { .. } => {
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
