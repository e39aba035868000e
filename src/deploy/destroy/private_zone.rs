//! Records of the private hosted zone that no stack created: the zone cannot be deleted while it holds them.

use super::plan::DestroyPlan;
use super::stack_contents::StackContents;
use crate::aws::{AwsError, Clients, ZoneRecord};
use crate::deploy::error::DeployError;
use crate::deploy::event::ResourceKind;
use crate::deploy::run::Run;
use crate::deploy::state::live::LiveCluster;
use crate::plural::count_of;

/// Another process may delete records of the zone at the same time, but hardly this often.
const ROUNDS: usize = 5;

/// The cluster's private hosted zone.
#[derive(Clone, Debug)]
pub(crate) struct PrivateZone {
    /// The id of the hosted zone.
    id: String,
    /// The records that can be deleted.
    records: Vec<ZoneRecord>,
}

impl PrivateZone {
    /// Reads the zone that the network stack names.
    pub(crate) async fn read(clients: &Clients, live: &LiveCluster) -> Result<Option<Self>, AwsError> {
        let Some(id) = live.outputs().remove("PrivateZoneId") else { return Ok(None) };
        let records = clients.removable_records(&id).await?;
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
            let mut foreign = run.clients.removable_records(&self.id).await?;
            foreign.retain(|record| !is_of_stack(&record.name));
            if foreign.is_empty() {
                break;
            }
            if run.clients.remove_records(&self.id, &foreign).await? {
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
