//! The options of commands that work on the cluster of a kubeconfig, too.

use std::path::PathBuf;

use clap::Args;

/// Which cluster.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster options")]
pub(super) struct ClusterOptions {
    /// Use the cluster and user of this kubeconfig; by default those of the asset directory, or of $KUBECONFIG
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig instead of its current one
    #[arg(long, value_name = "NAME", global = true)]
    pub(super) context: Option<String>,
}
