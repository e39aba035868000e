//! Why something about people failed.

use super::secret_use::SecretUse;
use crate::job::CLUSTER_CLAIM;
use crate::job::life::JobError;
use crate::kube::KubeError;
use crate::outcome::{Explain, Outcome};
use crate::well_known::TEAM_LABEL;

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeopleError {
    /// The API failed.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// The namespace does not exist.
    #[error("there is no namespace '{namespace}'")]
    NoNamespace {
        /// The namespace.
        namespace: String,
    },
    /// The Secret belongs to someone else.
    #[error("the Secret '{name}' in namespace {namespace} was not created by infra")]
    ForeignSecret {
        /// The Secret.
        name: String,
        /// The namespace of the Secret.
        namespace: String,
    },
    /// The Secret is for something else.
    #[error("the secret '{name}' in namespace {namespace} {}", is_for(*found))]
    OtherUse {
        /// The Secret.
        name: String,
        /// The namespace of the Secret.
        namespace: String,
        /// What it is for.
        found: SecretUse,
    },
    /// The namespace is no team's.
    #[error("the namespace '{namespace}' exists, and is no team's")]
    ForeignNamespace {
        /// The namespace.
        namespace: String,
    },
    /// There is no such team.
    #[error("there is no team '{team}'")]
    NoTeam {
        /// The team.
        team: String,
    },
    /// The namespace is being deleted.
    #[error("the namespace '{team}' is being deleted")]
    Leaving {
        /// The team.
        team: String,
    },
    /// There is a volume of that name for another directory.
    #[error("the volume {volume} of namespace {team} is for the directory {path} of the file system")]
    OtherVolume {
        /// The volume.
        volume: String,
        /// The directory.
        path: String,
        /// The team.
        team: String,
    },
    /// The claim of a team is not bound.
    #[error("the claim of team '{team}' is not bound yet")]
    NotBound {
        /// The team.
        team: String,
    },
    /// A directory could not be created or read.
    #[error("the directory {path} of the file system: {reason}")]
    Directory {
        /// The directory.
        path: String,
        /// Why the directory could not be created or read.
        reason: String,
    },
    /// The jobs of the cluster could not be read.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The user interrupted a wait.
    #[error("interrupted; the same command continues")]
    Interrupted,
    /// Someone else changed the Secret each time.
    #[error("the secret '{name}' in namespace {namespace} was changed by another process at the same time")]
    Contended {
        /// The Secret.
        name: String,
        /// The namespace of the Secret.
        namespace: String,
    },
}

fn is_for(found: SecretUse) -> &'static str {
    match found {
        SecretUse::Variables => "holds variables, not the login to a registry",
        SecretUse::Registry => "is the login to a registry, and holds no variables",
    }
}

impl Explain for PeopleError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Kube(error) => error.help(),
            Self::NoNamespace { .. } => {
                Some("name an existing one with `--namespace`; its name is case-sensitive".to_owned())
            }
            Self::ForeignSecret { .. } => {
                Some("choose another name; infra changes and deletes only Secrets that it created".to_owned())
            }
            Self::OtherUse { name, .. } => {
                Some(format!("choose another name, or run `infra secret delete {name}` first"))
            }
            Self::ForeignNamespace { namespace } => Some(format!(
                "choose another name; if nobody else uses it, `kubectl label namespace {namespace} {TEAM_LABEL}={namespace}` hands it over"
            )),
            Self::NoTeam { team } => Some(format!("`infra team list` shows all; `infra team add {team}` creates it")),
            Self::Leaving { .. } => {
                Some("run the same command again in a while; pods of a lost machine take minutes".to_owned())
            }
            Self::OtherVolume { volume, team, .. } => Some(format!(
                "a job of the administrator created it: delete the jobs of that namespace, then `kubectl -n {team} delete pvc {CLUSTER_CLAIM}` \
                 and `kubectl delete pv {volume}`; the files stay"
            )),
            Self::Directory { .. } => Some(
                "it is created by a pod in the namespace default, which needs a node that is Ready; run the same command again".to_owned(),
            ),
            Self::Job(error) => error.help(),
            Self::Interrupted => None,
            Self::Contended { .. } | Self::NotBound { .. } => Some("run the same command again".to_owned()),
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Kube(error) => error.outcome(),
            Self::Job(error) => error.outcome(),
            Self::Interrupted => Outcome::Interrupted,
            Self::Leaving { .. } | Self::NotBound { .. } => Outcome::StillRunning,
            _ => Outcome::Failed,
        }
    }
}
