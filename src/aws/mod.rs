//! The only code that names AWS's SDK: one place that configures it, thin typed calls, and errors that say what was asked.
//!
//! In: plain values. Out: plain values, or an [`AwsError`] with operation, code, message and request id. It prints nothing and
//! knows no rule about clusters.

mod account;
mod actions;
mod buckets;
mod change_sets;
mod clients;
mod clock;
mod configuration;
mod disks;
mod error;
mod file_systems;
mod grants;
mod group_rules;
mod images;
mod interfaces;
mod keys;
mod load_balancers;
mod machines;
mod networks;
mod offers;
mod presence;
mod quotas;
mod roles;
mod scaling_groups;
mod stack_events;
mod stack_resources;
mod stack_status;
mod stacks;
mod stored_objects;
mod tagged;
#[cfg(test)]
pub(crate) mod test_script;
mod zone_records;
mod zones;

pub use account::CallerIdentity;
pub use actions::{ACTIONS, Action, Scope};
pub use buckets::{BucketFacts, Upload};
pub use change_sets::{ChangeSet, ChangeSetRequest, PlannedChange};
pub use clients::Clients;
pub use configuration::Connection;
pub use disks::Snapshot;
pub use error::{AwsError, Cause, GOES_ON};
pub use file_systems::{ExistingFileSystem, MountTarget};
pub use grants::Grant;
pub use group_rules::VpcGroup;
pub use images::Image;
pub use interfaces::Interface;
pub use keys::Key;
pub use load_balancers::{LoadBalancer, TargetGroup};
pub use machines::{Instance, MachineKind};
pub use networks::{ExistingSubnet, InboundRule, RouteTable, SecurityGroup, Vpc, VpcNames};
pub use offers::{CapacityReservation, Zone};
pub use scaling_groups::{GROUP_TYPE, GroupMachine, ScalingActivity, ScalingGroup};
pub use stack_events::{EventStatus, STACK_TYPE, StackEvent};
pub use stack_resources::StackResource;
pub use stack_status::{Accepts, ChangeSetStatus, End, Phase, ResourceStatus, StackStatus};
pub use stacks::{Stack, TemplateSource};
pub use stored_objects::{ObjectVersion, RefusedObject};
pub use zone_records::ZoneRecord;
pub use zones::{AddressRecord, Alias, HostedZone};

/// AWS's time as ours.
fn moment(time: aws_smithy_types::DateTime) -> Option<time::OffsetDateTime> {
    time::OffsetDateTime::from_unix_timestamp_nanos(time.as_nanos()).ok()
}
