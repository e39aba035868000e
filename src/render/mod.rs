//! Decided facts and credentials into the files that leave the program; pure: same input, same bytes.
//!
//! In: a blueprint, credentials and templates, or the answers to `infra init`. Out: files and assets. Nothing is written to disk here,
//! and no clock, environment or network is used.

mod asset;
mod assets;
mod boot_object;
mod boot_script;
mod cluster_assets;
mod cluster_file;
mod engine;
mod ignition;
mod kubeconfig;
mod manifest;
mod mount_unit;
mod node;
mod node_archive;
mod node_description;
mod secret_document;
mod stack;
mod template;
mod user_data;
mod values;

pub use asset::Asset;
pub use assets::{Assets, BootConfig, BootForm, Manifest, StackTemplate};
pub use boot_object::{BootObject, boot_objects};
pub use cluster_assets::{AssetSources, render_assets};
pub use cluster_file::{ClusterAnswers, GpuPool, render_cluster_file, render_gitignore};
pub use engine::{RenderError, Templates};
pub use kubeconfig::{ApiEndpoint, KubeconfigSource, MergedKubeconfig, merge_kubeconfig, render_kubeconfig};
pub use secret_document::{SecretConfig, SecretDocument};
pub use template::Template;
pub use user_data::{LARGEST_USER_DATA, UserData};
