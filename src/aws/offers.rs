//! What EC2 has for the account: availability zones, types, key pairs, reservations.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{CapacityReservationType, LocationType};
use time::OffsetDateTime;

use super::actions;
use super::machines::{ec2_filter, sdk_text};
use super::reservation_state::ReservationState;
use super::{AwsError, Clients};

/// The tag with which EC2 says how many machines a capacity block will hold; until it begins it counts none.
const PLANNED_TAG: &str = "aws:ec2capacityreservation:incrementalRequestedQuantity";
/// EC2 takes this many values in one filter, and some more.
const FILTER_VALUES: usize = 100;

/// An availability zone as EC2 lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedAvailabilityZone {
    /// The name of the availability zone.
    pub name: String,
    /// The state of the availability zone; `available` is the good one.
    pub state: String,
    /// The kind of the availability zone: `availability-zone`, `local-zone` or `wavelength-zone`.
    pub kind: String,
}

/// A capacity reservation, or a capacity block: EC2 lists both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapacityReservation {
    /// The id.
    pub id: String,
    /// The state of the reservation.
    pub state: ReservationState,
    /// Whether it is a capacity block.
    pub is_block: bool,
    /// When it begins.
    pub begins: Option<OffsetDateTime>,
    /// When it ends, if that is known.
    pub ends: Option<OffsetDateTime>,
    /// The type it is for.
    pub instance_type: String,
    /// The availability zone it is in.
    pub zone: String,
    /// How many machines it holds, or will hold once it begins.
    pub total: i32,
    /// How many of them are free.
    pub available: i32,
}

impl Clients {
    /// The availability zones of the region that the account has.
    pub(crate) async fn availability_zones(&self) -> Result<Vec<ListedAvailabilityZone>, AwsError> {
        let answer = self.ec2.describe_availability_zones().send().await;
        let answer = answer.map_err(AwsError::of(actions::EC2_DESCRIBE_AVAILABILITY_ZONES))?;
        let zones =
            answer.availability_zones.unwrap_or_default().into_iter().map(|zone| ListedAvailabilityZone {
                state: sdk_text(zone.state.as_ref()),
                name: zone.zone_name.unwrap_or_default(),
                kind: zone.zone_type.unwrap_or_default(),
            });
        Ok(zones.collect())
    }

    /// The availability zones that offer each of the types; a type that none offers is not in the answer.
    pub(crate) async fn type_offerings(
        &self,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, AwsError> {
        let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for types in types.chunks(FILTER_VALUES) {
            let request = self.ec2.describe_instance_type_offerings();
            let request = request.location_type(LocationType::AvailabilityZone);
            let pages = request.filters(ec2_filter("instance-type", types)).into_paginator().items().send();
            let offerings = pages.try_collect().await;
            for offering in offerings.map_err(AwsError::of(actions::EC2_DESCRIBE_INSTANCE_TYPE_OFFERINGS))? {
                let offered_in = zones.entry(sdk_text(offering.instance_type.as_ref())).or_default();
                offered_in.extend(offering.location);
            }
        }
        Ok(zones)
    }

    /// How many vCPUs a machine of each type has; a type that the region does not know is not in the answer.
    pub(crate) async fn processors_of(&self, types: &[String]) -> Result<BTreeMap<String, u32>, AwsError> {
        let mut processors = BTreeMap::new();
        for types in types.chunks(FILTER_VALUES) {
            let request = self.ec2.describe_instance_types().filters(ec2_filter("instance-type", types));
            let found = request.into_paginator().items().send().try_collect().await;
            for found in found.map_err(AwsError::of(actions::EC2_DESCRIBE_INSTANCE_TYPES))? {
                let count = found.v_cpu_info.and_then(|info| info.default_v_cpus);
                if let Some(count) = count.and_then(|count| u32::try_from(count).ok()) {
                    processors.insert(sdk_text(found.instance_type.as_ref()), count);
                }
            }
        }
        Ok(processors)
    }

    /// Whether the account has this key pair in the region.
    pub(crate) async fn key_pair_exists(&self, name: &str) -> Result<bool, AwsError> {
        let answer = self.ec2.describe_key_pairs().key_names(name).send().await;
        match answer.map_err(AwsError::of(actions::EC2_DESCRIBE_KEY_PAIRS)) {
            Ok(answer) => Ok(answer.key_pairs.is_some_and(|pairs| !pairs.is_empty())),
            Err(error) if error.has_code("InvalidKeyPair.NotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A capacity reservation by its id.
    pub(crate) async fn capacity_reservation(
        &self,
        id: &str,
    ) -> Result<Option<CapacityReservation>, AwsError> {
        let answer = self.ec2.describe_capacity_reservations().capacity_reservation_ids(id).send().await;
        match answer.map_err(AwsError::of(actions::EC2_DESCRIBE_CAPACITY_RESERVATIONS)) {
            Ok(answer) => {
                Ok(answer.capacity_reservations.unwrap_or_default().into_iter().next().map(Into::into))
            }
            Err(error) if error.has_code("InvalidCapacityReservationId.NotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl From<aws_sdk_ec2::types::CapacityReservation> for CapacityReservation {
    fn from(found: aws_sdk_ec2::types::CapacityReservation) -> Self {
        let tags = found.tags.unwrap_or_default();
        let planned = tags.into_iter().find(|tag| tag.key.as_deref() == Some(PLANNED_TAG));
        let planned = planned.and_then(|tag| tag.value?.parse().ok()).unwrap_or_default();
        Self {
            id: found.capacity_reservation_id.unwrap_or_default(),
            state: ReservationState::from(sdk_text(found.state.as_ref()).as_str()),
            is_block: found.reservation_type == Some(CapacityReservationType::CapacityBlock),
            begins: found.start_date.and_then(super::to_offset_date_time),
            ends: found.end_date.and_then(super::to_offset_date_time),
            instance_type: found.instance_type.unwrap_or_default(),
            zone: found.availability_zone.unwrap_or_default(),
            total: found.total_instance_count.unwrap_or_default().max(planned),
            available: found.available_instance_count.unwrap_or_default(),
        }
    }
}
