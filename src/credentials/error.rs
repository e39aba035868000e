//! Why credentials could not be read or created.

use std::path::PathBuf;

use time::{Date, OffsetDateTime};

use super::{KEYS_IN_USE_FILE, RotatedKey};
use crate::confined_directory::ConfinedError;
use crate::durable_file::WriteError;
use crate::outcome::{Explain, Outcome};

/// What stopped the work; everything done before it is complete and stays.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The directory or a file in it could not be used.
    #[error("cannot {doing} {}: {reason}", path.display())]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        reason: std::io::Error,
    },
    /// The directory or a file in it is a link.
    #[error(transparent)]
    Confined(#[from] ConfinedError),
    /// The directory or a file in it belongs to another user.
    #[error("{} belongs to another user (uid {owner}), not to you (uid {user})", path.display())]
    ForeignOwner {
        /// The directory or the file.
        path: PathBuf,
        /// The owner.
        owner: u32,
        /// The user who runs the command.
        user: u32,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// There is no certificate authority, and no flag says where it comes from.
    #[error("there is no certificate authority: {} does not exist", path.display())]
    NoAuthority {
        /// Where it would be.
        path: PathBuf,
    },
    /// An authority on disk cannot be used, and is not overwritten.
    #[error("the certificate authority '{name}' on disk cannot be used: {reason}")]
    BrokenAuthority {
        /// The name of the file.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An authority must sign something, but its key is elsewhere.
    #[error("{leaf} must be signed again, but the key of its authority, {}, is not here", key.display())]
    NoAuthorityKey {
        /// Where the key would be.
        key: PathBuf,
        /// What it must sign.
        leaf: String,
    },
    /// What the team provides is not a usable authority.
    #[error("{} cannot be the cluster's authority: {reason}", path.display())]
    UnfitAuthority {
        /// The file that the team provides.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another authority exists already.
    #[error("there is another certificate authority in {} already, valid until {until}", path.display())]
    OtherAuthority {
        /// The authority that exists.
        path: PathBuf,
        /// When it ends.
        until: Date,
    },
    /// A file that is created once and kept is not valid.
    #[error("{} {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A key that is in use does not exist.
    #[error("{} does not exist, but {KEYS_IN_USE_FILE} says that it is in use", path.display())]
    MissingKey {
        /// Where it would be.
        path: PathBuf,
    },
    /// The file that says which keys are in use has an unknown line.
    #[error("{} has an unknown line: '{line}'", path.display())]
    UnreadableKeysInUse {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// A rotation cannot begin before the last one has ended.
    #[error("the last rotation of {key} has not ended: its previous key is still accepted")]
    PreviousKeyInUse {
        /// The key.
        key: RotatedKey,
    },
    /// There is no previous key that could be dropped.
    #[error("{key} has no previous key")]
    NoPreviousKey {
        /// The key.
        key: RotatedKey,
        /// Whether step 1 of a rotation has been taken.
        is_announced: bool,
    },
    /// The crypto library refused.
    #[error("cannot make {what}: {reason}")]
    Crypto {
        /// What was to be created.
        what: String,
        /// What the library said.
        reason: String,
    },
}

impl Explain for CredentialsError {
    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Confined(error) => return error.help(),
            Self::ForeignOwner { .. } => {
                "the owner can replace keys: run infra as that user, or check every file in it and make them your own with `chown`"
            }
            Self::NoAuthority { .. } => {
                "`infra render credentials --generate-ca` makes one; \
                 `--ca-cert-path FILE --ca-key-path FILE` imports your own"
            }
            Self::BrokenAuthority { .. } => {
                "restore its files from a backup; `--replace-ca` makes a new one, which every machine of a running cluster \
                 would refuse"
            }
            Self::NoAuthorityKey { .. } => "put the key back for this run, then remove it again",
            Self::OtherAuthority { .. } => {
                "leave out the flag to keep it, or add `--replace-ca`: a running cluster does not survive that"
            }
            Self::Unusable { .. } => {
                "restore it from a backup; if there is no cluster yet that uses it, remove it and run again"
            }
            Self::MissingKey { .. } => {
                "restore it from a backup: what it encrypted or signed is lost without it"
            }
            Self::UnreadableKeysInUse { .. } => {
                "a line is `service-account: current 2, previous 1`; restore the file from a backup"
            }
            Self::PreviousKeyInUse { key } => {
                return Some(format!(
                    "`infra render credentials --retire {key}`, then `infra up`, ends it; then begin the next one"
                ));
            }
            Self::NoPreviousKey { key, is_announced: true } => {
                return Some(format!(
                    "only step 1 of its rotation is done: `infra up`, then `infra render credentials --rotate {key}` takes step 2"
                ));
            }
            Self::NoPreviousKey { key, is_announced: false } => {
                return Some(format!("`infra render credentials --rotate {key}` begins a rotation"));
            }
            Self::Disk { .. } | Self::Write(_) | Self::UnfitAuthority { .. } | Self::Crypto { .. } => {
                return None;
            }
        };
        Some(text.to_owned())
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Confined(error) => error.outcome(),
            _ => Outcome::Failed,
        }
    }
}

impl CredentialsError {
    pub(super) fn crypto(what: &str) -> impl FnOnce(rcgen::Error) -> Self {
        move |error| Self::Crypto { what: what.to_owned(), reason: error.to_string() }
    }
}

/// The day a moment falls on, for messages.
pub(super) fn expiry_day(moment: OffsetDateTime) -> Date {
    moment.date()
}
