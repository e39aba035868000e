//! Why something about people failed.

use super::secret::SecretUse;
use crate::kube::KubeError;
use crate::outcome::{Explain, Outcome};

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
            Self::Contended { .. } => Some("run the same command again".to_owned()),
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Kube(error) => error.outcome(),
            _ => Outcome::Failed,
        }
    }
}
