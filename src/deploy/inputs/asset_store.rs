//! The prefix of an S3 bucket that holds a cluster's assets: an object is uploaded unless it exists.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use zeroize::Zeroizing;

use crate::aws::{TemplateSource, Upload};
use crate::config::Cluster;
use crate::config::values::S3Uri;
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::run::Run;
use crate::hexadecimal::hexadecimal;

/// The largest template that CloudFormation accepts within a call.
pub(crate) const LARGEST_INLINE: usize = 51_200;

/// Where the assets of a cluster are, and how they are encrypted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AssetStore {
    uri: S3Uri,
    cluster: String,
    kms_key: String,
    dns_suffix: &'static str,
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

    /// Uploads an object unless it exists; returns whether it did. `key` is relative to the prefix of the store.
    pub(crate) async fn put(
        &self,
        run: &Run,
        key: &str,
        bytes: &Zeroizing<Vec<u8>>,
    ) -> Result<bool, DeployError> {
        let (bucket, key) = (self.uri.bucket(), self.full_key(key));
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        // The key is the digest of the content: the same key with another size is left by a broken upload.
        if run.clients.object_size(bucket, &key).await? == Some(size) {
            return Ok(false);
        }
        let upload = Upload {
            bucket,
            key: &key,
            bytes,
            sha256: &sha256_base64(bytes),
            kms_key: &self.kms_key,
            content_type: "application/json",
        };
        run.clients.upload(&upload).await?;
        if run.clients.object_size(bucket, &key).await? != Some(size) {
            return Err(DeployError::UploadChanged { bucket: bucket.to_owned(), key: key.clone(), size });
        }
        run.progress.report(Event::Uploaded { key, bytes: bytes.len() });
        Ok(true)
    }

    /// A template as a call carries it: its text if that fits, else the URL of its upload.
    pub(crate) async fn template_source(&self, run: &Run, text: &str) -> Result<TemplateSource, DeployError> {
        if text.len() <= LARGEST_INLINE {
            return Ok(TemplateSource::Inline(text.to_owned()));
        }
        let bytes = Zeroizing::new(text.as_bytes().to_vec());
        let digest = hexadecimal(digest(&SHA256, &bytes).as_ref());
        let key = format!("{}/stacks/{digest}.json", self.cluster);
        self.put(run, &key, &bytes).await?;
        let url = run.clients.object_url(self.bucket(), &self.full_key(&key), self.dns_suffix);
        Ok(TemplateSource::Url(url))
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}{key}", self.uri.key_prefix())
    }
}

fn sha256_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(digest(&SHA256, bytes))
}
