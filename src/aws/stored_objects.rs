//! Objects below a prefix: the newest one, all versions of all of them, and their deletion.

use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use time::OffsetDateTime;

use super::actions;
use super::{AwsError, Clients};

/// The most versions that one call deletes.
const BATCH: usize = 1000;

/// One version of an object that S3 refused to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedObject {
    /// The version.
    pub object: ObjectVersion,
    /// Why, in S3's words.
    pub reason: String,
}

/// One version of an object, or the mark that it was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    /// The key of the object.
    pub key: String,
    /// The version of the object; `null` is that of an object from when the bucket kept none. A deletion without one only hides the object.
    pub version: Option<String>,
}

/// The object below a prefix that was written last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewestObject {
    /// The key of the object.
    pub key: String,
    /// When it was written.
    pub written: OffsetDateTime,
}

impl Clients {
    /// The object below a prefix that was written last; none if there is no object.
    pub(crate) async fn newest_object(
        &self,
        bucket: &str,
        prefix: &str,
    ) -> Result<Option<NewestObject>, AwsError> {
        let owner = self.bucket_owner().await?;
        let call = self.s3.list_objects_v2().bucket(bucket).prefix(prefix).expected_bucket_owner(owner);
        let mut pages = call.into_paginator().send();
        let mut newest: Option<NewestObject> = None;
        while let Some(page) = pages.next().await {
            let page = page.map_err(AwsError::of(actions::S3_LIST_BUCKET))?;
            let found = page.contents.unwrap_or_default().into_iter().filter_map(|object| {
                let written = object.last_modified.and_then(super::to_offset_date_time)?;
                Some(NewestObject { key: object.key?, written })
            });
            newest = newest.into_iter().chain(found).max_by_key(|object| object.written);
        }
        Ok(newest)
    }

    /// Every version of every object below a prefix.
    pub(crate) async fn object_versions(
        &self,
        bucket: &str,
        prefix: &str,
    ) -> Result<Vec<ObjectVersion>, AwsError> {
        let owner = self.bucket_owner().await?;
        let mut found = Vec::new();
        let mut markers = (None, None);
        loop {
            let call = self.s3.list_object_versions().bucket(bucket).prefix(prefix);
            let call = call.expected_bucket_owner(&owner);
            let call = call.set_key_marker(markers.0).set_version_id_marker(markers.1);
            let answer = call.send().await.map_err(AwsError::of(actions::S3_LIST_BUCKET_VERSIONS))?;
            let versions = answer
                .versions
                .unwrap_or_default()
                .into_iter()
                .map(|version| (version.key, version.version_id));
            let marks =
                answer.delete_markers.unwrap_or_default().into_iter().map(|mark| (mark.key, mark.version_id));
            found.extend(
                versions.chain(marks).filter_map(|(key, version)| Some(ObjectVersion { key: key?, version })),
            );
            if answer.is_truncated != Some(true) {
                return Ok(found);
            }
            markers = (answer.next_key_marker, answer.next_version_id_marker);
        }
    }

    /// Deletes versions of objects for good; returns those that S3 refused to delete.
    pub(crate) async fn delete_objects(
        &self,
        bucket: &str,
        objects: &[ObjectVersion],
    ) -> Result<Vec<RefusedObject>, AwsError> {
        let failed = |error| AwsError::incomplete(actions::S3_DELETE_OBJECT_VERSION, format!("{error}"));
        let owner = self.bucket_owner().await?;
        let mut refused = Vec::new();
        for batch in objects.chunks(BATCH) {
            let mut delete = Delete::builder().quiet(true);
            for object in batch {
                let version = object.version.clone();
                let id = ObjectIdentifier::builder().key(&object.key).set_version_id(version);
                delete = delete.objects(id.build().map_err(failed)?);
            }
            let call = self.s3.delete_objects().bucket(bucket).delete(delete.build().map_err(failed)?);
            let call = call.expected_bucket_owner(&owner);
            let answer = call.send().await.map_err(AwsError::of(actions::S3_DELETE_OBJECT_VERSION))?;
            refused.extend(answer.errors.unwrap_or_default().into_iter().map(|error| RefusedObject {
                object: ObjectVersion { key: error.key.unwrap_or_default(), version: error.version_id },
                reason: error.message.or(error.code).unwrap_or_default(),
            }));
        }
        Ok(refused)
    }
}
