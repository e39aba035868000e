//! Why a project cannot be read, rendered or written.

use std::io;
use std::path::{Path, PathBuf};

use crate::check::Findings;
use crate::credentials::CredentialsError;
use crate::document::{Fault, LoadError, Problems, ReadError};
use crate::durable_file::WriteError;
use crate::render::RenderError;

/// What stopped the work. An error of a layer below keeps its own text and help.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProjectError {
    #[error("{0}")]
    Cluster(#[from] LoadError),
    #[error("{0}")]
    Blueprint(#[from] Fault),
    #[error("{0}")]
    Credentials(#[from] CredentialsError),
    #[error("{0}")]
    Render(#[from] RenderError),
    #[error("{0}")]
    Refused(#[from] Findings),
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Invalid(#[from] Problems),
    #[error("{0}")]
    Write(#[from] WriteError),
    #[error("cannot {doing} {}: {reason}", path.display())]
    Disk { doing: &'static str, path: PathBuf, reason: io::Error },
    #[error("there is no directory {}", path.display())]
    NoTemplates { path: PathBuf },
    #[error("manifests/extra/{name} is not a .yaml file")]
    NotAManifest { name: String },
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

    /// What to do next.
    pub(crate) fn help(&self) -> Option<String> {
        match self {
            Self::NoCredentials { .. } => {
                Some("`infra render credentials --generate-ca` makes them".to_owned())
            }
            Self::MissingCredential { .. } => {
                Some("`infra render credentials` makes what is missing".to_owned())
            }
            _ => None,
        }
    }

    /// Whether a file or an argument of the user's is wrong.
    pub(crate) fn is_invalid_input(&self) -> bool {
        matches!(self, Self::NoTemplates { .. } | Self::NotAManifest { .. } | Self::Kubeconfig { .. })
    }
}
