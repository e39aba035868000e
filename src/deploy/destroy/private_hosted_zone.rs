//! Records of the private hosted zone that no stack created: the hosted zone cannot be deleted while it holds them.

use super::plan::DestroyPlan;
use super::stack_contents::StackContents;
use crate::aws::{AwsError, Clients, HostedZoneRecord};
use crate::deploy::error::DeployError;
use crate::deploy::event::ResourceKind;
use crate::deploy::run::Run;
use crate::deploy::state::live::LiveCluster;
use crate::plural::count_of;

/// Give up after this many attempts: another process may delete records at the same time, but hardly this often.
const ROUNDS: usize = 5;

/// The cluster's private hosted zone.
#[derive(Clone, Debug)]
pub(crate) struct PrivateHostedZone {
    /// The id of the hosted zone.
    id: String,
    /// The records that can be deleted.
    records: Vec<HostedZoneRecord>,
}

impl PrivateHostedZone {
    /// Reads the hosted zone that the network stack names.
    pub(crate) async fn read(clients: &Clients, live: &LiveCluster) -> Result<Option<Self>, AwsError> {
        let Some(id) = live.outputs().remove("PrivateZoneId") else { return Ok(None) };
        let records = clients.deletable_records(&id).await?;
        Ok(Some(Self { id, records }))
    }

    /// Lists the records as deleted.
    pub(crate) fn list(&self, plan: &mut DestroyPlan) {
        if !self.records.is_empty() {
            plan.delete(ResourceKind::PrivateRecords, &self.id, count_of(self.records.len(), "record"));
        }
    }

    /// Deletes every record that no stack created; the storage stack deletes its own.
    pub(crate) async fn delete_records(&self, run: &Run, stacks: &StackContents) -> Result<(), DeployError> {
        let is_of_stack = |name: &str| stacks.resources.iter().any(|id| id.trim_end_matches('.') == name);
        for _ in 0..ROUNDS {
            let mut foreign = run.clients.deletable_records(&self.id).await?;
            foreign.retain(|record| !is_of_stack(&record.name));
            if foreign.is_empty() {
                break;
            }
            if run.clients.delete_records(&self.id, &foreign).await? {
                run.progress.note(format!(
                    "deleted {} of the private hosted zone",
                    count_of(foreign.len(), "record")
                ));
                break;
            }
        }
        Ok(())
    }
}
