//! A TLS server on the loopback for the unit tests of this layer, with the golden credentials and answers that each test writes.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{fs, thread};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::tls::tests::credentials;
use super::{Address, ApiServer};

/// The name in the golden API server's certificate.
pub(super) const TLS_NAME: &str = "minimal.example.com";

/// What an answer ends with after which the server stays, and says nothing.
pub(super) const SILENCE: &str = "\0";

/// A server that runs until the tests end.
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    /// Every request, head and body.
    pub(super) requests: Receiver<String>,
}

impl TestServer {
    pub(super) fn client(&self) -> Result<ApiServer, Box<dyn Error>> {
        client(Address::Socket(self.address))
    }
}

/// The golden cluster's administrator.
pub(super) fn client(address: Address) -> Result<ApiServer, Box<dyn Error>> {
    Ok(ApiServer::new(&credentials()?, TLS_NAME, address)?)
}

/// The golden API server.
pub(super) fn serve(answer: impl Fn(&str) -> String + Send + 'static) -> Result<TestServer, Box<dyn Error>> {
    serve_as("apiserver", "ca", answer)
}

/// A server that shows the golden certificate `identity`, and accepts clients whom the golden `authority` signed.
pub(super) fn serve_as(
    identity: &str,
    authority: &str,
    answer: impl Fn(&str) -> String + Send + 'static,
) -> Result<TestServer, Box<dyn Error>> {
    let configuration = Arc::new(server_configuration(identity, authority)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let Ok(connection) = ServerConnection::new(Arc::clone(&configuration)) else { continue };
            let respond = |request: String| {
                let text = answer(&request);
                // The test may not care what it was asked.
                let _ = sender.send(request);
                text
            };
            // What a client does to its connection is for the test to judge.
            let _ = attend(StreamOwned::new(connection, socket), respond);
        }
    });
    Ok(TestServer { address, requests })
}

pub(super) fn server_configuration(identity: &str, authority: &str) -> Result<ServerConfig, Box<dyn Error>> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/minimal/credentials");
    let read = |name: String| fs::read(golden.join(name));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut authorities = RootCertStore::empty();
    authorities.add(CertificateDer::from_pem_slice(&read(format!("{authority}.pem"))?)?)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider)).build()?;
    let chain = vec![CertificateDer::from_pem_slice(&read(format!("{identity}.pem"))?)?];
    let key = PrivateKeyDer::from_pem_slice(&read(format!("{identity}-key.pem"))?)?;
    Ok(ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?)
}

fn attend(
    mut stream: StreamOwned<ServerConnection, TcpStream>,
    respond: impl FnOnce(String) -> String,
) -> io::Result<()> {
    stream.sock.set_read_timeout(Some(Duration::from_secs(5)))?;
    if let Ok(request) = read_request(&mut stream) {
        let answer = respond(request);
        stream.write_all(answer.trim_end_matches(SILENCE).as_bytes())?;
        if answer.ends_with(SILENCE) {
            stream.flush()?;
            io::copy(&mut stream.sock, &mut io::sink())?;
            return Ok(());
        }
        stream.conn.send_close_notify();
        stream.flush()?;
    }
    // Closing with bytes unread would reset the connection, and the client might never see what was sent last.
    stream.sock.shutdown(Shutdown::Write)?;
    io::copy(&mut stream.sock, &mut io::sink())?;
    Ok(())
}

pub(super) fn read_request(stream: &mut impl Read) -> io::Result<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0) {
            return Ok(text);
        }
    }
}

/// A whole response; nothing reads its content type.
pub(super) fn json_answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
