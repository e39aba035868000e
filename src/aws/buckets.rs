//! Buckets and the objects in them.

use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, ChecksumMode, CreateBucketConfiguration,
    PublicAccessBlockConfiguration, ServerSideEncryption, ServerSideEncryptionByDefault,
    ServerSideEncryptionConfiguration, ServerSideEncryptionRule, VersioningConfiguration,
};
use bytes::Bytes;
use zeroize::Zeroizing;

use super::actions;
use super::{AwsError, Cause, Clients};

/// What is known of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BucketFacts {
    /// There is no such bucket.
    Missing,
    /// The caller may not read the bucket, whoever owns it.
    Forbidden,
    /// The bucket belongs to another account, which lets the caller read it.
    Foreign,
    /// The bucket is in another region.
    Elsewhere {
        /// That region.
        region: String,
    },
    /// The bucket exists.
    Found {
        /// The region of the bucket.
        region: String,
        /// Whether nothing in the bucket can be made public.
        public_access_blocked: bool,
    },
}

/// What S3 knows of an object without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredObject {
    /// The SHA-256 of the content in Base64, as S3 computed it; none if the object was uploaded with another checksum.
    pub sha256: Option<String>,
    /// The version of the object; none if the bucket keeps no versions.
    pub version: Option<String>,
}

/// An object to upload.
#[derive(Clone, Debug)]
pub(crate) struct Upload<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The whole key.
    pub key: &'a str,
    /// The content of the object.
    pub bytes: &'a Zeroizing<Vec<u8>>,
    /// The SHA-256 of the content, in Base64, which S3 compares.
    pub sha256: &'a str,
    /// The KMS key that the object is encrypted with.
    pub kms_key: &'a str,
    /// The content type of the object.
    pub content_type: &'static str,
}

impl Clients {
    /// Reads what is known about a bucket.
    pub(crate) async fn read_bucket(&self, name: &str) -> Result<BucketFacts, AwsError> {
        let owner = self.bucket_owner().await?;
        let head = self.s3.head_bucket().bucket(name).expected_bucket_owner(owner);
        let mut answer = head.clone().send().await;
        if http_status_of(&answer) == Some(403) && self.is_readable_of_any_owner(name).await {
            // A permission that was granted a moment ago is not known everywhere yet: one refusal alone says nothing about the owner.
            answer = head.send().await;
            if http_status_of(&answer) == Some(403) {
                return Ok(BucketFacts::Foreign);
            }
        }
        let status = http_status_of(&answer);
        let elsewhere = answer
            .as_ref()
            .err()
            .and_then(|error| error.raw_response()?.headers().get("x-amz-bucket-region").map(str::to_owned));
        let own = self.region().unwrap_or_default();
        let answer =
            answer.map_err(AwsError::of(actions::S3_LIST_BUCKET)).map_err(|error| in_words(error, status));
        match answer {
            Ok(found) => {
                let region = found.bucket_region.unwrap_or_else(|| own.to_owned());
                if region != own {
                    return Ok(BucketFacts::Elsewhere { region });
                }
                let public_access_blocked = self.is_public_access_blocked(name).await?;
                Ok(BucketFacts::Found { region, public_access_blocked })
            }
            Err(error) => match (status, elsewhere) {
                (Some(404), _) => Ok(BucketFacts::Missing),
                (Some(301 | 400), Some(region)) if region != own => Ok(BucketFacts::Elsewhere { region }),
                _ if error.cause == Cause::Credentials => Err(error),
                (Some(403), _) => Ok(BucketFacts::Forbidden),
                _ => Err(error),
            },
        }
    }

    /// Whether the same call succeeds if no owner is demanded: S3 gives no reason with a refusal.
    async fn is_readable_of_any_owner(&self, name: &str) -> bool {
        self.s3.head_bucket().bucket(name).send().await.is_ok()
    }

    async fn is_public_access_blocked(&self, name: &str) -> Result<bool, AwsError> {
        let owner = self.bucket_owner().await?;
        let answer = self.s3.get_public_access_block().bucket(name).expected_bucket_owner(owner).send().await;
        match answer.map_err(AwsError::of(actions::S3_GET_BUCKET_PUBLIC_ACCESS_BLOCK)) {
            Ok(answer) => Ok(answer.public_access_block_configuration.is_some_and(|block| {
                [
                    block.block_public_acls,
                    block.ignore_public_acls,
                    block.block_public_policy,
                    block.restrict_public_buckets,
                ]
                .into_iter()
                .all(|part| part == Some(true))
            })),
            Err(error) if error.has_code("NoSuchPublicAccessBlockConfiguration") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a bucket holds no object.
    pub(crate) async fn is_bucket_empty(&self, name: &str) -> Result<bool, AwsError> {
        let owner = self.bucket_owner().await?;
        let call = self.s3.list_objects_v2().bucket(name).max_keys(1).expected_bucket_owner(owner);
        let answer = call.send().await;
        let answer = answer.map_err(AwsError::of(actions::S3_LIST_BUCKET))?;
        Ok(answer.contents.unwrap_or_default().is_empty())
    }

    /// Creates a bucket that is encrypted, keeps old versions, and that no other account and no call without TLS can read.
    pub(crate) async fn create_private_bucket(
        &self,
        name: &str,
        kms_key: &str,
        partition: &str,
    ) -> Result<(), AwsError> {
        let owner = self.bucket_owner().await?;
        let region = self.region().unwrap_or_default();
        // S3's first region is the one that must not be named.
        let constraint = (region != "us-east-1").then(|| {
            CreateBucketConfiguration::builder()
                .location_constraint(BucketLocationConstraint::from(region))
                .build()
        });
        let call = self.s3.create_bucket().bucket(name).set_create_bucket_configuration(constraint);
        match call.send().await.map_err(AwsError::of(actions::S3_CREATE_BUCKET)) {
            Err(error) if error.has_code("BucketAlreadyOwnedByYou") => {}
            other => {
                other?;
            }
        }
        let block = PublicAccessBlockConfiguration::builder()
            .block_public_acls(true)
            .ignore_public_acls(true)
            .block_public_policy(true)
            .restrict_public_buckets(true)
            .build();
        let call = self.s3.put_public_access_block().bucket(name).public_access_block_configuration(block);
        let call = call.expected_bucket_owner(&owner);
        call.send().await.map_err(AwsError::of(actions::S3_PUT_BUCKET_PUBLIC_ACCESS_BLOCK))?;
        self.encrypt_bucket(name, kms_key, &owner).await?;
        let versioning = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        let call = self.s3.put_bucket_versioning().bucket(name).versioning_configuration(versioning);
        let call = call.expected_bucket_owner(&owner);
        call.send().await.map_err(AwsError::of(actions::S3_PUT_BUCKET_VERSIONING))?;
        let call = self.s3.put_bucket_policy().bucket(name).policy(tls_only_policy(name, partition));
        let call = call.expected_bucket_owner(&owner);
        call.send().await.map_err(AwsError::of(actions::S3_PUT_BUCKET_POLICY)).map(|_| ())
    }

    async fn encrypt_bucket(&self, name: &str, kms_key: &str, owner: &str) -> Result<(), AwsError> {
        let failed =
            |error| AwsError::incomplete(actions::S3_PUT_ENCRYPTION_CONFIGURATION, format!("{error}"));
        let by_default = ServerSideEncryptionByDefault::builder()
            .sse_algorithm(ServerSideEncryption::AwsKms)
            .kms_master_key_id(kms_key)
            .build()
            .map_err(failed)?;
        // Bucket keys change the encryption context that key policies may be written for.
        let rule = ServerSideEncryptionRule::builder()
            .apply_server_side_encryption_by_default(by_default)
            .bucket_key_enabled(false)
            .build();
        let encryption = ServerSideEncryptionConfiguration::builder().rules(rule).build().map_err(failed)?;
        let call =
            self.s3.put_bucket_encryption().bucket(name).server_side_encryption_configuration(encryption);
        let call = call.expected_bucket_owner(owner);
        call.send().await.map_err(AwsError::of(actions::S3_PUT_ENCRYPTION_CONFIGURATION)).map(|_| ())
    }

    /// What S3 knows of an object, if it exists.
    pub(crate) async fn stored_object(
        &self,
        bucket: &str,
        key: &str,
    ) -> Result<Option<StoredObject>, AwsError> {
        let owner = self.bucket_owner().await?;
        let call = self.s3.head_object().bucket(bucket).key(key).expected_bucket_owner(owner);
        let answer = call.checksum_mode(ChecksumMode::Enabled).send().await;
        let status =
            answer.as_ref().err().and_then(|error| error.raw_response()).map(|raw| raw.status().as_u16());
        match answer.map_err(AwsError::of(actions::S3_GET_OBJECT)) {
            Ok(answer) => Ok(Some(StoredObject {
                sha256: answer.checksum_sha256,
                version: version_kept_by_bucket(answer.version_id),
            })),
            Err(_) if status == Some(404) => Ok(None),
            Err(error) => Err(in_words(error, status)),
        }
    }

    /// The content of an object, if it exists.
    pub(crate) async fn object_bytes(
        &self,
        bucket: &str,
        key: &str,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, AwsError> {
        let owner = self.bucket_owner().await?;
        let answer = self.s3.get_object().bucket(bucket).key(key).expected_bucket_owner(owner).send().await;
        match answer.map_err(AwsError::of(actions::S3_GET_OBJECT)) {
            Ok(answer) => {
                let body = answer.body.collect().await;
                let body =
                    body.map_err(|error| AwsError::incomplete(actions::S3_GET_OBJECT, error.to_string()))?;
                Ok(Some(Zeroizing::new(body.to_vec())))
            }
            Err(error) if error.has_code("NoSuchKey") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Uploads an object, encrypted, and has S3 compare what arrived; gives its version if the bucket keeps versions.
    pub(crate) async fn upload(&self, upload: &Upload<'_>) -> Result<Option<String>, AwsError> {
        let owner = self.bucket_owner().await?;
        let call = self
            .s3
            .put_object()
            .bucket(upload.bucket)
            .key(upload.key)
            .expected_bucket_owner(owner)
            .body(ByteStream::from(Bytes::from_owner(upload.bytes.clone())))
            .content_type(upload.content_type)
            .checksum_sha256(upload.sha256)
            .server_side_encryption(ServerSideEncryption::AwsKms)
            .ssekms_key_id(upload.kms_key)
            .bucket_key_enabled(false);
        let answer = call.send().await.map_err(AwsError::of(actions::S3_PUT_OBJECT))?;
        Ok(version_kept_by_bucket(answer.version_id))
    }

    /// Where CloudFormation reads an object: one version of it, if a version is named.
    #[must_use]
    pub(crate) fn object_url(&self, bucket: &str, key: &str, version: Option<&str>, suffix: &str) -> String {
        let url = match self.endpoint_url() {
            Some(endpoint) => format!("{}/{bucket}/{key}", endpoint.trim_end_matches('/')),
            None => regional_url(bucket, key, self.region().unwrap_or_default(), suffix),
        };
        match version {
            Some(version) => format!("{url}?versionId={version}"),
            None => url,
        }
    }
}

/// The HTTP status of a refusal.
fn http_status_of<T, E>(answer: &Result<T, SdkError<E>>) -> Option<u16> {
    answer.as_ref().err()?.raw_response().map(|raw| raw.status().as_u16())
}

/// The URL of an object at AWS. S3's certificate covers one label before its own name, so a bucket with dots in its name is in the path.
fn regional_url(bucket: &str, key: &str, region: &str, suffix: &str) -> String {
    let host = format!("s3.{region}.{suffix}");
    if bucket.contains('.') {
        format!("https://{host}/{bucket}/{key}")
    } else {
        format!("https://{bucket}.{host}/{key}")
    }
}

/// A version that stays when the object is written again. S3 calls what it overwrites in place `null`.
fn version_kept_by_bucket(version: Option<String>) -> Option<String> {
    version.filter(|version| version != "null")
}

/// Responses to HEAD requests have no message: the status has to do.
fn in_words(error: AwsError, status: Option<u16>) -> AwsError {
    let Some(status) = status.filter(|_| error.code.is_none()) else { return error };
    let (cause, code, message) = match status {
        400 => (Cause::Credentials, None, "S3 answers 400 and no more, as to expired credentials".to_owned()),
        403 if error.clock.is_some() => {
            (Cause::Credentials, None, "S3 answers 403 and no more, as to a clock that is off".to_owned())
        }
        403 => (
            Cause::Refused,
            Some("AccessDenied".to_owned()),
            format!("S3 answers 403: not authorized to perform: {}", error.operation),
        ),
        _ => (error.cause, None, format!("S3 answers {status} and no more")),
    };
    AwsError { cause, code, message, ..error }
}

fn tls_only_policy(bucket: &str, partition: &str) -> String {
    serde_json::json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Sid": "TlsOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [format!("arn:{partition}:s3:::{bucket}"), format!("arn:{partition}:s3:::{bucket}/*")],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::regional_url;

    #[test]
    fn a_bucket_with_dots_is_in_the_path_because_no_certificate_has_its_name() {
        let url = |bucket| regional_url(bucket, "clusters/a.json", "eu-west-1", "amazonaws.com");
        assert_eq!(url("assets"), "https://assets.s3.eu-west-1.amazonaws.com/clusters/a.json");
        assert_eq!(
            url("assets.example"),
            "https://s3.eu-west-1.amazonaws.com/assets.example/clusters/a.json"
        );
    }
}
