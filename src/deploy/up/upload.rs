//! Machine configurations into the bucket: only what is not there yet, encrypted, compared on arrival.

use std::collections::BTreeMap;

use crate::blueprint::Role;
use crate::deploy::error::DeployError;
use crate::deploy::inputs::asset_store::AssetStore;
use crate::deploy::run::Run;
use crate::render::{Asset, object_key};

/// Every object that machines read at boot, by its key behind the prefix.
#[must_use]
pub fn boot_objects<'a>(
    cluster: &str,
    roles: &[Role],
    assets: &'a [Asset],
    snippets: &'a BTreeMap<Role, Vec<Asset>>,
) -> BTreeMap<String, &'a Asset> {
    let mut objects = BTreeMap::new();
    for role in roles {
        let path = format!("userdata/{}.ign", role.name());
        let own = assets.iter().filter(|asset| asset.path == path);
        for asset in own.chain(snippets.get(role).into_iter().flatten()) {
            objects.insert(object_key(cluster, role, &asset.sha512()), asset);
        }
    }
    objects
}

/// Uploads what is missing; gives how many there were to upload.
pub(crate) async fn upload_boot_objects(
    run: &Run,
    store: &AssetStore,
    objects: &BTreeMap<String, &Asset>,
) -> Result<usize, DeployError> {
    let mut uploaded = 0;
    for (key, asset) in objects {
        uploaded += usize::from(store.put(run, key, &asset.bytes).await?);
    }
    Ok(uploaded)
}
