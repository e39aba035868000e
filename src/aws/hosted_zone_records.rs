//! The records of a hosted zone that must be deleted before the hosted zone can be.

use aws_sdk_route53::types::{Change, ChangeAction, ChangeBatch, ResourceRecordSet, RrType};

use super::actions::{self, Action};
use super::hosted_zones::is_record_gone;
use super::{AwsError, Clients};

/// As many changes as one call takes with room to spare.
const BATCH: usize = 100;

/// A record that can be deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostedZoneRecord {
    /// The name of the record, without a dot at the end.
    pub name: String,
    /// The type of the record.
    pub kind: String,
    whole: ResourceRecordSet,
}

impl Clients {
    /// Every record of a hosted zone but those that every hosted zone has.
    pub(crate) async fn deletable_records(&self, zone: &str) -> Result<Vec<HostedZoneRecord>, AwsError> {
        let mut found = Vec::new();
        let mut start = (None, None, None);
        loop {
            let call = self.route53.list_resource_record_sets().hosted_zone_id(zone);
            let call = call.set_start_record_name(start.0).set_start_record_type(start.1);
            let answer = call.set_start_record_identifier(start.2).send().await;
            let answer = match answer.map_err(AwsError::of(actions::ROUTE53_LIST_RESOURCE_RECORD_SETS)) {
                Err(error) if error.has_code("NoSuchHostedZone") => return Ok(Vec::new()),
                answer => answer?,
            };
            let records = answer.resource_record_sets.into_iter();
            let deletable = records.filter(|record| !matches!(record.r#type, RrType::Ns | RrType::Soa));
            found.extend(deletable.map(|record| HostedZoneRecord {
                name: record.name.trim_end_matches('.').to_owned(),
                kind: record.r#type.as_str().to_owned(),
                whole: record,
            }));
            if !answer.is_truncated {
                return Ok(found);
            }
            start = (answer.next_record_name, answer.next_record_type, answer.next_record_identifier);
        }
    }

    /// Deletes records exactly as they were read. Returns whether all of them still existed: a call deletes all of its records or none, so
    /// what is left has to be read again otherwise.
    pub(crate) async fn delete_records(
        &self,
        zone: &str,
        records: &[HostedZoneRecord],
    ) -> Result<bool, AwsError> {
        const OPERATION: Action = actions::ROUTE53_CHANGE_RESOURCE_RECORD_SETS;
        let failed = |error| AwsError::incomplete(OPERATION, format!("{error}"));
        for batch in records.chunks(BATCH) {
            let mut changes = Vec::new();
            for record in batch {
                let change =
                    Change::builder().action(ChangeAction::Delete).resource_record_set(record.whole.clone());
                changes.push(change.build().map_err(failed)?);
            }
            let batch = ChangeBatch::builder().set_changes(Some(changes)).build().map_err(failed)?;
            let call = self.route53.change_resource_record_sets().hosted_zone_id(zone).change_batch(batch);
            match call.send().await.map_err(AwsError::of(OPERATION)) {
                Err(error) if is_record_gone(&error) => return Ok(false),
                other => other?,
            };
        }
        Ok(true)
    }
}
