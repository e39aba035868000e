//! Lists, which the API returns page by page.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::connection::{Accepted, Question};
use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

const PAGE: u32 = 500;
const EXPIRED: u16 = 410;

/// An object: its metadata, what is asked for, and what there is.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Object<Spec, Status> {
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    pub(super) status: Status,
}

/// The metadata of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Later is greater.
    pub(super) creation_timestamp: String,
    pub(super) deletion_timestamp: Option<String>,
}

/// One of the things that are true or not of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: ConditionStatus,
    pub(super) reason: String,
    pub(super) message: String,
    /// Later is greater.
    #[serde(rename = "lastTransitionTime")]
    pub(super) since: Option<String>,
}

/// Whether a condition is true.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) enum ConditionStatus {
    True,
    False,
    #[default]
    #[serde(other)]
    Unknown,
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl ApiServer {
    /// Every object of the collection at `path` that the selectors, an encoded query, let through.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        selectors: Option<&str>,
    ) -> Result<Vec<T>, KubeError> {
        self.list_as(Accepted::Everything, path, selectors).await
    }

    /// The metadata of the objects of the collection at `path`, of all or of those that selectors choose.
    pub(super) async fn list_metadata<T: DeserializeOwned>(
        &self,
        path: &str,
        selectors: Option<&str>,
    ) -> Result<Vec<T>, KubeError> {
        self.list_as(Accepted::MetadataList, path, selectors).await
    }

    async fn list_as<T: DeserializeOwned>(
        &self,
        accepted: Accepted,
        path: &str,
        selectors: Option<&str>,
    ) -> Result<Vec<T>, KubeError> {
        match self.list_in_pages(accepted, path, selectors, PAGE).await {
            // A continue token expires after minutes; without a limit there is one page.
            Err(error) if error.status() == Some(EXPIRED) => {
                self.list_in_pages(accepted, path, selectors, 0).await
            }
            listed => listed,
        }
    }

    async fn list_in_pages<T: DeserializeOwned>(
        &self,
        accepted: Accepted,
        path: &str,
        selectors: Option<&str>,
        limit: u32,
    ) -> Result<Vec<T>, KubeError> {
        let mut first = format!("{path}?limit={limit}");
        if let Some(selectors) = selectors {
            first = format!("{first}&{selectors}");
        }
        let mut items = Vec::new();
        let mut next = first.clone();
        loop {
            let page: Page<T> = self.ask_json(&Question { accepted, ..Question::get(&next) }).await?;
            items.extend(page.items.unwrap_or_default());
            match page.metadata.next {
                Some(token) if !token.is_empty() => {
                    next = format!("{first}&continue={}", encode_path_segment(&token));
                }
                _ => return Ok(items),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_server::{json_answer, serve};
    use super::{Deserialize, Metadata};

    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }

    #[tokio::test]
    async fn every_page_is_read() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| match request.split(' ').nth(1) {
            Some("/things?limit=500&labelSelector=a") => json_answer(
                "200 OK",
                r#"{"metadata":{"continue":"b=/"},"items":[{"metadata":{"name":"one"}}]}"#,
            ),
            Some("/things?limit=500&labelSelector=a&continue=b%3D%2F") => {
                json_answer("200 OK", r#"{"metadata":{"continue":""},"items":[{"metadata":{"name":"two"}}]}"#)
            }
            _ => json_answer("400 Bad Request", "{}"),
        })?;
        let objects: Vec<Object> = server.client()?.list("/things", Some("labelSelector=a")).await?;
        let names: Vec<_> = objects.into_iter().map(|object| object.metadata.name).collect();
        assert_eq!(names, ["one", "two"]);
        Ok(())
    }

    #[tokio::test]
    async fn an_expired_list_is_read_again_in_one_piece() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| match request.split(' ').nth(1) {
            Some("/things?limit=500") => json_answer(
                "200 OK",
                r#"{"metadata":{"continue":"b"},"items":[{"metadata":{"name":"one"}}]}"#,
            ),
            Some("/things?limit=0") => json_answer("200 OK", r#"{"items":[{"metadata":{"name":"all"}}]}"#),
            _ => json_answer("410 Gone", r#"{"reason":"Expired","message":"too old"}"#),
        })?;
        let objects: Vec<Object> = server.client()?.list("/things", None).await?;
        let names: Vec<_> = objects.into_iter().map(|object| object.metadata.name).collect();
        assert_eq!(names, ["all"]);
        Ok(())
    }
}
