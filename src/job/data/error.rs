//! What can go wrong with files on their way.

use std::io;
use std::path::{Path, PathBuf};

use super::size_words::bytes_in_words;
use crate::confined_directory::ConfinedError;
use crate::kube::{KubeError, MayPass};
use crate::outcome::{Explain, Outcome};
use crate::plural::count_of;

/// Why files were not moved. What was moved before stays, and the same command continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataError {
    /// A request to the API failed, or the connection broke.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// The pod that mounts the claim is of no use.
    #[error("the pod that reads and writes the claim cannot be used: {reason}")]
    Pod {
        /// Why the pod is of no use.
        reason: String,
        /// What to do next.
        help: Option<String>,
    },
    /// There is no such claim, or it has no volume.
    #[error("{reason}")]
    Claim {
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing has this name on the claim.
    #[error("there is no {path} on the claim {claim}")]
    Missing {
        /// The path.
        path: String,
        /// The claim.
        claim: String,
    },
    /// The program in the pod refused, or the file system there did.
    #[error("on the claim: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
    /// Code on the claim is no longer what its name says.
    #[error("{path} on the claim was changed by someone: it is not the code that its name stands for")]
    ChangedCode {
        /// The directory.
        path: String,
    },
    /// What the job file names in S3 cannot be the data of a job.
    #[error("{reason}")]
    Source {
        /// What is wrong with it.
        reason: String,
        /// What to do next.
        help: String,
    },
    /// Objects must be fetched, but a detached command cannot sign their links.
    #[error("--detach is refused while data is missing on the claim: {} of {uri}, {}", count_of(*files, "file"), bytes_in_words(*bytes))]
    NotFetched {
        /// Where they come from.
        uri: String,
        /// How many.
        files: u64,
        /// Their size in bytes, without what has arrived.
        bytes: u64,
    },
    /// A file of this machine cannot be used.
    #[error("cannot {doing} {}: {reason}", path.display())]
    Local {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
    /// The user named something here that cannot be moved.
    #[error("{reason}")]
    Argument {
        /// What is wrong with it.
        reason: String,
        /// What to do next.
        help: &'static str,
    },
    /// A path would leave the directory here.
    #[error(transparent)]
    Confined(#[from] ConfinedError),
    /// What arrived is not what was sent, twice.
    #[error("{path} arrived damaged twice, or is replaced again and again while it is read")]
    Damaged {
        /// The file.
        path: String,
    },
}

impl DataError {
    /// The operating system's refusal of something here.
    pub(crate) fn local(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |reason| Self::Local { doing, path: path.clone(), reason }
    }
}

impl MayPass for DataError {
    /// Whether the connection broke, so that opening it again may help.
    fn is_passing(&self) -> bool {
        matches!(self, Self::Kube(error) if error.is_passing())
    }
}

impl Explain for DataError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Kube(error) if error.is_passing() => {
                Some("run the same command again: it continues with what is missing".to_owned())
            }
            Self::Kube(error) => error.help(),
            Self::Pod { help, .. } => help.clone(),
            Self::Claim { .. } => Some(
                "`infra job submit` creates the claim of its namespace; `--claim NAME` names another one"
                    .to_owned(),
            ),
            Self::Missing { .. } => Some("`infra data ls` shows what is there".to_owned()),
            Self::ChangedCode { path } => Some(format!(
                "when no run uses it, delete it with `infra data rm {path}`, then submit again: it is uploaded again"
            )),
            Self::Argument { help, .. } => Some((*help).to_owned()),
            Self::Source { help, .. } => Some(help.clone()),
            Self::NotFetched { .. } => Some(
                "this command signs the links by which they are fetched: run it without --detach, and press Ctrl-C when training runs"
                    .to_owned(),
            ),
            Self::Confined(error) => error.help(),
            Self::Refused { .. } | Self::Local { .. } | Self::Damaged { .. } => None,
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Argument { .. } => Outcome::Invalid,
            Self::Confined(error) => error.outcome(),
            Self::Kube(error) if error.is_passing() => Outcome::StillRunning,
            _ => Outcome::Failed,
        }
    }
}
