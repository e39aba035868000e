//! Connections to both stand-ins for a cluster's API server: TLS with the cluster's certificate, for clients that have one of that cluster.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::http::Message;

/// What an answer is written to.
pub type Stream<'a> = StreamOwned<ServerConnection, &'a TcpStream>;

pub fn tls(credentials: &Path) -> ServerConfig {
    let certificate = |name: &str| CertificateDer::from_pem_file(credentials.join(name)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate("ca.pem")).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider));
    let key = PrivateKeyDer::from_pem_file(credentials.join("apiserver-key.pem")).unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![certificate("apiserver.pem")], key)
        .unwrap()
}

/// Answers one request after the other. An unreachable server accepts connections and does not answer.
pub fn serve(
    stream: &TcpStream,
    config: &Arc<ServerConfig>,
    is_unreachable: impl Fn() -> bool,
    answer: impl Fn(&Message, &mut Stream<'_>) -> io::Result<()>,
) -> io::Result<()> {
    if is_unreachable() {
        return Ok(());
    }
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    while let Some(mut request) = Message::read_head(&mut reader)? {
        request.read_request_body(&mut reader)?;
        if is_unreachable() {
            return Ok(());
        }
        answer(&request, reader.get_mut())?;
        if request.has("connection", "close") {
            break;
        }
    }
    let stream = reader.get_mut();
    stream.conn.send_close_notify();
    stream.conn.complete_io(&mut stream.sock).map(drop)
}
