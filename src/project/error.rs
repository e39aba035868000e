//! Why a project cannot be read, rendered or written.

use std::io;
use std::path::{Path, PathBuf};

use crate::check::Findings;
use crate::config::values::PoolName;
use crate::confined_directory::ConfinedError;
use crate::credentials::CredentialsError;
use crate::document::{Fault, LoadError, Problems, ReadError};
use crate::durable_file::WriteError;
use crate::outcome::{Explain, Outcome};
use crate::render::RenderError;

/// What stopped the work. An error of a layer below keeps its own text and help.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProjectError {
    #[error(transparent)]
    Cluster(#[from] LoadError),
    #[error(transparent)]
    Blueprint(#[from] Fault),
    #[error(transparent)]
    Confined(#[from] ConfinedError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error(transparent)]
    Refused(#[from] Findings),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Invalid(#[from] Problems),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot {doing} {}: {reason}", path.display())]
    Disk { doing: &'static str, path: PathBuf, reason: io::Error },
    #[error("there is no directory {}", path.display())]
    NoTemplates { path: PathBuf },
    #[error("{} is in {reserved}/ of the cluster's directory, which infra reads or writes itself", path.display())]
    Reserved { path: PathBuf, reserved: &'static str },
    #[error("manifests/extra/{name} is not a .yaml file")]
    NotAManifest { name: String },
    #[error("cluster.yaml has no pool '{name}'")]
    UnknownPool { name: PoolName, known: Vec<String> },
    #[error("there are no credentials in {}", directory.display())]
    NoCredentials { directory: PathBuf },
    #[error("{file} is not among the credentials")]
    MissingCredential { file: &'static str },
    #[error("cannot merge into {}: {reason}", path.display())]
    Kubeconfig { path: PathBuf, reason: RenderError },
}

impl ProjectError {
    pub(super) fn disk(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |reason| Self::Disk { doing, path, reason }
    }

    /// What is wrong with a file, if that is the error.
    pub(crate) fn problems(&self) -> Option<&Problems> {
        match self {
            Self::Cluster(LoadError::Invalid(problems)) | Self::Invalid(problems) => Some(problems),
            _ => None,
        }
    }
}

impl Explain for ProjectError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Cluster(error) => error.help(),
            Self::Confined(error) => error.help(),
            Self::Credentials(error) => error.help(),
            Self::Render(error) => error.help(),
            Self::Reserved { .. } => {
                Some("`--to DIR` names another directory; without it results go to results/NAME".to_owned())
            }
            Self::UnknownPool { known, .. } if known.is_empty() => Some("it has no pools".to_owned()),
            Self::UnknownPool { known, .. } => Some(format!("it has {}", known.join(", "))),
            Self::NoCredentials { .. } => {
                Some("run `infra render credentials --generate-ca` to create them".to_owned())
            }
            Self::MissingCredential { .. } => {
                Some("run `infra render credentials` to create what is missing".to_owned())
            }
            _ => None,
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Cluster(error) => error.outcome(),
            Self::Confined(error) => error.outcome(),
            Self::Credentials(error) => error.outcome(),
            Self::Render(error) => error.outcome(),
            Self::Refused(error) => error.outcome(),
            Self::Read(error) => error.outcome(),
            Self::Invalid(error) => error.outcome(),
            Self::NoTemplates { .. }
            | Self::NotAManifest { .. }
            | Self::Reserved { .. }
            | Self::UnknownPool { .. }
            | Self::Kubeconfig { .. } => Outcome::Invalid,
            Self::Blueprint(_)
            | Self::Write(_)
            | Self::Disk { .. }
            | Self::NoCredentials { .. }
            | Self::MissingCredential { .. } => Outcome::Failed,
        }
    }
}
