//! Connections to both stand-ins for a cluster's API server: TLS with the cluster's certificate, for clients that have one of that
//! cluster, and such a client.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::http::{Message, exchange};

/// What an answer is written to.
pub type Stream<'a> = StreamOwned<ServerConnection, &'a TcpStream>;

/// For clients with a certificate of the cluster.
pub fn tls(credentials: &Path) -> ServerConfig {
    configuration(credentials, false)
}

/// Also for clients without one, who may have a token.
pub fn tls_with_tokens(credentials: &Path) -> ServerConfig {
    configuration(credentials, true)
}

fn configuration(credentials: &Path, allows_none: bool) -> ServerConfig {
    let certificate = |name: &str| CertificateDer::from_pem_file(credentials.join(name)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate("ca.pem")).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider));
    let verifier = if allows_none { verifier.allow_unauthenticated() } else { verifier };
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

/// Asks the API server of the golden cluster `ha-gpu-efs`, with or without the certificate of its administrator.
pub fn ask_server(
    address: &str,
    credentials: &Path,
    certified: bool,
    request: &Message,
) -> io::Result<Message> {
    let certificate = |name: &str| CertificateDer::from_pem_file(credentials.join(name)).unwrap();
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate("ca.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(authorities);
    let config = if certified {
        let key = PrivateKeyDer::from_pem_file(credentials.join("admin-key.pem")).unwrap();
        config.with_client_auth_cert(vec![certificate("admin.pem")], key).unwrap()
    } else {
        config.with_no_client_auth()
    };
    let name = ServerName::try_from("k8s.research.example.com").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    exchange(StreamOwned::new(connection, TcpStream::connect(address)?), request)
}
