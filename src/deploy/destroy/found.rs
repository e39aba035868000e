//! Everything of a cluster that is in AWS now, and what else stands in its network.

use std::collections::BTreeSet;

use super::file_systems::FileSystem;
use super::network::NetworkFindings;
use super::objects::StoredObjects;
use super::removal::is_backup;
use super::target::DestroyTarget;
use crate::aws::{AddressRecord, AwsError, Clients, Grant, ResourceStatus, Snapshot, ZoneRecord};
use crate::blueprint::StackPart;
use crate::deploy::state::disk_grant::grant_name;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::public_name::leads_to;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Its stacks.
    pub live: LiveCluster,
    /// Every resource of those stacks, by what AWS calls it.
    pub in_stacks: BTreeSet<String>,
    /// The VPC, and whether it goes with the cluster.
    pub vpc: Option<(String, bool)>,
    /// What stands in the VPC and is in no stack.
    pub network: NetworkFindings,
    /// The private zone's records that no stack will remove.
    pub private_zone: Option<(String, Vec<ZoneRecord>)>,
    /// The public record: its zone and where it leads.
    pub record: Option<PublicRecord>,
    /// What stands in its places in S3.
    pub stored: Vec<StoredObjects>,
    /// Its file systems: the one in use, and those that earlier clusters of the name left.
    pub file_systems: Vec<FileSystem>,
    /// ARNs of backups that AWS Backup made of them; its vault keeps them.
    pub backups: Vec<String>,
    /// The region.
    pub region: String,
    /// Disks of etcd members.
    pub volumes: Vec<String>,
    /// Snapshots of those disks.
    pub snapshots: Vec<Snapshot>,
    /// The grant for disks.
    pub grant: Option<Grant>,
}

/// A record of the cluster's public name.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicRecord {
    /// Its zone.
    pub zone: String,
    /// Its name.
    pub name: String,
    /// What of it leads to this cluster, as it was read; nothing if somebody led the name elsewhere.
    pub ours: Vec<AddressRecord>,
    /// Where it leads.
    pub leads: String,
}

impl Found {
    /// Looks at everything; changes nothing.
    pub async fn read(
        clients: &Clients,
        target: &DestroyTarget,
        live: LiveCluster,
    ) -> Result<Self, AwsError> {
        let region = clients.region().unwrap_or_default().to_owned();
        let mut found = Self { live, region, ..Self::default() };
        let in_stacks = found.read_stacks(clients, target).await?;
        found.vpc = found.find_vpc();
        found.file_systems = FileSystem::read_all(clients, target, &found, in_stacks).await?;
        found.network = NetworkFindings::read(clients, target, &found).await?;
        if let Some(zone) = found.output("PrivateZoneId") {
            let records = clients.removable_records(&zone).await?;
            found.private_zone = Some((zone, records));
        }
        found.record = found.read_record(clients, target).await?;
        for place in &target.places {
            found.stored.push(StoredObjects::read(clients, target, place).await?);
        }
        let (key, value) = target.tag();
        found.backups = clients.tagged(key, value).await?;
        found.backups.retain(|arn| is_backup(arn));
        found.snapshots = clients.snapshots_of(&found.volumes, target.tag()).await?;
        if let Some(key) = &target.kms_key {
            let name = grant_name(target.name.as_str());
            let is_expected =
                target.cluster.as_ref().is_some_and(|cluster| cluster.encrypt_disks_with_kms_key);
            let grants = match clients.grants(key).await {
                // A key that is gone holds no grant, and one that is not ours to look at hardly.
                Err(error) if error.has_code("NotFoundException") => Vec::new(),
                Err(error) if error.is_denied() && !is_expected => Vec::new(),
                other => other?,
            };
            let mut of_name = grants.into_iter().filter(|grant| grant.name == name).peekable();
            if of_name.peek().is_some() {
                // Accounts may share a key, and clusters of both a name.
                let account = clients.caller_identity().await?.account;
                found.grant = of_name.find(|grant| grant.grantee.split(':').nth(4) == Some(&account));
            }
        }
        Ok(found)
    }

    /// Looks at what stands in stacks; gives the file systems that they made.
    async fn read_stacks(
        &mut self,
        clients: &Clients,
        target: &DestroyTarget,
    ) -> Result<Vec<String>, AwsError> {
        let mut file_systems = Vec::new();
        for live in self.live.stacks.values() {
            for resource in clients.stack_resources(&live.stack.arn).await? {
                if resource.kind == "AWS::EFS::FileSystem"
                    && resource.status != ResourceStatus::DeleteComplete
                {
                    file_systems.push(resource.physical_id.clone());
                }
                if resource.kind == "AWS::EC2::Volume" {
                    self.volumes.push(resource.physical_id.clone());
                }
                self.in_stacks.insert(resource.physical_id);
            }
        }
        // The events of stacks that are gone still tell which disks they had.
        for stack in target.deleted_stacks(clients, &StackPart::ControlPlane).await? {
            let events = clients.stack_events(&stack.arn, None).await?.into_iter();
            self.volumes.extend(
                events.filter(|event| event.kind == "AWS::EC2::Volume").map(|event| event.physical_id),
            );
        }
        self.volumes.sort();
        self.volumes.dedup();
        self.volumes.retain(|volume| volume.starts_with("vol-"));
        Ok(file_systems)
    }

    fn output(&self, name: &str) -> Option<String> {
        self.live.outputs().get(name).cloned()
    }

    fn find_vpc(&self) -> Option<(String, bool)> {
        let id = self
            .output("VpcId")
            .or_else(|| self.in_stacks.iter().find(|id| id.starts_with("vpc-")).cloned())?;
        let ours = self.in_stacks.contains(&id);
        Some((id, ours))
    }

    async fn read_record(
        &self,
        clients: &Clients,
        target: &DestroyTarget,
    ) -> Result<Option<PublicRecord>, AwsError> {
        let Some(name) = target.external_dns_name.clone().filter(|_| target.manages_record) else {
            return Ok(None);
        };
        let zones = match &target.hosted_zone {
            Some(id) => clients.hosted_zone(id).await?.into_iter().collect(),
            None => clients.hosted_zones_for(&name).await?,
        };
        let balancer = self.output("ApiLoadBalancerName").map(|name| name.to_ascii_lowercase());
        let mut foreign = None;
        for zone in zones {
            let mut records = clients.address_records(&zone.id, &name).await?;
            let Some(leads) = records.first().map(destination) else { continue };
            records.retain(|record| balancer.as_deref().is_some_and(|balancer| leads_to(record, balancer)));
            let leads = records.first().map_or(leads, destination);
            let is_ours = !records.is_empty();
            let record = PublicRecord { zone: zone.id, name: name.clone(), ours: records, leads };
            if is_ours {
                return Ok(Some(record));
            }
            // A nearer zone may hold the name for others: it is private, or came later.
            foreign = foreign.or(Some(record));
        }
        Ok(foreign)
    }
}

fn destination(record: &AddressRecord) -> String {
    record.alias.as_ref().map_or_else(|| record.values.join(", "), |alias| alias.name.clone())
}
