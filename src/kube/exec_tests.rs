//! Programs in pods and ports of pods, against a server that speaks the other side of the protocol.

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;

use super::test_server::{json_answer, serve};
use super::test_web_socket::{CLOSE, PING, PONG, serve_web_socket};
use super::{ExecEvent, ExecRequest, KubeError, WindowSize};

type Outcome = Result<(), Box<dyn Error>>;

const V5: &str = "v5.channel.k8s.io";
const EXITED: &str = r#"{"metadata":{},"status":"Failure","reason":"NonZeroExitCode",
    "message":"command terminated with non-zero exit code: command terminated with exit code 3",
    "details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;

const REQUEST: ExecRequest<'_> = ExecRequest {
    namespace: "default",
    pod: "train-0",
    container: Some("worker"),
    command: &["python3", "-c", "print(1 & 2)"],
    terminal: false,
};

#[tokio::test]
async fn a_program_gets_its_input_and_says_how_it_ended() -> Outcome {
    let server = serve_web_socket(V5, |socket| {
        match socket.receive_message()?.as_slice() {
            [0, bytes @ ..] => socket.send(1, bytes)?,
            other => socket.send(2, other)?,
        }
        socket.send(2, b"a warning")?;
        socket.send(3, EXITED.as_bytes())
    })?;
    let (input, mut output) = server.client()?.exec(&REQUEST).await?;
    input.send(b"some \0 bytes").await?;
    assert_eq!(output.next().await?, ExecEvent::Stdout(Bytes::from_static(b"some \0 bytes")));
    assert_eq!(output.next().await?, ExecEvent::Stderr(Bytes::from_static(b"a warning")));
    assert_eq!(output.next().await?, ExecEvent::Ended(3));
    let request = server.requests.recv()?;
    let line = "GET /api/v1/namespaces/default/pods/train-0/exec?stdin=true&stdout=true&stderr=true&tty=false\
                &container=worker&command=python3&command=-c&command=print%281%20%26%202%29 HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    for header in ["upgrade: websocket", "sec-websocket-protocol: v5.channel.k8s.io, v4.channel.k8s.io"] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{request}");
    }
    Ok(())
}

#[tokio::test]
async fn a_terminal_has_one_output_and_is_told_its_size() -> Outcome {
    let server = serve_web_socket(V5, |socket| {
        for _ in 0..2 {
            let message = socket.receive_message()?;
            socket.send(1, &message)?;
        }
        socket.send(3, br#"{"status":"Success"}"#)
    })?;
    let (input, mut output) = server.client()?.exec(&ExecRequest { terminal: true, ..REQUEST }).await?;
    input.resize(WindowSize { columns: 132, rows: 43 }).await?;
    let expected = b"\x04{\"Width\":132,\"Height\":43}";
    assert_eq!(output.next().await?, ExecEvent::Stdout(Bytes::from_static(expected)));
    input.finish().await?;
    assert_eq!(output.next().await?, ExecEvent::Stdout(Bytes::from_static(b"\xff\x00")));
    assert_eq!(output.next().await?, ExecEvent::Ended(0));
    let request = server.requests.recv()?;
    assert!(request.contains("/exec?stdin=true&stdout=true&stderr=false&tty=true&container="), "{request}");
    Ok(())
}

#[tokio::test]
async fn a_server_that_cannot_end_an_input_is_not_asked_to() -> Outcome {
    let server = serve_web_socket("v4.channel.k8s.io", |socket| {
        let message = socket.receive_message()?;
        socket.send(1, &message)
    })?;
    let (input, mut output) = server.client()?.exec(&REQUEST).await?;
    input.finish().await?;
    input.send(b"more").await?;
    assert_eq!(output.next().await?, ExecEvent::Stdout(Bytes::from_static(b"\x00more")));
    Ok(())
}

#[tokio::test]
async fn a_server_with_another_protocol_is_refused() -> Outcome {
    let server = serve_web_socket("channel.k8s.io", |_| Ok(()))?;
    let error = server.client()?.exec(&REQUEST).await.err().ok_or("it was accepted")?;
    assert!(error.to_string().contains("chose none of the protocols that infra speaks"), "{error}");
    Ok(())
}

#[tokio::test]
async fn much_input_and_much_output_flow_at_the_same_time() -> Outcome {
    const PIECES: usize = 300;
    let server = serve_web_socket(V5, |socket| {
        for _ in 0..PIECES {
            let message = socket.receive_message()?;
            // More comes back than went in: one side alone would fill every buffer.
            socket.send(1, &message[1..])?;
            socket.send(1, &message[1..])?;
        }
        socket.send(3, br#"{"status":"Success"}"#)
    })?;
    let (input, mut output) = server.client()?.exec(&REQUEST).await?;
    let piece = vec![7; 128 << 10];
    let sending = tokio::spawn(async move {
        for _ in 0..PIECES {
            input.send(&piece).await?;
        }
        Ok::<_, KubeError>(input)
    });
    let mut received = 0;
    loop {
        match output.next().await? {
            ExecEvent::Stdout(bytes) => received += bytes.len(),
            ExecEvent::Ended(code) => break assert_eq!(code, 0),
            ExecEvent::Stderr(bytes) => return Err(format!("{bytes:?}").into()),
        }
    }
    sending.await??;
    assert_eq!(received, PIECES * 2 * (128 << 10));
    Ok(())
}

#[tokio::test]
async fn why_no_program_was_run_is_told() -> Outcome {
    let status =
        r#"{"kind":"Status","message":"pods \"train-0\" is forbidden","reason":"Forbidden","code":403}"#;
    let server = serve(move |_| json_answer("403 Forbidden", status))?;
    let error = server.client()?.exec(&REQUEST).await.err().ok_or("it was run")?;
    assert_eq!(error.status(), Some(403));
    assert!(error.to_string().contains("pods \"train-0\" is forbidden"), "{error}");

    let server = serve(move |_| json_answer("200 OK", "{}"))?;
    let error = server.client()?.exec(&REQUEST).await.err().ok_or("it was run")?;
    assert!(error.to_string().ends_with("the server did not open a WebSocket"), "{error}");

    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    let server = serve(move |_| answer.to_owned())?;
    let error = server.client()?.exec(&REQUEST).await.err().ok_or("it was run")?;
    assert!(error.to_string().ends_with("the server answered another WebSocket's key"), "{error}");

    for (status, reason) in [
        (
            r#"{"status":"Failure","reason":"InternalError","message":"Internal error: container not\nfound"}"#,
            "Internal error: container not found",
        ),
        ("not a document", "the program was ended without a reason"),
    ] {
        let server = serve_web_socket(V5, move |socket| socket.send(3, status.as_bytes()))?;
        let (_input, mut output) = server.client()?.exec(&REQUEST).await?;
        let error = output.next().await.err().ok_or("it was run")?;
        assert_eq!(error, KubeError::Pod { pod: "train-0".to_owned(), reason: reason.to_owned() });
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_that_ends_early_may_be_opened_again() -> Outcome {
    for politely in [true, false] {
        let server = serve_web_socket(V5, move |socket| {
            socket.send(1, b"half of")?;
            if politely { socket.send_control(CLOSE, b"") } else { Ok(()) }
        })?;
        let (_input, mut output) = server.client()?.exec(&REQUEST).await?;
        assert_eq!(output.next().await?, ExecEvent::Stdout(Bytes::from_static(b"half of")));
        let error = output.next().await.err().ok_or("it went on")?;
        assert!(error.is_passing(), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn pings_are_answered_and_messages_may_come_in_pieces() -> Outcome {
    let server = serve_web_socket(V5, |socket| {
        socket.send_control(PING, b"there?")?;
        loop {
            match socket.receive()? {
                (PONG, text) => break assert_eq!(text, b"there?"),
                (PING, _) => {}
                other => return socket.send(2, format!("{other:?}").as_bytes()),
            }
        }
        socket.send_frame(2, b"\x01Hel")?;
        socket.send_control(PING, b"in between")?;
        socket.send_frame(0, b"lo ")?;
        socket.send_frame(0x80, b"World")
    })?;
    let (_input, mut output) = server.client()?.exec(&REQUEST).await?;
    assert_eq!(output.next().await?, ExecEvent::Stdout(Bytes::from_static(b"Hello World")));
    Ok(())
}

#[tokio::test]
async fn a_silent_connection_is_pinged_and_then_given_up() -> Outcome {
    let (pings, pinged) = mpsc::channel();
    let server = serve_web_socket(V5, move |socket| {
        while let (PING, _) = socket.receive()? {
            let _ = pings.send(());
        }
        Ok(())
    })?;
    let (_input, mut output) = server.client()?.exec(&REQUEST).await?;
    tokio::time::pause();
    let error = output.next().await.err().ok_or("it said something")?;
    assert!(matches!(error, KubeError::TimedOut { seconds: 120, .. }), "{error:?}");
    let count = (0..5).filter(|_| pinged.recv_timeout(Duration::from_secs(10)).is_ok()).count();
    assert_eq!(count, 5);
    Ok(())
}
