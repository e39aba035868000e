//! Why a kubeconfig cannot be used.

use std::path::PathBuf;

use crate::document::{Problems, ReadError};
use crate::outcome::{Explain, Outcome};

/// What is wrong with a kubeconfig, without any key or token of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KubeconfigError {
    /// A file could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// A file is not YAML.
    #[error(transparent)]
    Syntax(#[from] Problems),
    /// A file has another shape.
    #[error("{} is not a kubeconfig: {reason}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// None of the files exists.
    #[error("KUBECONFIG names no file that exists: {}", join_kubeconfig_paths(files))]
    NoFile {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// No context is the current one.
    #[error("the kubeconfig has no current context")]
    NoCurrentContext {
        /// The contexts there are.
        known: Vec<String>,
    },
    /// There is no such context.
    #[error("the kubeconfig has no context '{name}'")]
    NoContext {
        /// The context.
        name: String,
        /// The contexts there are.
        known: Vec<String>,
    },
    /// A context names what is not there.
    #[error("the context '{context}' names the {kind} '{name}', which the kubeconfig does not have")]
    Dangling {
        /// The context.
        context: String,
        /// A cluster or a user.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The URL of a server cannot be used.
    #[error("the server of cluster '{cluster}' is '{url}': {why}")]
    Server {
        /// The cluster.
        cluster: String,
        /// The URL.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A cluster has no certificate authority.
    #[error("the cluster '{cluster}' of the kubeconfig has no certificate-authority-data")]
    NoAuthority {
        /// The cluster.
        cluster: String,
    },
    /// A user has neither a certificate nor a token.
    #[error("the user '{user}' of the kubeconfig has neither a client certificate nor a token")]
    NoCredentials {
        /// The user.
        user: String,
    },
    /// A user has one half of a certificate and its key.
    #[error("the user '{user}' of the kubeconfig has no {missing}")]
    HalfCertificate {
        /// The user.
        user: String,
        /// What is missing.
        missing: &'static str,
    },
    /// A value cannot be decoded.
    #[error("{field} of {entry} is not base64")]
    Encoding {
        /// The cluster or user.
        entry: String,
        /// The field.
        field: String,
    },
    /// A file that the kubeconfig names cannot be read.
    #[error("{field} of {entry}: {reason}")]
    File {
        /// The cluster or user.
        entry: String,
        /// The field.
        field: String,
        /// Why the file cannot be read.
        reason: ReadError,
    },
    /// A field is not honoured.
    #[error("the {entry} of the kubeconfig has {field}: {why}")]
    Unsupported {
        /// The cluster or user.
        entry: String,
        /// The field.
        field: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// A user logs in by another program.
    #[error("the user '{user}' of the kubeconfig logs in with the {what} '{name}', which infra does not run")]
    Plugin {
        /// The user.
        user: String,
        /// Which kind of plug-in.
        what: &'static str,
        /// The program, or the provider.
        name: String,
    },
}

fn join_kubeconfig_paths(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl Explain for KubeconfigError {
    fn help(&self) -> Option<String> {
        match self {
            Self::NoCurrentContext { known } | Self::NoContext { known, .. } if known.is_empty() => {
                Some("it has none at all; ask the administrator for another".to_owned())
            }
            Self::NoCurrentContext { known } | Self::NoContext { known, .. } => {
                Some(format!("`--context NAME` names one; there are {}", known.join(", ")))
            }
            Self::Plugin { .. } | Self::NoCredentials { .. } => Some(
                "use one with a client certificate or a token, such as `infra user add` writes".to_owned(),
            ),
            Self::NoAuthority { .. } => Some(
                "without it nobody can tell whether the server is the right one; ask the administrator for another kubeconfig"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    fn outcome(&self) -> Outcome {
        Outcome::Invalid
    }
}
