//! New KMS keys, and the aliases and tags by which they are found again.

use std::collections::{BTreeMap, BTreeSet};

use aws_config::retry::RetryConfig;
use aws_sdk_kms::types::Tag;

use super::actions::{self, Action};
use super::keys::key_of;
use super::{AwsError, Clients, Key};

impl Clients {
    /// Creates a symmetric key with AWS's default policy, which leaves its use to IAM policies.
    ///
    /// KMS has no token that makes a retry the same call, so the call is made once: where the answer is lost, the tags say whether
    /// there is a key.
    pub(crate) async fn create_key(&self, description: &str, tags: &[(&str, &str)]) -> Result<Key, AwsError> {
        const ACTION: Action = actions::KMS_CREATE_KEY;
        let tags = tags.iter().map(|(key, value)| Tag::builder().tag_key(*key).tag_value(*value).build());
        let tags: Result<Vec<Tag>, _> = tags.collect();
        let tags = tags.map_err(|error| AwsError::incomplete(ACTION, error.to_string()))?;
        let call = self.kms.create_key().description(description).set_tags(Some(tags)).customize();
        let once = aws_sdk_kms::config::Config::builder().retry_config(RetryConfig::disabled());
        let answer = call.config_override(once).send().await.map_err(AwsError::of(ACTION))?;
        let key = answer.key_metadata.map(key_of);
        key.ok_or_else(|| AwsError::incomplete(ACTION, "the answer names no key".to_owned()))
    }

    /// Has KMS give a key new material once a year.
    pub(crate) async fn enable_key_rotation(&self, key: &str) -> Result<(), AwsError> {
        let call = self.kms.enable_key_rotation().key_id(key);
        call.send().await.map_err(AwsError::of(actions::KMS_ENABLE_KEY_ROTATION)).map(|_| ())
    }

    /// Gives a key an alias.
    pub(crate) async fn create_alias(&self, alias: &str, key: &str) -> Result<(), AwsError> {
        let call = self.kms.create_alias().alias_name(alias).target_key_id(key);
        call.send().await.map_err(AwsError::of(actions::KMS_CREATE_ALIAS)).map(|_| ())
    }

    /// The tags of a key.
    pub(crate) async fn key_tags(&self, key: &str) -> Result<BTreeMap<String, String>, AwsError> {
        let mut pages = self.kms.list_resource_tags().key_id(key).into_paginator().items().send();
        let mut tags = BTreeMap::new();
        while let Some(next) = pages.next().await {
            let tag = next.map_err(AwsError::of(actions::KMS_LIST_RESOURCE_TAGS))?;
            tags.insert(tag.tag_key, tag.tag_value);
        }
        Ok(tags)
    }

    /// The ARNs of the region's keys that have no alias.
    pub(crate) async fn keys_without_alias(&self) -> Result<Vec<String>, AwsError> {
        let mut pages = self.kms.list_aliases().into_paginator().items().send();
        let mut with_alias = BTreeSet::new();
        while let Some(next) = pages.next().await {
            with_alias.extend(next.map_err(AwsError::of(actions::KMS_LIST_ALIASES))?.target_key_id);
        }
        let mut pages = self.kms.list_keys().into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let key = next.map_err(AwsError::of(actions::KMS_LIST_KEYS))?;
            if key.key_id.as_ref().is_some_and(|id| !with_alias.contains(id)) {
                found.extend(key.key_arn);
            }
        }
        found.sort();
        Ok(found)
    }
}
