//! Decided facts and credentials into the texts that leave the program; pure: same input, same bytes.
//!
//! In: a blueprint, credentials and templates, or the answers to `infra init`. Out: texts and assets. Nothing is written to disk here,
//! and no clock, environment or network is looked at.

mod asset;
mod cluster_file;
mod engine;
mod ignition;
mod kubeconfig;
mod manifest;
mod node;
mod stack;
mod stack_assets;
mod user_data;
mod values;

pub use asset::Asset;
pub use cluster_file::{ClusterAnswers, GpuPool, render_cluster_file, render_gitignore};
pub use engine::{RenderError, Templates};
pub use kubeconfig::{KubeconfigSource, MergedKubeconfig, merge_kubeconfig, render_kubeconfig};
pub use stack_assets::{StackSources, render_stack_assets};
pub use user_data::{UserData, object_key};
