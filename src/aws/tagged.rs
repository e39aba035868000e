//! Everything that carries a tag, whatever it is.

use aws_sdk_resourcegroupstagging::types::TagFilter;

use super::actions;
use super::{AwsError, Clients};

impl Clients {
    /// The ARNs of everything in the region that carries a tag.
    ///
    /// The service learns of deletions late: the caller confirms each hit with the service of the resource.
    pub(crate) async fn tagged(&self, key: &str, value: &str) -> Result<Vec<String>, AwsError> {
        self.tagged_with_all(&[(key, value)]).await
    }

    /// The ARNs of everything in the region that carries all of some tags, as [`Clients::tagged`].
    pub(crate) async fn tagged_with_all(&self, tags: &[(&str, &str)]) -> Result<Vec<String>, AwsError> {
        let filters = tags.iter().map(|(key, value)| TagFilter::builder().key(*key).values(*value).build());
        let call = self.tagging.get_resources().set_tag_filters(Some(filters.collect()));
        let mut pages = call.into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let mapping = next.map_err(AwsError::of(actions::TAG_GET_RESOURCES))?;
            found.extend(mapping.resource_arn);
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}
