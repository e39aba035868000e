//! Which cluster is destroyed, and what is known of it: from cluster.yaml, or, when that is lost, from the live stacks.

use crate::aws::{AwsError, Clients, Stack};
use crate::blueprint::StackPart;
use crate::config::values::{ClusterName, S3Uri};
use crate::config::{Cluster, FileSystemSource};
use crate::deploy::state::live::LiveCluster;
use crate::well_known::{
    CLUSTER_TAG, CONTROLLER_CLUSTER_TAG, S3_URI_TAG, STACK_NAME_TAG, kubernetes_cluster_tag,
};

/// A cluster that is to be destroyed.
#[derive(Clone, Debug)]
pub(crate) struct DestroyTarget {
    /// The name of the cluster.
    pub name: ClusterName,
    /// The region of the cluster.
    pub region: String,
    /// The description of the cluster, unless cluster.yaml is lost.
    pub cluster: Option<Cluster>,
    /// Where the assets are: the user and the network stack may name two different S3 URIs.
    pub s3_uris: Vec<S3Uri>,
    /// The public DNS name of the cluster.
    pub external_dns_name: Option<String>,
    /// The id of the public hosted zone, if cluster.yaml names it.
    pub hosted_zone: Option<String>,
    /// Whether infra manages the public record.
    pub manages_record: bool,
    /// The KMS key that may have a grant.
    pub kms_key: Option<String>,
}

impl DestroyTarget {
    /// Collects what is known. `s3_uri` is what the user says. Data may outlive the network stack, which has a tag with its S3 URI; a
    /// deleted stack still has it.
    pub(crate) async fn read(
        clients: &Clients,
        name: ClusterName,
        cluster: Option<Cluster>,
        s3_uri: Option<S3Uri>,
        live: &LiveCluster,
    ) -> Result<Self, AwsError> {
        let region = clients.region().unwrap_or_default().to_owned();
        let mut target = Self::new(name, region, cluster, s3_uri, live);
        if target.s3_uris.is_empty() && !live.stacks.contains_key(&StackPart::Network) {
            let deleted = target.deleted_stacks(clients, &StackPart::Network).await?;
            let newest = deleted.first().and_then(|stack| stack.tags.get(S3_URI_TAG)?.parse().ok());
            target.s3_uris.extend(newest);
        }
        Ok(target)
    }

    /// The cluster's stacks of a part that were deleted in the last months, the newest first. Another cluster may have had one of the same name.
    pub(crate) async fn deleted_stacks(
        &self,
        clients: &Clients,
        part: &StackPart,
    ) -> Result<Vec<Stack>, AwsError> {
        let mut found = Vec::new();
        for arn in clients.deleted_stacks(&part.stack_name(&self.name)).await? {
            let stack = clients.stack(&arn).await?;
            let is_ours =
                |stack: &Stack| stack.tags.get(CLUSTER_TAG).is_some_and(|name| name == self.name.as_str());
            found.extend(stack.filter(is_ours));
        }
        Ok(found)
    }

    fn new(
        name: ClusterName,
        region: String,
        cluster: Option<Cluster>,
        s3_uri: Option<S3Uri>,
        live: &LiveCluster,
    ) -> Self {
        let fact = |key: &str| {
            let network = live.stacks.get(&StackPart::Network)?;
            network.template()["Metadata"]["Infra"][key].as_str().map(str::to_owned)
        };
        let of_file = cluster.as_ref();
        let tagged = live.tag(&StackPart::Network, S3_URI_TAG).and_then(|text| text.parse().ok());
        let tagged = tagged.filter(|tagged| s3_uri.as_ref() != Some(tagged));
        let mut s3_uris: Vec<S3Uri> = s3_uri.into_iter().chain(tagged).collect();
        if s3_uris.is_empty() {
            s3_uris.extend(of_file.and_then(|cluster| cluster.s3_uri.clone()));
        }
        Self {
            s3_uris,
            external_dns_name: of_file
                .map(|cluster| cluster.external_dns_name.to_string())
                .or_else(|| fact("externalDNSName")),
            hosted_zone: of_file
                .and_then(|cluster| cluster.dns.hosted_zone.as_ref().map(ToString::to_string)),
            manages_record: of_file.is_none_or(|cluster| cluster.dns.manage),
            kms_key: of_file.map(|cluster| cluster.kms_key.to_string()).or_else(|| fact("kmsKeyArn")),
            name,
            region,
            cluster,
        }
    }

    /// The tag that stacks put on everything of this cluster.
    #[must_use]
    pub(crate) fn tag(&self) -> (&'static str, &str) {
        (CLUSTER_TAG, self.name.as_str())
    }

    /// The tag that Kubernetes puts on what it creates for this cluster.
    #[must_use]
    pub(crate) fn kubernetes_tag(&self) -> String {
        kubernetes_cluster_tag(&self.name)
    }

    /// The file system that cluster.yaml adopts.
    #[must_use]
    pub(crate) fn adopted_file_system(&self) -> Option<&str> {
        match &self.cluster.as_ref()?.file_system.as_ref()?.source {
            FileSystemSource::Adopted { id, .. } => Some(id.as_str()),
            FileSystemSource::Created { .. } => None,
        }
    }

    /// The line of cluster.yaml that adopts a file system which this cluster leaves. Its mount targets were deleted with the cluster, or
    /// will be with the next one.
    #[must_use]
    pub(crate) fn adoption_line(&self, id: &str) -> String {
        let system = self.cluster.as_ref().and_then(|cluster| cluster.file_system.as_ref());
        let path = system.map(|system| format!(", mountPath: {}", system.mount_path)).unwrap_or_default();
        let creates_mount_targets = match system.map(|system| &system.source) {
            Some(FileSystemSource::Adopted { create_mount_targets, .. }) => *create_mount_targets,
            _ => true,
        };
        let create = if creates_mount_targets { ", createMountTargets: true" } else { "" };
        format!("storage: {{efs: {{fileSystemId: {id}{path}{create}}}}}")
    }

    /// Whether tags say that a stack of this cluster created a resource, and deletes it: also a stack that was created after stacks were
    /// listed.
    #[must_use]
    pub(crate) fn is_of_stack(&self, tags: &std::collections::BTreeMap<String, String>) -> bool {
        tags.contains_key(STACK_NAME_TAG)
            && tags.get(CLUSTER_TAG).is_some_and(|name| name == self.name.as_str())
    }

    /// Whether tags say that Kubernetes created a resource for this cluster.
    #[must_use]
    pub(crate) fn is_of_cluster(&self, tags: &std::collections::BTreeMap<String, String>) -> bool {
        // `shared` is on foreign resources that the cluster may use.
        tags.get(&self.kubernetes_tag()).is_some_and(|value| value == "owned")
            || tags.get(CONTROLLER_CLUSTER_TAG).is_some_and(|name| name == self.name.as_str())
            || tags.get(CLUSTER_TAG).is_some_and(|name| name == self.name.as_str())
    }
}
