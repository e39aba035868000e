//! The record of the cluster's public DNS name: deleted only where it still points at this cluster.

use super::plan::DestroyPlan;
use super::target::DestroyTarget;
use crate::aws::{AddressRecord, Alias, AwsError, Clients};
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Leftover, Resource, ResourceKind};
use crate::deploy::run::Run;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::public_name::{load_balancer, points_at};

/// A record of the cluster's public name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PublicRecord {
    /// The id of the hosted zone.
    zone: String,
    /// The DNS name.
    name: String,
    /// The records that point at this cluster, as they were read; none if the name points elsewhere.
    ours: Vec<AddressRecord>,
    /// Where the name points.
    destination: String,
}

impl PublicRecord {
    /// Reads the record, if the cluster has one and manages it. It is the cluster's if it points at one of these load balancers.
    pub(crate) async fn read(
        clients: &Clients,
        target: &DestroyTarget,
        balancers: &[Alias],
    ) -> Result<Option<Self>, AwsError> {
        let Some(name) = target.external_dns_name.clone().filter(|_| target.manages_record) else {
            return Ok(None);
        };
        let zones = match &target.hosted_zone {
            Some(id) => clients.hosted_zone(id).await?.into_iter().collect(),
            None => clients.hosted_zones_for(&name).await?,
        };
        let mut foreign = None;
        for zone in zones {
            let mut records = clients.address_records(&zone.id, &name).await?;
            let Some(destination) = records.first().map(destination_of) else { continue };
            records.retain(|record| balancers.iter().any(|balancer| points_at(record, &balancer.name)));
            let destination = records.first().map_or(destination, destination_of);
            let is_ours = !records.is_empty();
            let record = Self { zone: zone.id, name: name.clone(), ours: records, destination };
            if is_ours {
                return Ok(Some(record));
            }
            // A hosted zone with a longer name may hold the record for someone else: it is private, or was created later.
            foreign = foreign.or(Some(record));
        }
        Ok(foreign)
    }

    /// Lists the record as deleted, or as kept if it points elsewhere.
    pub(crate) fn list(&self, plan: &mut DestroyPlan) {
        let target = format!("points at {}", self.destination);
        if self.ours.is_empty() {
            plan.keep(ResourceKind::PublicRecord, &self.name, format!("{target}, which is not this cluster"));
        } else {
            plan.delete(ResourceKind::PublicRecord, &self.name, target);
        }
    }

    /// Deletes what still points at this cluster; returns the records that were changed since they were read.
    pub(crate) async fn delete(&self, run: &Run) -> Result<Vec<Leftover>, DeployError> {
        let mut changed = Vec::new();
        for own in &self.ours {
            if run.clients.delete_address_record(&self.zone, own).await? {
                run.progress.note(format!("deleted the record of {}", self.name));
            } else {
                changed.push(Leftover {
                    resource: Resource::new(
                        ResourceKind::PublicRecord,
                        format!("{} of type {}", self.name, own.kind),
                    ),
                    why: Some("it was changed meanwhile".to_owned()),
                    fix: format!(
                        "check it: aws route53 list-resource-record-sets --hosted-zone-id {} --start-record-name {} --max-items 2",
                        self.zone, self.name
                    ),
                });
            }
        }
        Ok(changed)
    }
}

/// Deletes a record that an `infra up` has created since the cluster was read, if it points at this cluster.
pub(crate) async fn delete_new_record(
    run: &Run,
    target: &DestroyTarget,
    found: &LiveCluster,
) -> Result<Vec<Leftover>, DeployError> {
    let mut balancers: Vec<Alias> = load_balancer(&found.outputs()).into_iter().collect();
    if let Some(control_plane) = found.stacks.get(&StackPart::ControlPlane) {
        // The load balancer may be newer than what was read. The ARN also finds a stack that is deleted.
        let now = run.clients.stack(&control_plane.stack.arn).await?;
        balancers.extend(now.and_then(|stack| load_balancer(&stack.outputs)));
    }
    if balancers.is_empty() {
        return Ok(Vec::new());
    }
    match PublicRecord::read(&run.clients, target, &balancers).await? {
        Some(record) => record.delete(run).await,
        None => Ok(Vec::new()),
    }
}

fn destination_of(record: &AddressRecord) -> String {
    record.alias.as_ref().map_or_else(|| record.values.join(", "), |alias| alias.name.clone())
}
