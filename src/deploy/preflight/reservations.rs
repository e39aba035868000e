//! The capacity reservations and capacity blocks that pools name.

use super::finding::SubjectFindings;
use super::join_all::join_all;
use super::{Finding, Preflight};
use crate::aws::{AwsError, CapacityReservation, Clients, ReservationState};
use crate::config::Pool;
use crate::deploy::event::BlockPhase;
use crate::deploy::inputs::capacity_block::LockedBlock;
use crate::deploy::state::pool_size::missing_machines;
use crate::plural::count_of;

pub(crate) async fn check_reservations(
    preflight: &Preflight<'_>,
    clients: &Clients,
) -> Result<Vec<Finding>, AwsError> {
    let pools = preflight.blueprint.cluster.pools.iter();
    let reserved: Vec<(&Pool, &str)> =
        pools.filter_map(|pool| Some((pool, pool.capacity_reservation.as_ref()?.as_str()))).collect();
    let reservations = join_all(reserved.iter().map(|(_, id)| clients.capacity_reservation(id))).await;
    let mut findings = SubjectFindings::about("capacity reservations");
    for ((pool, id), reservation) in reserved.into_iter().zip(reservations) {
        if let Some(reservation) = findings.take(reservation)? {
            check_reservation(preflight, pool, id, reservation.as_ref(), &mut findings);
        }
    }
    Ok(findings.into_list())
}

fn check_reservation(
    preflight: &Preflight<'_>,
    pool: &Pool,
    id: &str,
    reservation: Option<&CapacityReservation>,
    findings: &mut SubjectFindings,
) {
    let why = format!("machines of pool {} start in this reservation only", pool.name);
    let block = match LockedBlock::of_pool(pool, id, reservation, preflight.blocks, preflight.now) {
        Ok(block) => block,
        Err(refusal) => return findings.refuse(refusal.what, why, refusal.instead),
    };
    let block = block.map(|block| block.now(preflight.now));
    let phase = block.as_ref().map(|block| block.phase);
    let Some(reservation) = reservation else { return };
    let CapacityReservation { state, instance_type, zone, total, available, .. } = reservation;
    match phase {
        None if *state != ReservationState::Active => {
            let fix = "wait until it is active, or name another";
            findings.refuse(format!("the capacity reservation {id} is {state}"), why.as_str(), fix);
        }
        Some(_) if *state == ReservationState::PaymentPending => findings.warn(
            format!("the capacity block {id} is not paid yet"),
            "AWS releases it if the payment fails, and the pool would have no machines",
            "check the payment method of the account; `aws ec2 describe-capacity-reservations` shows the state",
        ),
        _ => {}
    }
    if pool.instance_types.iter().any(|kind| kind.as_str() != instance_type) {
        let fix = format!("set instanceType: {instance_type}, or name another reservation");
        findings.refuse(
            format!(
                "the capacity reservation {id} is for {instance_type}, but the pool uses {}",
                pool.instance_types[0]
            ),
            why.as_str(),
            fix,
        );
    }
    if pool.availability_zones.iter().any(|pools| pools.as_str() != zone) {
        let fix = format!("set the pool's availabilityZones: [{zone}], or name another reservation");
        findings.refuse(
            format!("the capacity reservation {id} is in {zone}, but the pool is not"),
            why.as_str(),
            fix,
        );
    }
    let wanted = match phase {
        // A block has free machines while it is open.
        Some(BlockPhase::ToCome | BlockPhase::Over) => {
            if i64::from(*total) < i64::from(pool.count) && phase == Some(BlockPhase::ToCome) {
                findings.warn(
                    format!(
                        "the capacity block {id} will have {}, but the pool needs {}",
                        count_of(*total, "machine"),
                        pool.count
                    ),
                    why,
                    format!("set the pool's count to {total}"),
                );
            }
            return;
        }
        Some(BlockPhase::Open) | None => missing_machines(pool, preflight.live, block),
    };
    if i64::from(*available) < i64::from(wanted) {
        // A block cannot be enlarged. EC2 cleans a terminated machine for some minutes before it is free again.
        let (what, fix) = match phase {
            Some(_) => (
                "capacity block",
                "wait some minutes if machines have just been terminated, or reduce the pool's count",
            ),
            None => ("capacity reservation", "increase the reservation, or reduce the pool's count"),
        };
        findings.warn(
            format!("the {what} {id} has {available} of {total} machines free, but the pool needs {wanted}"),
            why,
            fix,
        );
    }
}
