//! Everything of a cluster that is in AWS now, and what else is in its network.

use super::created_keys::CreatedKey;
use super::deletion_command::is_backup;
use super::file_systems::FileSystem;
use super::network::{NetworkFindings, OwnNetwork};
use super::private_hosted_zone::PrivateHostedZone;
use super::public_record::PublicRecord;
use super::stack_contents::{ClusterVpc, StackContents};
use super::stored_objects::StoredObjects;
use super::target::DestroyTarget;
use crate::aws::{AwsError, Clients, Grant, Snapshot};
use crate::deploy::state::disk_grant::grant_name;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::public_name::load_balancer;

/// What was found of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct FoundResources {
    /// The stacks.
    pub live: LiveCluster,
    /// What the stacks hold.
    pub(crate) stacks: StackContents,
    /// The VPC.
    pub(crate) vpc: Option<ClusterVpc>,
    /// What is in the VPC and in no stack.
    pub(crate) network: NetworkFindings,
    /// The private hosted zone.
    pub(crate) private_hosted_zone: Option<PrivateHostedZone>,
    /// The record of the public name.
    pub(crate) public_record: Option<PublicRecord>,
    /// The objects below each S3 URI.
    pub(crate) stored: Vec<StoredObjects>,
    /// What outlives the stacks.
    pub(crate) data: DataFindings,
    /// The grant that lets Auto Scaling use the key for disks.
    pub(crate) grant: Option<Grant>,
    /// The KMS keys that `infra init` created.
    pub(crate) created_keys: Vec<CreatedKey>,
}

/// The data of a cluster besides its objects.
#[derive(Clone, Debug)]
pub(crate) struct DataFindings {
    /// The file system in use, and those that earlier clusters of the name left.
    pub(crate) file_systems: Vec<FileSystem>,
    /// ARNs of recovery points that AWS Backup made of file systems; its vault keeps them.
    pub(crate) backups: Vec<String>,
    /// Snapshots of etcd's volumes.
    pub(crate) snapshots: Vec<Snapshot>,
}

impl FoundResources {
    /// Reads everything; changes nothing.
    pub(crate) async fn read(
        clients: &Clients,
        target: &DestroyTarget,
        live: LiveCluster,
    ) -> Result<Self, AwsError> {
        let stacks = StackContents::read(clients, target, &live).await?;
        let vpc = ClusterVpc::find(&live, &stacks);
        let file_systems = FileSystem::read_all(clients, target, &live, &stacks, vpc.as_ref()).await?;
        let network = match &vpc {
            Some(vpc) => {
                let own = OwnNetwork { vpc, stacks: &stacks, file_systems: &file_systems };
                NetworkFindings::read(clients, target, own).await?
            }
            None => NetworkFindings::default(),
        };
        let mut stored = Vec::new();
        for s3_uri in &target.s3_uris {
            stored.push(StoredObjects::read(clients, target, s3_uri).await?);
        }
        let (key, value) = target.tag();
        let tagged = clients.tagged(key, value).await?;
        let created_keys = CreatedKey::read_all(clients, target, &tagged).await?;
        let backups = tagged.into_iter().filter(|arn| is_backup(arn)).collect();
        let snapshots = clients.snapshots_of(&stacks.volumes, target.tag()).await?;
        Ok(Self {
            private_hosted_zone: PrivateHostedZone::read(clients, &live).await?,
            public_record: PublicRecord::read(clients, target, load_balancer(&live.outputs()).as_slice())
                .await?,
            grant: find_grant(clients, target).await?,
            data: DataFindings { file_systems, backups, snapshots },
            created_keys,
            live,
            stacks,
            vpc,
            network,
            stored,
        })
    }

    /// The network of the cluster, if there is one.
    pub(crate) fn own_network(&self) -> Option<OwnNetwork<'_>> {
        let vpc = self.vpc.as_ref()?;
        Some(OwnNetwork { vpc, stacks: &self.stacks, file_systems: &self.data.file_systems })
    }
}

async fn find_grant(clients: &Clients, target: &DestroyTarget) -> Result<Option<Grant>, AwsError> {
    let Some(key) = &target.kms_key else { return Ok(None) };
    let name = grant_name(target.name.as_str());
    let is_expected = target.cluster.as_ref().is_some_and(|cluster| cluster.encrypt_disks_with_kms_key);
    let grants = match clients.grants(key).await {
        // A key that does not exist has no grant, and one that may not be read probably has none of ours.
        Err(error) if error.is_missing_key() => Vec::new(),
        Err(error) if error.is_denied() && !is_expected => Vec::new(),
        other => other?,
    };
    let mut of_name = grants.into_iter().filter(|grant| grant.name == name).peekable();
    if of_name.peek().is_none() {
        return Ok(None);
    }
    // Two accounts may share a key, and have clusters of the same name.
    let account = clients.caller_identity().await?.account;
    Ok(of_name.find(|grant| grant.grantee.split(':').nth(4) == Some(&account)))
}
