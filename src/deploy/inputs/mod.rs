//! What a cluster is deployed from: what was rendered, which image machines boot, where assets are, whose credentials it runs on.
//!
//! In: assets, infra.lock, credentials, flags. Out: `Inputs`, which the later steps compare with what is live. Live stacks are not read here.

pub(crate) mod asset_store;
pub(crate) mod base_image;
pub(crate) mod capacity_block;
pub(crate) mod credential_digests;
pub(crate) mod driver_check;
pub(crate) mod image_choice;
pub(crate) mod image_life;
pub(crate) mod image_lock;
pub(crate) mod image_source;
pub(crate) mod lock_renewal;
pub(crate) mod s3_uri_choice;

use crate::blueprint::Blueprint;
use crate::config::values::S3Uri;
use crate::credentials::Credentials;
use crate::render::Assets;
use capacity_block::PoolBlocks;
use image_choice::ImageChoice;

/// What a cluster is deployed from.
#[derive(Clone, Debug)]
pub(crate) struct Inputs<'a> {
    /// The decided cluster.
    pub blueprint: &'a Blueprint,
    /// Keys and certificates.
    pub credentials: &'a Credentials,
    /// Everything rendered.
    pub assets: &'a Assets,
    /// Where assets are uploaded.
    pub s3_uri: S3Uri,
    /// The image that machines boot.
    pub image: ImageChoice,
    /// The capacity blocks of pools.
    pub blocks: PoolBlocks,
}
