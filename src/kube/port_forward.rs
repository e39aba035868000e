//! A connection to a port of a running pod, over the API server's WebSocket.
//!
//! In: a pod and a port. Out: a [`PortConnection`], which is one connection to the program that listens there. The protocol is the one that
//! kubelets themselves speak: a WebSocket for each connection, with a channel for bytes and one for what went wrong. It cannot say that one
//! side sends no more while the other still does.

use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::message::one_line;
use super::path::encode_path_segment;
use super::web_socket::{MessageReceiver, MessageSender};
use super::{ApiServer, KubeError};

const PROTOCOL: &str = "v4.channel.k8s.io";
const DATA: u8 = 0;
const ERROR: u8 = 1;
/// What is read from a client at once.
const PIECE: usize = 32 << 10;
/// How long the pod may be silent before the connection is closed, once the client sends no more: it may be waiting for the rest of an
/// answer, or be gone.
const LAST_SILENCE: Duration = Duration::from_secs(30);

/// A port of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodPort {
    /// The namespace of the pod.
    pub namespace: String,
    /// The pod, which must be running.
    pub pod: String,
    /// The port that a program in the pod listens on.
    pub port: u16,
}

/// A connection to a port of a pod.
#[derive(Debug)]
pub(crate) struct PortConnection {
    sender: MessageSender,
    answers: ForwardedAnswers,
}

impl ApiServer {
    /// Connects to a port of a pod.
    pub(crate) async fn connect_to_port(&self, target: &PodPort) -> Result<PortConnection, KubeError> {
        let PodPort { namespace, pod, port } = target;
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/portforward?ports={port}",
            encode_path_segment(namespace),
            encode_path_segment(pod)
        );
        let socket = self.open_web_socket(&path, PROTOCOL).await?;
        let answers = ForwardedAnswers { receiver: socket.receiver, pod: pod.clone(), has_begun: [false; 2] };
        Ok(PortConnection { sender: socket.sender, answers })
    }
}

impl PortConnection {
    /// Copies bytes both ways until the pod closes the connection, or the client has, and got its answer.
    pub(crate) async fn relay(mut self, client: TcpStream) -> Result<(), KubeError> {
        let (reading, mut writing) = client.into_split();
        let (told, mut client_ended) = oneshot::channel();
        // On its own: a client that sends much before it reads must not wait for itself.
        let _upload = Upload(tokio::spawn(upload(reading, self.sender.clone(), told)));
        let mut is_ended = false;
        loop {
            let bytes = if is_ended {
                match self.answers.next_within(LAST_SILENCE).await {
                    Err(KubeError::TimedOut { .. }) => return Ok(()),
                    answer => answer?,
                }
            } else {
                tokio::select! {
                    answer = self.answers.next() => answer?,
                    _ = &mut client_ended => {
                        is_ended = true;
                        continue;
                    }
                }
            };
            let Some(bytes) = bytes else { return Ok(()) };
            // A client that does not want the rest is no failure.
            if writing.write_all(&bytes).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// A task that ends with the connection.
struct Upload(JoinHandle<()>);

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends what comes from a client, and reports when nothing more does. That the connection is broken shows at its other half.
async fn upload(mut reading: OwnedReadHalf, sender: MessageSender, told: oneshot::Sender<()>) {
    let mut buffer = vec![0; PIECE];
    while let Ok(count @ 1..) = reading.read(&mut buffer).await {
        if sender.send(&[&[DATA], buffer.get(..count).unwrap_or_default()]).await.is_err() {
            return;
        }
    }
    let _ = told.send(());
}

/// What comes from the pod.
#[derive(Debug)]
struct ForwardedAnswers {
    receiver: MessageReceiver,
    pod: String,
    /// Whether a channel has said which port it is for, which its first message does.
    has_begun: [bool; 2],
}

impl ForwardedAnswers {
    /// The next bytes; none after the last. Nothing is lost if the wait is given up.
    async fn next(&mut self) -> Result<Option<Bytes>, KubeError> {
        loop {
            let message = self.receiver.next().await?;
            let Some(bytes) = self.content_of(message)? else { return Ok(None) };
            if bytes.has_remaining() {
                return Ok(Some(bytes));
            }
        }
    }

    /// As [`ForwardedAnswers::next`], for what comes within a time limit.
    async fn next_within(&mut self, limit: Duration) -> Result<Option<Bytes>, KubeError> {
        loop {
            let message = self.receiver.next_within(limit).await?;
            let Some(bytes) = self.content_of(message)? else { return Ok(None) };
            if bytes.has_remaining() {
                return Ok(Some(bytes));
            }
        }
    }

    /// The bytes of a message, which may be none.
    fn content_of(&mut self, message: Option<Bytes>) -> Result<Option<Bytes>, KubeError> {
        let Some(mut message) = message else { return Ok(None) };
        if !message.has_remaining() {
            return Ok(Some(message));
        }
        let channel = message.get_u8();
        let Some(has_begun) = self.has_begun.get_mut(usize::from(channel)) else {
            return Ok(Some(Bytes::new()));
        };
        if !std::mem::replace(has_begun, true) {
            return Ok(Some(Bytes::new()));
        }
        if channel == ERROR && message.has_remaining() {
            let reason = one_line(&String::from_utf8_lossy(&message));
            return Err(KubeError::Pod { pod: self.pod.clone(), reason });
        }
        Ok(Some(message))
    }
}
