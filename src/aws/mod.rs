//! The only code that names AWS's SDK: one place that configures it, thin typed calls, and errors that say what was asked.
//!
//! In: plain values. Out: plain values, or an [`AwsError`] with operation, code, message and request id. It prints nothing and
//! knows no rule about clusters.

mod account;
mod actions;
mod answer_limit;
mod buckets;
mod caller;
mod change_sets;
mod clients;
mod clock;
mod configuration;
mod data_objects;
mod disks;
mod drift;
mod error;
mod failed_checks;
mod file_systems;
mod grants;
mod hosted_zone_records;
mod hosted_zones;
mod images;
mod interfaces;
mod key_creation;
mod keys;
mod lifecycle_rules;
mod load_balancers;
mod machines;
mod networks;
mod offers;
mod presence;
mod prices;
mod quotas;
mod release_files;
mod reservation_state;
mod roles;
mod scaling_groups;
mod scheduled_actions;
mod security_groups;
mod stack_events;
mod stack_resources;
mod stack_status;
mod stacks;
mod stored_objects;
mod tagged;
#[cfg(test)]
pub(crate) mod test_script;
mod text_enum;

pub(crate) use actions::{ACTIONS, Action, Scope};
pub(crate) use buckets::{BucketFacts, StoredObject, Upload};
pub(crate) use caller::CallerIdentity;
pub(crate) use change_sets::{ChangeSet, ChangeSetRequest, PlannedChange};
pub(crate) use clients::Clients;
pub(crate) use configuration::AwsConnection;
pub(crate) use data_objects::{DataBucket, DataObject, LinkRefusal};
pub(crate) use disks::Snapshot;
pub(crate) use drift::{
    Detection, DetectionStart, DetectionStatus, DifferenceKind, PropertyDifference, ResourceDrift,
    ResourceDriftStatus,
};
pub(crate) use error::{AwsError, CONTINUES_IN_AWS, Cause};
pub(crate) use failed_checks::FailedCheck;
pub(crate) use file_systems::{ExistingFileSystem, MountTarget};
pub(crate) use grants::Grant;
pub(crate) use hosted_zone_records::HostedZoneRecord;
pub(crate) use hosted_zones::{AddressRecord, Alias, HostedZone};
pub(crate) use images::Image;
pub(crate) use interfaces::Interface;
pub(crate) use keys::Key;
pub(crate) use lifecycle_rules::VersionExpiry;
pub(crate) use load_balancers::{LoadBalancer, TargetGroup};
pub(crate) use machines::Instance;
pub(crate) use networks::{ExistingSubnet, RouteTable, Vpc, VpcNames};
pub(crate) use offers::{CapacityReservation, ListedAvailabilityZone};
pub(crate) use prices::ListedProduct;
pub(crate) use release_files::ReleaseServerError;
pub(crate) use reservation_state::ReservationState;
pub(crate) use scaling_groups::{
    AUTO_SCALING_GROUP_TYPE, GroupMachine, SCHEDULED_ACTION_TYPE, ScalingActivity, ScalingGroup,
};
pub(crate) use scheduled_actions::ScheduledChange;
pub(crate) use security_groups::{InboundRule, VpcSecurityGroup};
#[cfg(test)]
pub(crate) use stack_events::EventStatus;
pub(crate) use stack_events::{STACK_TYPE, StackEvent};
pub(crate) use stack_resources::StackResource;
pub(crate) use stack_status::{Accepts, ChangeSetStatus, End, Phase, ResourceStatus, StackStatus};
pub(crate) use stacks::{Stack, TemplateSource};
pub(crate) use stored_objects::ObjectVersion;

/// AWS's time as ours.
fn to_offset_date_time(time: aws_smithy_types::DateTime) -> Option<time::OffsetDateTime> {
    time::OffsetDateTime::from_unix_timestamp_nanos(time.as_nanos()).ok()
}
