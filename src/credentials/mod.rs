//! The blueprint's identities into keys and certificates on disk.
//!
//! In: which identities must exist, the directory they live in, and the time. Out: a complete directory, and what was done
//! to each file. What is valid is kept byte for byte; only what is missing, expired or no longer fits is created again.

mod authority;
mod bring;
mod certificate;
mod ensure;
mod error;
mod fitness;
mod inventory;
mod issuing;
mod leaf;
mod loaded;
mod secret_text;
mod store;

pub use bring::BroughtAuthority;
pub use ensure::{Action, AuthoritySource, Ensured, Request, ensure};
pub use error::CredentialsError;
pub use inventory::{CertificateFacts, FEWEST_DAYS_LEFT, InventoryEntry, list_certificates};
pub use loaded::Credentials;
pub use secret_text::SecretText;
pub use store::Store;
