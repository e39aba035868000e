//! What a deployment is: the live stacks as AWS describes them, and the desired stacks as cluster.yaml asks for them.
//!
//! In: clients, assets, inputs. Out: `LiveCluster` and `DesiredStack`. Nothing is compared and nothing is changed here.

pub(crate) mod charges;
pub(crate) mod description;
pub(crate) mod desired;
pub(crate) mod disk_grant;
pub(crate) mod image_parameters;
pub(crate) mod live;
pub(crate) mod pool_hold;
pub(crate) mod pool_size;
pub(crate) mod public_name;
pub(crate) mod snapshots;
pub(crate) mod step;
