//! Everything that carries a tag, whatever it is.

use aws_sdk_resourcegroupstagging::types::TagFilter;

use super::actions;
use super::{AwsError, Clients};

impl Clients {
    /// The ARNs of everything in the region that carries a tag.
    ///
    /// The service learns of deletions late: the caller confirms each hit with the service of the resource.
    pub(crate) async fn tagged(&self, key: &str, value: &str) -> Result<Vec<String>, AwsError> {
        let filter = TagFilter::builder().key(key).values(value).build();
        let mut pages = self.tagging.get_resources().tag_filters(filter).into_paginator().items().send();
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
