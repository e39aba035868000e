//! Claims for storage.

use serde::Deserialize;

use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimDocument {
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<String>,
}

impl ApiServer {
    /// The phase of a persistent volume claim, as `Bound`; nothing if there is no such claim.
    pub(crate) async fn claim_phase(&self, namespace: &str, name: &str) -> Result<Option<String>, KubeError> {
        let path = format!(
            "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
            encode_path_segment(namespace),
            encode_path_segment(name)
        );
        let claim: Option<ClaimDocument> = self.get(&path).await?;
        // A claim that no controller has seen yet has no phase.
        Ok(claim.map(|claim| claim.status.phase.unwrap_or_else(|| "Pending".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_server::{json_answer, serve};

    #[tokio::test]
    async fn a_claim_has_a_phase_or_does_not_exist() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| match request.split(' ').nth(1) {
            Some("/api/v1/namespaces/default/persistentvolumeclaims/data") => {
                json_answer("200 OK", r#"{"metadata":{"name":"data"},"status":{"phase":"Bound"}}"#)
            }
            Some("/api/v1/namespaces/default/persistentvolumeclaims/new") => {
                json_answer("200 OK", r#"{"metadata":{"name":"new"},"status":{}}"#)
            }
            Some("/api/v1/namespaces/default/persistentvolumeclaims/secret") => {
                json_answer("403 Forbidden", r#"{"reason":"Forbidden","message":"no"}"#)
            }
            _ => json_answer("404 Not Found", r#"{"kind":"Status","reason":"NotFound","message":"no"}"#),
        })?;
        let client = server.client()?;
        assert_eq!(client.claim_phase("default", "data").await?.as_deref(), Some("Bound"));
        assert_eq!(client.claim_phase("default", "new").await?.as_deref(), Some("Pending"));
        assert_eq!(client.claim_phase("default", "other").await?, None);
        let error = client.claim_phase("default", "secret").await.err().ok_or("it was accepted")?;
        assert_eq!(error.status(), Some(403));
        Ok(())
    }
}
