//! Uploads boot configurations: only those that S3 does not have with the same content, encrypted, and their digests checked.

use std::collections::BTreeMap;

use crate::deploy::error::DeployError;
use crate::deploy::inputs::asset_store::AssetStore;
use crate::deploy::run::Run;
use crate::render::BootObject;

/// Uploads the objects that are missing; returns how many.
pub(crate) async fn upload_boot_objects(
    run: &Run,
    store: &AssetStore,
    objects: &BTreeMap<String, BootObject<'_>>,
) -> Result<usize, DeployError> {
    let mut uploaded = 0;
    for (key, object) in objects {
        uploaded += usize::from(store.put(run, key, &object.file.bytes).await?.uploaded);
    }
    Ok(uploaded)
}
