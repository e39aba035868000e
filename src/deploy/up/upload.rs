//! Machine configurations into the bucket: only what is not there yet, encrypted, compared on arrival.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use zeroize::Zeroizing;

use crate::aws::Upload;
use crate::blueprint::Role;
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::work::Work;
use crate::hexadecimal::hexadecimal;
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
    work: &Work,
    objects: &BTreeMap<String, &Asset>,
) -> Result<usize, DeployError> {
    let mut uploaded = 0;
    for (key, asset) in objects {
        let key = format!("{}{key}", work.place.key_prefix());
        uploaded += usize::from(put_object(work, &key, &asset.bytes, "application/json").await?);
    }
    Ok(uploaded)
}

/// Uploads one object unless it is there already; says whether it did.
pub(crate) async fn put_object(
    work: &Work,
    key: &str,
    bytes: &Zeroizing<Vec<u8>>,
    content_type: &'static str,
) -> Result<bool, DeployError> {
    let bucket = work.place.bucket();
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    // The key is the digest of the content: the same key with another size is what a broken upload leaves.
    if work.run.clients.object_size(bucket, key).await? == Some(size) {
        return Ok(false);
    }
    let upload = Upload {
        bucket,
        key,
        bytes,
        sha256: &sha256_base64(bytes),
        kms_key: work.blueprint.cluster.kms_key.as_str(),
        content_type,
    };
    work.run.clients.upload(&upload).await?;
    if work.run.clients.object_size(bucket, key).await? != Some(size) {
        return Err(DeployError::Unusable {
            what: format!("s3://{bucket}/{key} does not have the {size} bytes that were uploaded"),
            help: "somebody else writes to that prefix, or a lifecycle rule removes objects there".to_owned(),
        });
    }
    work.run.progress.report(Event::Uploaded { key: key.to_owned(), bytes: bytes.len() });
    Ok(true)
}

pub(crate) fn sha256_hexadecimal(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA256, bytes).as_ref())
}

fn sha256_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(digest(&SHA256, bytes))
}
