//! The people who use a cluster: their secrets, as objects of Kubernetes.
//!
//! In: names, values that the user typed, and the API server. Out: objects that carry our labels, and what is there. Objects of others are
//! never changed. It prints nothing, and no value of a secret is in an error.

mod error;
mod registry_login;
mod secret;

pub(crate) use error::PeopleError;
pub(crate) use registry_login::{RegistryHost, RegistryLogin};
pub(crate) use secret::{
    SecretChange, SecretContent, SecretReport, SecretUse, delete_secret, find_secret, list_secrets, set_secret,
};
