//! Ports of pods, against a server that speaks the other side of the protocol.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use tokio::sync::{mpsc, watch};

use super::test_server::{TestServer, json_answer, serve};
use super::test_web_socket::{CLOSE, ServerSocket, serve_web_socket};
use super::{KubeError, LocalPort, PodPort};

type Outcome = Result<(), Box<dyn Error>>;

const V4: &str = "v4.channel.k8s.io";
/// 6006, as the kubelet writes it.
const PORT: [u8; 2] = [0x76, 0x17];

fn board() -> PodPort {
    PodPort { namespace: "default".to_owned(), pod: "board".to_owned(), port: 6006 }
}

fn begin(socket: &mut ServerSocket) -> io::Result<()> {
    socket.send(0, &PORT)?;
    socket.send(1, &PORT)
}

/// Passes on what a client does, until this many connections have failed.
async fn forward<T: Send + 'static>(
    server: &TestServer,
    expected_failures: usize,
    client: impl FnOnce(SocketAddr) -> io::Result<T> + Send + 'static,
) -> Result<(T, Vec<KubeError>), Box<dyn Error>> {
    let api = server.client()?;
    let port = LocalPort::open(None).await?;
    let (_sender, target) = watch::channel(Some(board()));
    let (failures, mut failed) = mpsc::unbounded_channel();
    let address = port.address();
    let forwarding = tokio::spawn(async move { port.forward(&api, &target, &failures).await });
    let result = tokio::task::spawn_blocking(move || client(address)).await??;
    let mut all = Vec::new();
    while all.len() < expected_failures {
        all.extend(failed.recv().await);
    }
    all.extend(failed.try_recv());
    forwarding.abort();
    Ok((result, all))
}

fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    text
}

#[tokio::test]
async fn bytes_flow_both_ways_until_the_pod_closes() -> Outcome {
    let server = serve_web_socket(V4, |socket| {
        begin(socket)?;
        let message = socket.receive_message()?;
        socket.send(0, &message)?;
        socket.send(0, b"")?;
        socket.send(0, b" and more")?;
        socket.send_control(CLOSE, b"")
    })?;
    let ask = |address| {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"GET /")?;
        Ok(read_all(&stream))
    };
    let (answer, failures) = forward(&server, 0, ask).await?;
    assert_eq!(String::from_utf8(answer)?, "\0GET / and more");
    assert_eq!(failures, []);
    let request = server.requests.recv()?;
    let line = "GET /api/v1/namespaces/default/pods/board/portforward?ports=6006 HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    assert!(request.contains("\r\nsec-websocket-protocol: v4.channel.k8s.io\r\n"), "{request}");
    Ok(())
}

#[tokio::test]
async fn a_client_that_sends_no_more_still_gets_its_answer() -> Outcome {
    let server = serve_web_socket(V4, |socket| {
        begin(socket)?;
        assert_eq!(socket.receive_message()?, b"\0all of it");
        for _ in 0..100 {
            socket.send(0, &[b'a'; 10_000])?;
        }
        socket.send_control(CLOSE, b"")
    })?;
    let ask = |address| {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"all of it")?;
        stream.shutdown(Shutdown::Write)?;
        Ok(read_all(&stream).len())
    };
    assert_eq!(forward(&server, 0, ask).await?, (1_000_000, Vec::new()));
    Ok(())
}

#[tokio::test]
async fn what_goes_wrong_closes_one_connection_and_is_told() -> Outcome {
    let refused = "error forwarding port 6006 to pod board, uid : failed to connect\nto localhost:6006";
    let server = serve_web_socket(V4, move |socket| {
        begin(socket)?;
        socket.send(1, refused.as_bytes())
    })?;
    let ask = |address| {
        let both = [read_all(&TcpStream::connect(address)?), read_all(&TcpStream::connect(address)?)];
        Ok(both.concat())
    };
    let (answers, failures) = forward(&server, 2, ask).await?;
    assert_eq!(answers, b"");
    let reason =
        "error forwarding port 6006 to pod board, uid : failed to connect to localhost:6006".to_owned();
    let expected = KubeError::Pod { pod: "board".to_owned(), reason };
    assert_eq!(failures, [expected.clone(), expected]);

    // Broken off in the middle.
    let server = serve_web_socket(V4, |socket| begin(socket).and_then(|()| socket.send(0, b"half")))?;
    let ask = |address| Ok(read_all(&TcpStream::connect(address)?));
    let (answer, failures) = forward(&server, 1, ask).await?;
    assert_eq!(answer, b"half");
    assert!(matches!(failures.as_slice(), [KubeError::Unreachable { .. }]), "{failures:?}");

    let status = r#"{"kind":"Status","message":"pods \"board\" not found","reason":"NotFound","code":404}"#;
    let server = serve(move |_| json_answer("404 Not Found", status))?;
    let (answer, failures) = forward(&server, 1, ask).await?;
    assert_eq!(answer, b"");
    assert_eq!(failures.iter().map(KubeError::status).collect::<Vec<_>>(), [Some(404)]);
    Ok(())
}

#[tokio::test]
async fn a_connection_waits_for_a_pod() -> Outcome {
    let server = serve_web_socket(V4, |socket| {
        begin(socket)?;
        socket.send(0, b"here")?;
        socket.send_control(CLOSE, b"")
    })?;
    let api = server.client()?;
    let port = LocalPort::open(None).await?;
    let (sender, target) = watch::channel(None);
    let (failures, _failed) = mpsc::unbounded_channel();
    let address = port.address();
    let client = tokio::task::spawn_blocking(move || {
        let stream = TcpStream::connect(address)?;
        // The connection is made, whoever takes it.
        sender.send_replace(Some(board()));
        io::Result::Ok(read_all(&stream))
    });
    let answer = tokio::select! {
        answer = client => answer??,
        error = port.forward(&api, &target, &failures) => return Err(error.into()),
    };
    assert_eq!(answer, b"here");
    Ok(())
}

#[tokio::test]
async fn a_port_that_is_taken_is_refused() -> Outcome {
    let port = LocalPort::open(None).await?;
    assert!(LocalPort::open(Some(port.address().port())).await.is_err());
    assert!(port.address().ip().is_loopback());
    Ok(())
}
