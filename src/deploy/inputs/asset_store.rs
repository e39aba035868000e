//! The prefix of an S3 bucket that holds a cluster's assets: an object is uploaded unless S3 has the same content.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use zeroize::Zeroizing;

use crate::aws::{StoredObject, TemplateSource, Upload};
use crate::config::Cluster;
use crate::config::values::S3Uri;
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::run::Run;
use crate::hexadecimal::hexadecimal;

/// Where the assets of a cluster are, and how they are encrypted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AssetStore {
    uri: S3Uri,
    cluster: String,
    kms_key: String,
    dns_suffix: &'static str,
}

/// An object that is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredAsset {
    /// Whether the object was uploaded just now.
    pub uploaded: bool,
    /// The version of the object; none if the bucket keeps no versions.
    version: Option<String>,
}

impl AssetStore {
    /// The store of a cluster at an S3 URI.
    #[must_use]
    pub(crate) fn new(cluster: &Cluster, uri: S3Uri) -> Self {
        Self {
            uri,
            cluster: cluster.name.to_string(),
            kms_key: cluster.kms_key.to_string(),
            dns_suffix: cluster.region.partition().dns_suffix(),
        }
    }

    /// The name of the bucket.
    #[must_use]
    pub(crate) fn bucket(&self) -> &str {
        self.uri.bucket()
    }

    /// Uploads an object unless S3 has the same content under its key. `key` is relative to the prefix of the store.
    pub(crate) async fn put(
        &self,
        run: &Run,
        key: &str,
        bytes: &Zeroizing<Vec<u8>>,
    ) -> Result<StoredAsset, DeployError> {
        let (bucket, key, sha256) = (self.uri.bucket(), self.full_key(key), sha256_base64(bytes));
        // Whoever may write to the bucket knows the key, which is a digest, and can put anything there. Only S3's own checksum counts.
        let is_ours = |stored: &StoredObject| stored.sha256.as_ref() == Some(&sha256);
        if let Some(stored) = run.clients.stored_object(bucket, &key).await?.filter(is_ours) {
            return Ok(StoredAsset { uploaded: false, version: stored.version });
        }
        let upload = Upload {
            bucket,
            key: &key,
            bytes,
            sha256: &sha256,
            kms_key: &self.kms_key,
            content_type: "application/json",
        };
        let version = run.clients.upload(&upload).await?;
        let stored = run.clients.stored_object(bucket, &key).await?;
        if !stored.as_ref().is_some_and(is_ours) {
            return Err(DeployError::UploadChanged { bucket: bucket.to_owned(), key });
        }
        run.progress.report(Event::Uploaded { key, bytes: bytes.len() });
        Ok(StoredAsset { uploaded: true, version })
    }

    /// A template as a call carries it: its text if that fits, else the URL of its upload.
    pub(crate) async fn template_source(&self, run: &Run, text: &str) -> Result<TemplateSource, DeployError> {
        if text.len() <= TemplateSource::LARGEST_INLINE {
            return Ok(TemplateSource::Inline(text.to_owned()));
        }
        let bytes = Zeroizing::new(text.as_bytes().to_vec());
        let digest = hexadecimal(digest(&SHA256, &bytes).as_ref());
        let key = format!("{}/stacks/{digest}.json", self.cluster);
        let asset = self.put(run, &key, &bytes).await?;
        let (key, version) = (self.full_key(&key), asset.version.as_deref());
        Ok(TemplateSource::Url(run.clients.object_url(self.bucket(), &key, version, self.dns_suffix)))
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}{key}", self.uri.key_prefix())
    }
}

fn sha256_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(digest(&SHA256, bytes))
}
