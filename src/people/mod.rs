//! The people who use a cluster: their teams, their rights, their secrets, as objects of Kubernetes.
//!
//! In: names, values that the user typed, certificates, and the API server. Out: objects that carry our labels, and what is there. Objects
//! of others are never changed. It prints nothing, and no value of a secret is in an error.

mod error;
mod file_system;
mod names;
mod policy;
mod registry_login;
mod rights;
mod secret;
mod secret_use;
mod team;
mod user;

pub(crate) use error::PeopleError;
pub(crate) use file_system::DirectoryPods;
pub(crate) use names::{TeamName, UserName, team_directory, team_group};
pub(crate) use registry_login::{RegistryHost, RegistryLogin};
pub(crate) use secret::{
    SecretChange, SecretContent, SecretReport, delete_secret, find_secret, list_secrets, set_secret,
};
pub(crate) use team::{GpuLimit, TeamEvent, TeamPlace, TeamRemoval, TeamReport, add_team, list_teams};
pub(crate) use user::{UserReport, add_user, expect_team, find_user, list_users};
