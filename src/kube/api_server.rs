//! The API server: documents in, documents out.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::access::ApiAccess;
use super::connection::{Accepted, Answer, ApiConnection, Content, Question};
use super::path::without_query;
use super::refusal::api_refusal;
use super::retry::Retries;
use super::web_socket::WebSocket;
use super::{Address, Body, KubeError};
use crate::credentials::Credentials;

pub(super) const JSON: &str = "application/json";
const NOT_FOUND: u16 = 404;
const HTTPS: u16 = 443;

/// When an object is gone, compared with what belongs to it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Propagation {
    /// After everything that belongs to it.
    Foreground,
    /// At once; what belongs to it is deleted later.
    Background,
}

impl Propagation {
    fn name(self) -> &'static str {
        match self {
            Self::Foreground => "Foreground",
            Self::Background => "Background",
        }
    }
}

/// A cluster's API server, used by its administrator or by a user. Each request has its own connection, and clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct ApiServer {
    connection: Arc<ApiConnection>,
}

impl ApiServer {
    /// The API server whose certificate is for `tls_name`, at `address`, used by the administrator.
    pub(crate) fn new(
        credentials: &Credentials,
        tls_name: &str,
        address: Address,
    ) -> Result<Self, KubeError> {
        Self::with_access(&ApiAccess::of_administrator(credentials)?, tls_name, address)
    }

    /// As [`ApiServer::new`], for any client.
    pub(crate) fn with_access(
        access: &ApiAccess,
        tls_name: &str,
        address: Address,
    ) -> Result<Self, KubeError> {
        Ok(Self { connection: Arc::new(ApiConnection::new(access, tls_name, address)?) })
    }

    /// The API server of the cluster with this public name: at `address`, or behind `host`, as a load balancer, if none is given.
    pub(crate) fn of_cluster(
        credentials: &Credentials,
        public_name: &str,
        host: &str,
        address: Option<&Address>,
    ) -> Result<Self, KubeError> {
        let address =
            address.cloned().unwrap_or_else(|| Address::Host { name: host.to_owned(), port: HTTPS });
        Self::new(credentials, public_name, address)
    }

    /// The document at `path`, or nothing if there is none.
    pub(crate) async fn get_json(&self, path: &str) -> Result<Option<Value>, KubeError> {
        self.get(path).await
    }

    /// Changes the object at `path`; the content type says what kind of patch it is. The answer is the object as it is then.
    pub(crate) async fn patch_json(
        &self,
        path: &str,
        content_type: &str,
        change: &Value,
    ) -> Result<Value, KubeError> {
        let content = Some((content_type, Content::Document(change)));
        let question = Question { method: Method::PATCH, path, content, accepted: Accepted::Everything };
        self.ask_json(&question).await
    }

    /// Deletes the object at `path` and what belongs to it; false if there was none.
    pub(super) async fn delete(&self, path: &str, propagation: Propagation) -> Result<bool, KubeError> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation.name(),
        });
        let content = Some((JSON, Content::Document(&options)));
        let question = Question { method: Method::DELETE, path, content, accepted: Accepted::Everything };
        let deleted = self.ask_json::<IgnoredAny>(&question).await;
        Ok(none_if_missing(deleted)?.is_some())
    }

    /// As [`ApiServer::open`], for what begins within a time limit.
    pub(crate) async fn open_within(&self, path: &str, limit: Duration) -> Result<Body, KubeError> {
        self.connection.within(limit, self.open(path)).await
    }

    /// Opens what is at `path` for reading piece by piece, for as long as it takes.
    pub(crate) async fn open(&self, path: &str) -> Result<Body, KubeError> {
        let question = Question::get(path);
        let mut retries = Retries::default();
        loop {
            let response = self.connection.send(&question).await?;
            if response.status().is_success() {
                return Ok(Body::new(response.into_body(), Arc::clone(&self.connection)));
            }
            let answer = self.connection.complete(&question, response).await?;
            if !retries.wait(answer.requested_delay).await {
                return Err(api_refusal(&question, &answer));
            }
        }
    }

    /// Opens a WebSocket at `path`. The protocols are named in the order of preference.
    pub(super) async fn open_web_socket(&self, path: &str, protocols: &str) -> Result<WebSocket, KubeError> {
        WebSocket::open(&self.connection, path, protocols).await
    }

    /// What is at `path`, read as a `T`.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, KubeError> {
        none_if_missing(self.ask_json(&Question::get(path)).await)
    }

    /// The first answer, also a refusal.
    pub(super) async fn ask_once(&self, question: &Question<'_>) -> Result<Answer, KubeError> {
        self.connection.ask(question).await
    }

    /// Any answer, also a refusal, but for one that asks for the request again.
    async fn ask(&self, question: &Question<'_>) -> Result<Answer, KubeError> {
        let mut retries = Retries::default();
        loop {
            let answer = self.ask_once(question).await?;
            if !retries.wait(answer.requested_delay).await {
                return Ok(answer);
            }
        }
    }

    /// An answer that is no refusal, read as a `T`.
    pub(super) async fn ask_json<T: DeserializeOwned>(
        &self,
        question: &Question<'_>,
    ) -> Result<T, KubeError> {
        let answer = self.ask(question).await?;
        if !answer.status.is_success() {
            return Err(api_refusal(question, &answer));
        }
        serde_json::from_slice(&answer.bytes).map_err(|error| KubeError::Answer {
            path: without_query(question.path),
            reason: error.to_string(),
        })
    }
}

fn none_if_missing<T>(result: Result<T, KubeError>) -> Result<Option<T>, KubeError> {
    match result {
        Err(error) if error.status() == Some(NOT_FOUND) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use serde_json::json;

    use super::super::KubeError;
    use super::super::test_server::{json_answer, serve};
    use super::Propagation;

    #[tokio::test]
    async fn a_document_comes_whole_or_in_chunks_or_not_at_all() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| match request.split(' ').nth(1) {
            Some("/whole") => json_answer("200 OK", r#"{"kind":"Job"}"#),
            Some("/chunked") => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                 8\r\n{\"kind\":\r\n6\r\n\"Job\"}\r\n0\r\n\r\n"
                .to_owned(),
            Some("/broken?a=b") => json_answer("200 OK", r#"{"kind":"#),
            _ => json_answer("404 Not Found", r#"{"kind":"Status","reason":"NotFound"}"#),
        })?;
        let client = server.client()?;
        assert_eq!(client.get_json("/whole").await?, Some(json!({"kind": "Job"})));
        assert_eq!(client.get_json("/chunked").await?, Some(json!({"kind": "Job"})));
        assert_eq!(client.get_json("/missing").await?, None);
        let error = client.get_json("/broken?a=b").await.err().ok_or("it was understood")?;
        assert!(matches!(&error, KubeError::Answer { path, .. } if path == "/broken"), "{error:?}");
        Ok(())
    }

    #[tokio::test]
    async fn documents_are_sent_with_their_type() -> Result<(), Box<dyn Error>> {
        let server = serve(|_| json_answer("201 Created", r#"{"metadata":{"uid":"1"}}"#))?;
        let client = server.client()?;
        let made = client.patch_json("/a", "application/apply-patch+yaml", &json!({"kind": "Job"})).await?;
        assert_eq!(made, json!({"metadata": {"uid": "1"}}));
        let request = server.requests.recv()?;
        assert!(request.starts_with("PATCH /a HTTP/1.1\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\n{\"kind\":\"Job\"}"), "{request}");
        assert!(request.contains("\r\ncontent-type: application/apply-patch+yaml\r\n"), "{request}");
        Ok(())
    }

    #[tokio::test]
    async fn deleting_says_whether_there_was_something() -> Result<(), Box<dyn Error>> {
        let server = serve(|request| {
            let status = if request.starts_with("DELETE /there ") { "200 OK" } else { "404 Not Found" };
            json_answer(status, r#"{"kind":"Status"}"#)
        })?;
        let client = server.client()?;
        assert!(client.delete("/there", Propagation::Background).await?);
        assert!(server.requests.recv()?.contains(r#""propagationPolicy":"Background""#));
        assert!(!client.delete("/gone", Propagation::Background).await?);
        Ok(())
    }
}
