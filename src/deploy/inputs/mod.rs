//! What a run is given besides cluster.yaml: which image machines boot, where assets are, whose credentials the cluster runs on.
//!
//! In: infra.lock, credentials, flags. Out: values that the later steps compare and render. Nothing is read from live stacks here.

pub(crate) mod asset_store;
pub(crate) mod credential_digests;
pub(crate) mod image_lock;
pub(crate) mod image_source;
pub(crate) mod rendered;
pub(crate) mod settings;
