//! AWS as a script, for tests in virtual time: answers each call from a function, and records when it was called.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use tokio::time::Instant;

use super::configuration::sdk_behavior;
use super::{AwsConnection, Clients};

/// A call, as the script sees it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The `Action` of a query.
    pub(crate) action: String,
    /// The whole form.
    pub(crate) form: String,
    /// How long after the beginning, by the clock that can be moved.
    pub(crate) at: Duration,
    /// How often this action was asked before.
    pub(crate) before: usize,
}

type Answer = dyn Fn(&Asked) -> (u16, String) + Send + Sync;

/// A script and what was asked of it.
#[derive(Clone)]
pub(crate) struct Script {
    answer: Arc<Answer>,
    start: Instant,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Script {
    pub(crate) fn new(answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), start: Instant::now(), asked: Arc::default() }
    }

    /// Clients that ask this script.
    pub(crate) async fn clients(&self) -> Clients {
        let connection = AwsConnection { region: Some("us-west-2".to_owned()), ..AwsConnection::default() };
        let keys = Credentials::new("AKIDEXAMPLE", "secret", None, None, "script");
        let loader = aws_config::defaults(sdk_behavior())
            .http_client(self.clone())
            .credentials_provider(SharedCredentialsProvider::new(keys));
        Clients::from_configuration(&connection.apply(loader).load().await, None)
    }

    /// Everything that was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self, form: &str) -> (u16, String) {
        let field = |name: &str| form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let action = field("Action").unwrap_or_default().to_owned();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = asked.iter().filter(|earlier| earlier.action == action).count();
        let call = Asked { action, form: form.to_owned(), at: self.start.elapsed(), before };
        asked.push(call.clone());
        drop(asked);
        (self.answer)(&call)
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Script")
    }
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let form = request
            .body()
            .bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default();
        let (status, body) = self.take(&form);
        let answer =
            StatusCode::try_from(status).map(|status| HttpResponse::new(status, SdkBody::from(body)));
        HttpConnectorFuture::ready(answer.map_err(|error| ConnectorError::other(error.into(), None)))
    }
}

impl HttpClient for Script {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
