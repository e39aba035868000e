//! Decided facts and credentials into the texts that leave the program; pure: same input, same bytes.
//!
//! In: a blueprint and credentials, or the answers to `infra init`. Out: texts. Nothing is written to disk here, and no clock,
//! environment or network is looked at.

mod cluster_file;
mod engine;
mod kubeconfig;

pub use cluster_file::{ClusterAnswers, GpuPool, render_cluster_file, render_gitignore};
pub use engine::RenderError;
pub use kubeconfig::{KubeconfigSource, MergedKubeconfig, merge_kubeconfig, render_kubeconfig};
