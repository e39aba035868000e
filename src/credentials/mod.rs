//! The blueprint's identities into keys and certificates on disk.
//!
//! In: which identities must exist, the directory they live in, and the time. Out: a complete directory, and what was done
//! to each file. What is valid is kept byte for byte; only what is missing, expired or no longer fits is created again. Keys that a running
//! cluster can change are numbered.

mod authority;
mod certificate;
mod client_certificate;
mod ensure;
mod error;
mod fitness;
mod imported_authority;
mod inventory;
mod issuing;
mod key_set;
mod keys_in_use;
mod leaf;
mod loaded;
mod rotation;
mod secret_text;
mod store;

pub use client_certificate::{ClientCertificate, issue_client_certificate};
pub use ensure::{Action, AuthoritySource, Ensured, Request, ensure_credentials};
pub use error::CredentialsError;
pub use imported_authority::ImportedAuthority;
pub use inventory::{CertificateFacts, FEWEST_DAYS_LEFT, InventoryEntry, days_until, list_certificates};
pub use key_set::{KEYS_IN_USE_FILE, KeySet, RotatedKey, Stage};
pub use keys_in_use::KeysInUse;
pub use loaded::Credentials;
pub use rotation::{RotationRequest, rotate_keys};
pub use secret_text::SecretText;
pub use store::CredentialStore;
