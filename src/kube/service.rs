//! Services that have a load balancer of their own, which must be deleted before the network can be.

use serde::Deserialize;

use super::api_server::Propagation;
use super::list::Metadata;
use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

const SERVICES: &str = "/api/v1/services";

/// Which Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServiceDocument {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "type")]
    kind: String,
}

impl ApiServer {
    /// Every Service with a load balancer, in any namespace.
    pub(crate) async fn load_balancer_services(&self) -> Result<Vec<ServiceName>, KubeError> {
        let documents: Vec<ServiceDocument> = self.list(SERVICES, None).await?;
        let balanced = documents.into_iter().filter(|document| document.spec.kind == "LoadBalancer");
        Ok(balanced
            .map(|document| ServiceName {
                namespace: document.metadata.namespace,
                name: document.metadata.name,
            })
            .collect())
    }

    /// Deletes a Service; false if there was none. Its load balancer is deleted later, and the Service stays visible until then.
    pub(crate) async fn delete_service(&self, service: &ServiceName) -> Result<bool, KubeError> {
        let ServiceName { namespace, name } = service;
        let path = format!(
            "/api/v1/namespaces/{}/services/{}",
            encode_path_segment(namespace),
            encode_path_segment(name)
        );
        self.delete(&path, Propagation::Background).await
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_server::{json_answer, serve};
    use super::ServiceName;

    #[tokio::test]
    async fn services_with_a_load_balancer_are_found_and_deleted() -> Result<(), Box<dyn Error>> {
        let server = serve(|_| {
            json_answer(
                "200 OK",
                r#"{"items": [
                    {"metadata": {"name": "kubernetes", "namespace": "default"}, "spec": {"type": "ClusterIP"}},
                    {"metadata": {"name": "board", "namespace": "ada"}, "spec": {"type": "LoadBalancer"}}]}"#,
            )
        })?;
        let client = server.client()?;
        let board = ServiceName { namespace: "ada".to_owned(), name: "board".to_owned() };
        let found = client.load_balancer_services().await?;
        assert_eq!(found, std::slice::from_ref(&board));
        assert!(server.requests.recv()?.starts_with("GET /api/v1/services?limit=500 "));
        assert!(client.delete_service(&board).await?);
        let request = server.requests.recv()?;
        assert!(
            request.starts_with("DELETE /api/v1/namespaces/ada/services/board HTTP/1.1\r\n"),
            "{request}"
        );
        Ok(())
    }
}
