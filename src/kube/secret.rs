//! Secrets: which there are, and storing one again unchanged. Their data never comes here.

use hyper::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::connection::{Accepted, Question};
use super::list::Metadata;
use super::path::encode;
use super::{ApiServer, KubeError, ObjectName};

const MERGE: &str = "application/merge-patch+json";
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

impl ApiServer {
    /// The names of all Secrets.
    pub(crate) async fn secret_names(&self) -> Result<Vec<ObjectName>, KubeError> {
        let secrets: Vec<Named> = self.list_metadata("/api/v1/secrets").await?;
        let names = secrets.into_iter().map(|secret| secret.metadata);
        Ok(names.map(|metadata| ObjectName::new("Secret", &metadata.namespace, &metadata.name)).collect())
    }

    /// Stores a Secret again as it is, by a patch that changes nothing. The API server writes it only if it was not encrypted with the key that
    /// encrypts now.
    pub(crate) async fn store_secret_again(&self, name: &ObjectName) -> Result<(), KubeError> {
        let path = format!("/api/v1/namespaces/{}/secrets/{}", encode(&name.namespace), encode(&name.name));
        let question = Question {
            method: Method::PATCH,
            path: &path,
            content: Some((MERGE, &json!({}))),
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
    use super::super::test_server::{json_answer, serve};

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
}
