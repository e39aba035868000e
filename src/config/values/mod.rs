//! The values a cluster description is made of, each a type that cannot hold a bad one.
//!
//! In: a text. Out: the value, or a `Fault` that says what is wrong with the text and what to write instead.

mod amazon_resource;
mod cron;
mod dns_name;
mod expiry;
mod instance_type;
mod kubernetes_version;
mod label;
mod machine_count;
mod mirror;
mod money;
mod mount_path;
mod name;
mod nvidia_driver;
mod region;
mod remote_write_url;
mod resource_id;
mod s3_uri;
mod snapshot;
mod subnet_range;
mod tag;
mod time_zone;

pub use amazon_resource::{KmsKeyArn, PolicyArn};
pub use cron::Cron;
pub use dns_name::{CertificateName, DnsName};
pub use expiry::Expiry;
pub use instance_type::{Architecture, InstanceType};
pub use kubernetes_version::KubernetesVersion;
pub use label::{LabelKey, LabelValue};
pub use machine_count::MachineCount;
pub use mirror::{MirrorUrl, MirroredHost};
pub use money::Money;
pub use mount_path::MountPath;
pub use name::{ClusterName, KeyName, PoolName};
pub use nvidia_driver::{NvidiaDriver, oldest_branch_for_cuda};
pub use region::{AvailabilityZone, Partition, Region};
pub use remote_write_url::RemoteWriteUrl;
pub use resource_id::{AccountId, CapacityReservationId, FileSystemId, HostedZoneId, SubnetId, VpcId};
pub use s3_uri::S3Uri;
pub use snapshot::{ObjectVersion, Sha256Digest, SnapshotName};
pub use subnet_range::parse_ipv4_range;
pub use tag::{TagKey, TagValue};
pub use time_zone::TimeZone;

/// A newtype over text whose only way in is its check.
macro_rules! checked_text {
    ($(#[$documentation:meta])* $name:ident, $check:expr) => {
        $(#[$documentation])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        #[allow(unreachable_pub, reason = "the values of cluster.yaml are public, those of job files are not")]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            #[allow(dead_code, unreachable_pub, reason = "not every value is read as text")]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::document::Fault;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}
pub(crate) use checked_text;
