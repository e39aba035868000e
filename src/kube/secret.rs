//! Secrets: which there are, creating and changing them, and storing one again unchanged. Data goes out and never comes back: answers
//! hold metadata alone.

use std::collections::BTreeMap;

use hyper::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::api_server::JSON;
use super::connection::{Accepted, Content, Question};
use super::list::Metadata;
use super::path::encode_path_segment;
use super::secret_document::{SecretEntry, with_data};
use super::{ApiServer, KubeError, ObjectName};

const MERGE: &str = "application/merge-patch+json";
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

/// A Secret without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretMetadata {
    /// The name of the Secret.
    pub name: String,
    /// The namespace of the Secret.
    pub namespace: String,
    /// The labels of the Secret.
    pub labels: BTreeMap<String, String>,
    /// The annotations of the Secret.
    pub annotations: BTreeMap<String, String>,
    /// When it was created, as the API writes it.
    pub created: String,
    /// Which of its versions this is.
    pub version: String,
}

impl From<Named> for SecretMetadata {
    fn from(Named { metadata }: Named) -> Self {
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            labels: metadata.labels,
            annotations: metadata.annotations,
            created: metadata.creation_timestamp,
            version: metadata.resource_version,
        }
    }
}

/// Kubernetes' types of Secrets that pods use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretType {
    /// Any keys and values.
    Opaque,
    /// The login to a registry.
    Registry,
}

impl SecretType {
    /// The name of the type.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Opaque => "Opaque",
            Self::Registry => "kubernetes.io/dockerconfigjson",
        }
    }
}

fn secrets_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/secrets", encode_path_segment(namespace))
}

fn path_of(namespace: &str, name: &str) -> String {
    format!("{}/{}", secrets_path(namespace), encode_path_segment(name))
}

impl ApiServer {
    /// The names of all Secrets.
    pub(crate) async fn secret_names(&self) -> Result<Vec<ObjectName>, KubeError> {
        let secrets: Vec<Named> = self.list_metadata("/api/v1/secrets", None).await?;
        let names = secrets.into_iter().map(|secret| secret.metadata);
        Ok(names.map(|metadata| ObjectName::new("Secret", &metadata.namespace, &metadata.name)).collect())
    }

    /// The Secrets of a namespace that a label selector chooses.
    pub(crate) async fn secrets(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<SecretMetadata>, KubeError> {
        let selector = format!("labelSelector={}", encode_path_segment(selector));
        let found: Vec<Named> = self.list_metadata(&secrets_path(namespace), Some(&selector)).await?;
        Ok(found.into_iter().map(SecretMetadata::from).collect())
    }

    /// A Secret, if it exists.
    pub(crate) async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<SecretMetadata>, KubeError> {
        let path = path_of(namespace, name);
        let question = Question { accepted: Accepted::Metadata, ..Question::get(&path) };
        match self.ask_json::<Named>(&question).await {
            Err(error) if error.status() == Some(NOT_FOUND) => Ok(None),
            found => Ok(Some(found?.into())),
        }
    }

    /// Whether there is a Secret of this name and type. Metadata does not say the type, so the API selects by it.
    pub(crate) async fn has_secret_of_type(
        &self,
        namespace: &str,
        name: &str,
        kind: SecretType,
    ) -> Result<bool, KubeError> {
        let selector = format!(
            "fieldSelector={}",
            encode_path_segment(&format!("metadata.name={name},type={}", kind.name()))
        );
        let found: Vec<Named> = self.list_metadata(&secrets_path(namespace), Some(&selector)).await?;
        Ok(!found.is_empty())
    }

    /// Creates a Secret; false if there is one of this name.
    pub(crate) async fn create_secret(
        &self,
        kind: SecretType,
        metadata: &Value,
        data: &[SecretEntry<'_>],
    ) -> Result<bool, KubeError> {
        let head = json!({"apiVersion": "v1", "kind": "Secret", "type": kind.name(), "metadata": metadata});
        let text = with_data(&head, data);
        let path = secrets_path(metadata["namespace"].as_str().unwrap_or_default());
        let question = Question {
            method: Method::POST,
            path: &path,
            content: Some((JSON, Content::Secret(&text))),
            accepted: Accepted::Metadata,
        };
        match self.ask_json::<IgnoredAny>(&question).await {
            Err(error) if error.status() == Some(CONFLICT) => Ok(false),
            created => created.map(|_| true),
        }
    }

    /// Sets some keys and fields of metadata of a Secret, and leaves its other keys; false if it is another version by now, or gone.
    pub(crate) async fn change_secret(
        &self,
        secret: &SecretMetadata,
        metadata: &Value,
        data: &[SecretEntry<'_>],
    ) -> Result<bool, KubeError> {
        let mut metadata = metadata.clone();
        metadata["resourceVersion"] = json!(secret.version);
        let text = with_data(&json!({"metadata": metadata}), data);
        let path = path_of(&secret.namespace, &secret.name);
        let question = Question {
            method: Method::PATCH,
            path: &path,
            content: Some((MERGE, Content::Secret(&text))),
            accepted: Accepted::Metadata,
        };
        match self.ask_json::<IgnoredAny>(&question).await {
            Err(error) if matches!(error.status(), Some(NOT_FOUND | CONFLICT)) => Ok(false),
            changed => changed.map(|_| true),
        }
    }

    /// Stores a Secret again as it is, by a patch that changes nothing. The API server writes it only if it was not encrypted with the key that
    /// encrypts now.
    pub(crate) async fn store_secret_again(&self, name: &ObjectName) -> Result<(), KubeError> {
        let path = path_of(&name.namespace, &name.name);
        let question = Question {
            method: Method::PATCH,
            path: &path,
            content: Some((MERGE, Content::Document(&json!({})))),
            accepted: Accepted::Metadata,
        };
        match self.ask_json::<IgnoredAny>(&question).await {
            // It was deleted, or someone else has stored it meanwhile.
            Err(error) if matches!(error.status(), Some(NOT_FOUND | CONFLICT)) => Ok(()),
            stored => stored.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::ObjectName;
    use serde_json::json;

    use super::super::test_server::{json_answer, serve};
    use super::super::{SecretMetadata, SecretType};
    use crate::credentials::SecretText;

    #[tokio::test]
    async fn secrets_are_named_and_stored_again_without_their_data() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| match request.split(' ').nth(1) {
            Some("/api/v1/secrets?limit=500") => {
                json_answer("200 OK", r#"{"items":[{"metadata":{"namespace":"a","name":"b"}}]}"#)
            }
            Some("/api/v1/namespaces/a/secrets/gone") => json_answer("404 Not Found", "{}"),
            Some("/api/v1/namespaces/a/secrets/busy") => json_answer("409 Conflict", "{}"),
            Some("/api/v1/namespaces/a/secrets/guarded") => json_answer("403 Forbidden", "{}"),
            _ => json_answer("200 OK", "{}"),
        })?;
        let client = server.client()?;
        assert_eq!(client.secret_names().await?, [ObjectName::new("Secret", "a", "b")]);
        let request = server.requests.recv()?;
        assert!(request.contains("\r\naccept: application/json;as=PartialObjectMetadataList;"), "{request}");
        for name in ["b", "gone", "busy"] {
            client.store_secret_again(&ObjectName::new("Secret", "a", name)).await?;
            let request = server.requests.recv()?;
            assert!(request.starts_with(&format!("PATCH /api/v1/namespaces/a/secrets/{name} ")), "{request}");
            assert!(request.contains("\r\naccept: application/json;as=PartialObjectMetadata;"), "{request}");
            assert!(request.ends_with("\r\n\r\n{}"), "{request}");
        }
        let guarded = client.store_secret_again(&ObjectName::new("Secret", "a", "guarded")).await;
        assert_eq!(guarded.err().and_then(|error| error.status()), Some(403));
        Ok(())
    }

    #[tokio::test]
    async fn data_goes_out_encoded_and_only_metadata_comes_back() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| match request.split(' ').nth(1) {
            Some("/api/v1/namespaces/a/secrets/b") => {
                json_answer("200 OK", r#"{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"}}"#)
            }
            Some("/api/v1/namespaces/taken/secrets") => json_answer("409 Conflict", "{}"),
            Some("/api/v1/namespaces/a/secrets/gone") => json_answer("404 Not Found", "{}"),
            _ => json_answer("201 Created", r#"{"metadata":{}}"#),
        })?;
        let client = server.client()?;
        let value = SecretText::new("hunter2".to_owned());
        let data = [("KEY", &value)];
        let metadata = json!({"namespace": "a", "name": "b"});
        assert!(client.create_secret(SecretType::Opaque, &metadata, &data).await?);
        let request = server.requests.recv()?;
        assert!(request.starts_with("POST /api/v1/namespaces/a/secrets HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\naccept: application/json;as=PartialObjectMetadata;"), "{request}");
        assert!(request.ends_with(
            r#""type":"Opaque","metadata":{"namespace":"a","name":"b"},"data":{"KEY":"aHVudGVyMg=="}}"#
        ));
        let taken = json!({"namespace": "taken", "name": "b"});
        assert!(!client.create_secret(SecretType::Opaque, &taken, &data).await?);
        server.requests.recv()?;

        assert_eq!(client.secret("a", "gone").await?, None);
        server.requests.recv()?;
        let found: SecretMetadata = client.secret("a", "b").await?.ok_or("there is none")?;
        let request = server.requests.recv()?;
        assert!(request.contains("\r\naccept: application/json;as=PartialObjectMetadata;"), "{request}");
        assert!(client.change_secret(&found, &json!({}), &data).await?);
        let request = server.requests.recv()?;
        assert!(
            request.ends_with(r#"{"metadata":{"resourceVersion":"7"},"data":{"KEY":"aHVudGVyMg=="}}"#),
            "{request}"
        );
        Ok(())
    }
}
