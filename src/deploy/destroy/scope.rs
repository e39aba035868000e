//! The scope of one `destroy`: the cluster, what was found of it, and how much the user lets it delete.

use super::found::FoundResources;
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients};
use crate::config::Cluster;
use crate::config::values::{ClusterName, S3Uri};
use crate::deploy::state::live::LiveCluster;

/// How much a destroy may delete.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DestroyOptions {
    /// Whether files and snapshots are deleted too.
    pub delete_data: bool,
    /// Whether foreign mount targets in the cluster's subnets are deleted.
    pub delete_foreign_mount_targets: bool,
}

/// A cluster that is to be destroyed, as it was found before anything was deleted.
#[derive(Clone, Debug)]
pub(crate) struct DestroyScope {
    /// The cluster.
    pub target: DestroyTarget,
    /// What was found of the cluster.
    pub found: FoundResources,
    /// How much may be deleted.
    pub options: DestroyOptions,
}

impl DestroyScope {
    /// Reads everything of a cluster; changes nothing. `s3_uri` is what the user says.
    pub(crate) async fn read(
        clients: &Clients,
        name: ClusterName,
        cluster: Option<Cluster>,
        s3_uri: Option<S3Uri>,
        options: DestroyOptions,
    ) -> Result<Self, AwsError> {
        let live = LiveCluster::read(clients, &name, cluster.as_ref()).await?;
        let target = DestroyTarget::read(clients, name, cluster, s3_uri, &live).await?;
        let found = Box::pin(FoundResources::read(clients, &target, live)).await?;
        Ok(Self { target, found, options })
    }

    /// Reads again what there is of the cluster now.
    pub(crate) async fn read_again(&self, clients: &Clients) -> Result<FoundResources, AwsError> {
        let live = LiveCluster::read(clients, &self.target.name, self.target.cluster.as_ref()).await?;
        Box::pin(FoundResources::read(clients, &self.target, live)).await
    }
}
