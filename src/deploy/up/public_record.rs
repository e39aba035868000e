//! The record of the API server's public name: an alias of its load balancer in the hosted zone of the name.

use std::time::Duration;

use crate::aws::{AddressRecord, Alias, HostedZone};
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, RecordState};
use crate::deploy::run::Run;
use crate::deploy::state::public_name::{HostedZoneChoice, all_point_at, choose_hosted_zone, points_at};
use crate::waiting::Pace;

/// Name servers usually agree within a minute.
const LONGEST_SYNC: Duration = Duration::from_mins(5);

/// Points the record of the public name at the load balancer; returns whether the record had to be written.
pub(crate) async fn point_record_at(
    run: &Run,
    cluster: &Cluster,
    target: &Alias,
    previous: Option<&str>,
    adopt: bool,
) -> Result<bool, DeployError> {
    let name = cluster.external_dns_name.to_string();
    let zone = match choose_hosted_zone(&run.clients, cluster).await? {
        HostedZoneChoice::Zone(zone) => zone,
        HostedZoneChoice::None(reason) => {
            run.progress.warn(format!("{reason}: create this record yourself"));
            run.progress.note(manual_record(&name, target));
            return Ok(false);
        }
    };
    let records = run.clients.address_records(&zone.id, &name).await?;
    let report = |state| {
        run.progress.report(Event::Record { name: name.clone(), state, target: target.name.clone() });
    };
    if all_point_at(&records, &target.name) {
        report(RecordState::Unchanged);
        return Ok(false);
    }
    let ours = |record: &AddressRecord| {
        points_at(record, &target.name) || previous.is_some_and(|previous| points_at(record, previous))
    };
    let foreign = records.iter().find(|record| !ours(record));
    if let Some(foreign) = foreign {
        let is_plain = records.len() == 1 && foreign.kind == "A" && !foreign.routed;
        if !adopt || !is_plain {
            return Err(refuse_foreign_record(&name, &zone, foreign, is_plain));
        }
    }
    let change = run.clients.put_alias(&zone.id, &name, target).await?;
    report(match (records.is_empty(), foreign) {
        (true, _) => RecordState::Created,
        (false, Some(_)) => RecordState::Adopted,
        (false, None) => RecordState::Moved,
    });
    wait_until_in_sync(run, &change).await?;
    report(RecordState::InSync);
    Ok(true)
}

/// Deletes the records of the public name that point at the load balancer: it is being deleted, and whoever deletes it may not have seen
/// them.
pub(crate) async fn delete_record_of(
    run: &Run,
    cluster: &Cluster,
    target: &Alias,
) -> Result<(), DeployError> {
    let name = cluster.external_dns_name.to_string();
    let HostedZoneChoice::Zone(zone) = choose_hosted_zone(&run.clients, cluster).await? else {
        return Ok(());
    };
    let records = run.clients.address_records(&zone.id, &name).await?;
    for record in records.iter().filter(|record| points_at(record, &target.name)) {
        if run.clients.delete_address_record(&zone.id, record).await? {
            run.progress.note(format!("deleted the record of {name}, since the cluster is being deleted"));
        }
    }
    Ok(())
}

async fn wait_until_in_sync(run: &Run, change: &str) -> Result<(), DeployError> {
    let waiting = run.waiting.at_most(LONGEST_SYNC);
    let mut pace = Pace::of_moment();
    while !run.clients.is_in_sync(change).await? {
        if let Err(end) = waiting.pause(pace.next_pause()).await {
            return Err(Run::still_running(end, "the change of the public record"));
        }
    }
    Ok(())
}

fn refuse_foreign_record(
    name: &str,
    zone: &HostedZone,
    record: &AddressRecord,
    is_plain: bool,
) -> DeployError {
    let target = match &record.alias {
        Some(alias) => alias.name.clone(),
        None => record.values.join(", "),
    };
    DeployError::ForeignRecord {
        zone: zone.name.clone(),
        name: name.to_owned(),
        kind: record.kind.clone(),
        target,
        can_be_adopted: is_plain,
    }
}

/// The record that the user has to create, and how kubectl works until then.
#[must_use]
pub(crate) fn manual_record(name: &str, target: &Alias) -> String {
    format!(
        "  {name}.  300  IN  CNAME  {load_balancer}.\n  in Route 53 better an alias A record of {load_balancer}, zone {zone}\n  \
         until then `infra kubeconfig --direct` prints a kubeconfig that needs no record",
        load_balancer = target.name,
        zone = target.zone,
    )
}
