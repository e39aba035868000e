//! One connection per request: connect, shake hands, send, and wait no longer than a limit.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use zeroize::Zeroizing;

use super::access::ApiAccess;
use super::path::without_query;
use super::retry::requested_delay;
use super::tls::{certificate_objection, client_configuration};
use super::{Address, KubeError};
use crate::credentials::SecretText;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The time for a whole answer, and for the beginning of one that is read piece by piece and does not wait for something to happen.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(20);
/// A connection that is silent for this long is probed.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;
const LARGEST_ANSWER: usize = 64 << 20;
/// A refused object is quoted whole, and has at most 1.5 MiB. Of a longer refusal only the beginning is read.
const LARGEST_REFUSAL: usize = 2 << 20;
const OUR_NAME: &str = concat!("infra/", env!("CARGO_PKG_VERSION"));

/// A request to the API.
pub(super) struct Question<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    /// A document with its content type.
    pub(super) content: Option<(&'a str, Content<'a>)>,
    pub(super) accepted: Accepted,
}

/// A document that is sent.
#[derive(Clone, Copy)]
pub(super) enum Content<'a> {
    Document(&'a Value),
    /// A document with a secret in it: the copy that is sent is overwritten afterwards.
    Secret(&'a SecretText),
}

impl Content<'_> {
    fn bytes(self) -> Bytes {
        match self {
            Self::Document(document) => Bytes::from(document.to_string()),
            Self::Secret(text) => Bytes::from_owner(Zeroizing::new(text.expose().as_bytes().to_vec())),
        }
    }
}

/// What an answer should hold.
#[derive(Clone, Copy)]
pub(super) enum Accepted {
    Everything,
    /// The metadata of an object.
    Metadata,
    /// The metadata of a list of objects.
    MetadataList,
}

impl Accepted {
    fn header(self) -> &'static str {
        match self {
            Self::Everything => "application/json, */*",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Self::MetadataList => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        }
    }
}

impl<'a> Question<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, content: None, accepted: Accepted::Everything }
    }
}

/// A whole answer, also a refusal.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) bytes: Bytes,
    /// When the server asks for the request again, if it does.
    pub(super) requested_delay: Option<Duration>,
}

/// Everything that a connection needs.
pub(super) struct ApiConnection {
    address: Address,
    tls_name: String,
    server_name: ServerName<'static>,
    connector: TlsConnector,
    /// The header with the token, marked as sensitive.
    authorization: Option<HeaderValue>,
}

impl ApiConnection {
    pub(super) fn new(access: &ApiAccess, tls_name: &str, address: Address) -> Result<Self, KubeError> {
        let server_name = ServerName::try_from(tls_name.to_owned()).map_err(|_| KubeError::Tls {
            address: address.to_string(),
            reason: format!("no certificate can be for '{tls_name}'"),
        })?;
        let connector = TlsConnector::from(Arc::new(client_configuration(access)?));
        let authorization = access.token.as_ref().map(authorization_header).transpose()?;
        Ok(Self { address, tls_name: tls_name.to_owned(), server_name, connector, authorization })
    }

    /// Sends a request and waits for the whole answer.
    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<Answer, KubeError> {
        let whole = async {
            let response = self.send(question).await?;
            self.collect(question, response).await
        };
        self.in_time(whole).await
    }

    /// Waits for the rest of an answer.
    pub(super) async fn complete(
        &self,
        question: &Question<'_>,
        response: Response<Incoming>,
    ) -> Result<Answer, KubeError> {
        self.in_time(self.collect(question, response)).await
    }

    /// Sends a request and waits for the first bytes of the answer. Only connecting is limited: a log that is followed begins with its first
    /// line, whenever that comes.
    pub(super) async fn send(&self, question: &Question<'_>) -> Result<Response<Incoming>, KubeError> {
        self.deliver(self.request(question)?).await
    }

    /// Asks the server to speak another protocol on the connection, with these headers. Any other answer is the caller's to read.
    pub(super) async fn upgrade(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response<Incoming>, KubeError> {
        let request = headers.iter().fold(self.begin_request(Method::GET, path), |request, (name, value)| {
            request.header(*name, *value)
        });
        self.in_time(self.deliver(finish_request(request, path, Bytes::new())?)).await
    }

    async fn deliver(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, KubeError> {
        let stream = self.connect().await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broken(&error))?;
        // Queued before the connection runs: TLS 1.3 says only now that our certificate is not accepted, and with a request
        // waiting that comes back as the request's error.
        let response = sender.send_request(request);
        tokio::spawn(connection.with_upgrades());
        response.await.map_err(|error| self.broken(&error))
    }

    fn request(&self, question: &Question<'_>) -> Result<Request<Full<Bytes>>, KubeError> {
        let mut request = self
            .begin_request(question.method.clone(), question.path)
            .header(ACCEPT, question.accepted.header());
        let mut bytes = Bytes::new();
        if let Some((content_type, content)) = question.content {
            request = request.header(CONTENT_TYPE, content_type);
            bytes = content.bytes();
        }
        finish_request(request, question.path, bytes)
    }

    /// What every request says.
    fn begin_request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.tls_name.as_str())
            .header(USER_AGENT, OUR_NAME);
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        }
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>, KubeError> {
        let addresses = match timeout(CONNECT_LIMIT, self.address.resolve()).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(reason)) => return Err(self.unreachable(reason)),
            Err(_) => return Err(self.timed_out(CONNECT_LIMIT)),
        };
        let mut failure = self.unreachable("it has no address".to_owned());
        for address in addresses {
            failure = match timeout(CONNECT_LIMIT, self.connect_to(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) if !error.is_unreachable() => return Err(error),
                Ok(Err(error)) => error,
                Err(_) => self.timed_out(CONNECT_LIMIT),
            };
        }
        Err(failure)
    }

    /// A load balancer without healthy targets takes connections and drops them at once, so that a handshake that is cut off
    /// means that there is no API server.
    async fn connect_to(&self, address: SocketAddr) -> Result<TlsStream<TcpStream>, KubeError> {
        let stream = TcpStream::connect(address).await.map_err(|error| self.broken(&error))?;
        keep_alive(&stream).map_err(|error| self.broken(&error))?;
        let connected = self.connector.connect(self.server_name.clone(), stream).await;
        connected.map_err(|error| self.broken(&error))
    }

    async fn collect(
        &self,
        question: &Question<'_>,
        response: Response<Incoming>,
    ) -> Result<Answer, KubeError> {
        let too_large = || KubeError::TooLarge { path: without_query(question.path) };
        let status = response.status();
        let requested_delay = requested_delay(&response);
        let mut body = response.into_body();
        let limit = if status.is_success() { LARGEST_ANSWER } else { LARGEST_REFUSAL };
        if status.is_success() && body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > limit {
                if status.is_success() {
                    return Err(too_large());
                }
                break;
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Answer { status, bytes: bytes.into(), requested_delay })
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, KubeError>>) -> Result<T, KubeError> {
        self.within(REQUEST_LIMIT, work).await
    }

    /// Work that may not take longer.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, KubeError>>,
    ) -> Result<T, KubeError> {
        timeout(limit, work).await.unwrap_or_else(|_| Err(self.timed_out(limit)))
    }

    /// What a connection that failed means.
    pub(super) fn broken(&self, error: &(dyn Error + 'static)) -> KubeError {
        match certificate_objection(error, &self.tls_name) {
            Some(reason) => KubeError::Tls { address: self.address.to_string(), reason },
            None => self.unreachable(innermost_cause(error)),
        }
    }

    fn unreachable(&self, reason: String) -> KubeError {
        KubeError::Unreachable { address: self.address.to_string(), reason }
    }

    fn timed_out(&self, limit: Duration) -> KubeError {
        KubeError::TimedOut { address: self.address.to_string(), seconds: limit.as_secs() }
    }
}

/// The header with a token; what is wrong with a token is never quoted.
fn authorization_header(token: &SecretText) -> Result<HeaderValue, KubeError> {
    let text = Zeroizing::new(format!("Bearer {}", token.expose()));
    let mut header = HeaderValue::from_str(&text).map_err(|_| KubeError::BadCredentials {
        reason: "the token has characters that no token has".to_owned(),
    })?;
    header.set_sensitive(true);
    Ok(header)
}

fn finish_request(request: Builder, path: &str, bytes: Bytes) -> Result<Request<Full<Bytes>>, KubeError> {
    request.body(Full::new(bytes)).map_err(|error| KubeError::Answer {
        path: without_query(path),
        reason: format!("it cannot be asked for: {error}"),
    })
}

/// A log may be silent for hours. A broken connection, because this machine slept or a route is gone, is noticed by probes.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES);
    SockRef::from(stream).set_tcp_keepalive(&probes)
}

/// Never shows keys.
impl fmt::Debug for ApiConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("address", &self.address)
            .field("tls_name", &self.tls_name)
            .finish_non_exhaustive()
    }
}

/// The last cause of an error, without the operating system's number.
fn innermost_cause(error: &(dyn Error + 'static)) -> String {
    let mut current = error;
    while let Some(next) = current.source() {
        current = next;
    }
    match current.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the connection was closed before the answer came".to_owned()
        }
        _ => current.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    }
}
