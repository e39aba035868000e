//! Each way in which a connection to the API server fails, distinguished from the others.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use super::connection::keep_alive;
use super::test_server::{SILENCE, TLS_NAME, TestServer, client, json_answer, serve, serve_as};
use super::tls::tests::credentials;
use super::{Address, ApiServer, KubeError, Readiness};

type Outcome = Result<(), Box<dyn Error>>;

async fn failure(client: &ApiServer) -> Result<KubeError, Box<dyn Error>> {
    Ok(client.check_ready().await.err().ok_or("it was ready")?)
}

fn tls(server: &TestServer, reason: &str) -> KubeError {
    KubeError::Tls { address: server.address.to_string(), reason: reason.to_owned() }
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_believed() -> Outcome {
    let server = serve_as("etcd-0", "ca", |_| json_answer("200 OK", "ok"))?;
    let reason = "the server's certificate was not signed by this cluster's authority";
    assert_eq!(failure(&server.client()?).await?, tls(&server, reason));
    assert!(server.requests.try_recv().is_err());
    Ok(())
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_believed() -> Outcome {
    let server = serve(|_| json_answer("200 OK", "ok"))?;
    let client = ApiServer::new(&credentials()?, "other.example.com", Address::Socket(server.address))?;
    let reason = "the server's certificate is not for other.example.com";
    assert_eq!(failure(&client).await?, tls(&server, reason));
    Ok(())
}

#[tokio::test]
async fn a_server_that_refuses_the_client_is_distinguished() -> Outcome {
    let server = serve_as("apiserver", "etcd-ca", |_| json_answer("200 OK", "ok"))?;
    let error = failure(&server.client()?).await?;
    let KubeError::Tls { reason, .. } = &error else { return Err(error.to_string().into()) };
    assert!(reason.starts_with("the server does not accept the client's certificate"), "{reason}");
    Ok(())
}

#[test]
fn a_name_that_no_certificate_can_have_is_refused_at_once() -> Outcome {
    let address = Address::Host { name: "lb".to_owned(), port: 443 };
    let error = ApiServer::new(&credentials()?, "not a name", address).err().ok_or("it was accepted")?;
    assert_eq!(
        error.to_string(),
        "no secure connection to the Kubernetes API at lb:443: no certificate can be for 'not a name'"
    );
    Ok(())
}

#[tokio::test]
async fn a_server_without_tls_is_distinguished() -> Outcome {
    let address = plain_server("HTTP/1.0 200 OK\r\n\r\n")?;
    let error = failure(&client(Address::Socket(address))?).await?;
    let KubeError::Tls { reason, .. } = &error else { return Err(error.to_string().into()) };
    assert_eq!(reason, "the server there does not speak TLS");
    Ok(())
}

#[tokio::test]
async fn an_address_without_a_server_is_unreachable() -> Outcome {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let error = failure(&client(Address::Socket(address))?).await?;
    let reason = "Connection refused".to_owned();
    assert_eq!(error, KubeError::Unreachable { address: address.to_string(), reason });
    assert!(error.is_unreachable());
    Ok(())
}

#[tokio::test]
async fn a_load_balancer_without_targets_is_unreachable() -> Outcome {
    let address = plain_server("")?;
    let error = failure(&client(Address::Socket(address))?).await?;
    assert!(matches!(error, KubeError::Unreachable { .. }), "{error:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn silence_times_out() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let error = failure(&client(Address::Socket(address))?).await?;
    assert_eq!(error, KubeError::TimedOut { address: address.to_string(), seconds: 5 });
    assert!(error.is_unreachable());
    Ok(())
}

/// `localhost` may resolve to `::1` first, where nothing listens.
#[tokio::test]
async fn every_address_of_a_name_is_tried() -> Outcome {
    let server = serve(|_| json_answer("200 OK", "ok"))?;
    let address = Address::Host { name: "localhost".to_owned(), port: server.address.port() };
    assert_eq!(client(address)?.check_ready().await?, Readiness::Ready);
    Ok(())
}

#[tokio::test]
async fn a_silent_connection_is_probed() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
    keep_alive(&stream)?;
    let socket = SockRef::from(&stream);
    assert!(socket.keepalive()?);
    // A machine that slept notices within a minute that the server is gone.
    assert_eq!(socket.tcp_keepalive_time()?.as_secs(), 30);
    assert_eq!(socket.tcp_keepalive_interval()?.as_secs(), 10);
    Ok(())
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read() -> Outcome {
    let server = serve(|_| "HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n".to_owned())?;
    let error = server.client()?.get_json("/all?limit=1").await.err().ok_or("it was read")?;
    assert_eq!(error, KubeError::TooLarge { path: "/all".to_owned() });
    Ok(())
}

#[tokio::test]
async fn of_a_refusal_without_end_the_beginning_is_read() -> Outcome {
    let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let answer = format!(
        "HTTP/1.1 403 Forbidden\r\ntransfer-encoding: chunked\r\n\r\n4\r\nno!\n\r\n{}{SILENCE}",
        piece.repeat(40)
    );
    let server = serve(move |_| answer.clone())?;
    let client = server.client()?;
    for error in [client.get_json("/all").await.err(), client.open("/all").await.err()] {
        let said = error.ok_or("it was read")?.to_string();
        assert_eq!(said, "the Kubernetes API refused GET /all: no! (403 Forbidden)");
    }
    Ok(())
}

#[tokio::test]
async fn what_does_not_begin_in_time_is_given_up() -> Outcome {
    let server = serve(|_| SILENCE.to_owned())?;
    let limit = Duration::from_millis(200);
    let error = server.client()?.open_within("/archive.tar", limit).await.err().ok_or("it began")?;
    assert!(matches!(error, KubeError::TimedOut { .. }), "{error}");
    Ok(())
}

#[test]
fn debug_shows_where_and_nothing_of_the_keys() -> Outcome {
    let client = client(Address::Host { name: "lb".to_owned(), port: 443 })?;
    let shown = format!("{client:?}");
    assert!(shown.contains("lb") && shown.contains(TLS_NAME), "{shown}");
    assert!(shown.len() < 200, "{shown}");
    Ok(())
}

/// Accepts connections, sends the same bytes on each without reading, and closes it.
fn plain_server(says: &'static str) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut hello = [0; 4096];
            // A connection that the client gave up is not this server's concern.
            let _ = socket.read(&mut hello);
            let _ = socket.write_all(says.as_bytes());
        }
    });
    Ok(address)
}
