//! Which claim a command is about, and paths on it.

use clap::Args;

use crate::cli::claim::ClaimAccess;
use crate::cli::job::{job_namespace, random_mark, scripts_of};
use crate::cli::session::Session;
use crate::cli::target_cluster::{KnownCluster, TargetCluster};
use crate::job::data::RemotePath;
use crate::job::{CLUSTER_CLAIM, Scripts};

/// Which claim, and the image of the pod that mounts it.
#[derive(Args, Debug)]
pub(super) struct ClaimOptions {
    /// The namespace whose claim is meant; by default that of job.yaml, of the kubeconfig, or default
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The claim
    #[arg(long, value_name = "NAME", default_value = CLUSTER_CLAIM)]
    claim: String,
    /// The image of the pod that mounts the claim, if the usual one cannot be pulled; it needs python3
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

/// The claim that a command is about, and what a pod that mounts it needs.
pub(super) struct DataCluster<'a> {
    cluster: TargetCluster,
    namespace: String,
    options: &'a ClaimOptions,
    scripts: Scripts,
    mark: String,
}

impl<'a> DataCluster<'a> {
    pub(super) fn connect(options: &'a ClaimOptions, session: &Session) -> anyhow::Result<Self> {
        let namespace = options.namespace.clone().map_or_else(|| job_namespace(session), Ok)?;
        let cluster = TargetCluster::find(session)?;
        Ok(Self { cluster, namespace, options, scripts: scripts_of(session)?, mark: random_mark()? })
    }

    /// What is known of the cluster.
    pub(super) async fn read_facts(&self) -> anyhow::Result<KnownCluster<'_>> {
        self.cluster.read_facts().await
    }

    /// The claim.
    pub(super) fn claim<'b>(&'b self, known: &'b KnownCluster<'_>) -> ClaimAccess<'b> {
        let parts = (&self.cluster.api, known.facts(), &self.scripts);
        let ClaimOptions { claim, image, .. } = self.options;
        ClaimAccess::new(parts, &self.namespace, claim, image.clone(), self.mark.clone())
    }
}

/// A path on the claim, as an argument.
pub(super) fn parse_remote(text: &str) -> Result<RemotePath, String> {
    text.parse()
}

/// A path on the claim that is changed, as an argument.
pub(super) fn parse_writable_remote(text: &str) -> Result<RemotePath, String> {
    let path: RemotePath = text.parse()?;
    if path.is_of_records() {
        return Err("directories named .infra hold records of infra itself".to_owned());
    }
    Ok(path)
}
