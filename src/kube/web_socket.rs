//! A WebSocket to the API server: messages both ways over one connection, pings against the idle limits of load balancers.
//!
//! In: a connection and a path. Out: two halves, one to send messages and one to receive them. What the messages mean is the caller's.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::KubeError;
use super::connection::{ApiConnection, Question};
use super::frame::{Opcode, encode_frame, take_frame};
use super::path::without_query;
use super::refusal::api_refusal;

/// Well below the idle limits of load balancers and proxies, which begin at a minute.
const PING_EVERY: Duration = Duration::from_secs(20);
/// Every ping is answered. This much silence means that the connection is gone, as after this machine slept.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);
/// Messages that wait to be sent; more would only use memory.
const QUEUE: usize = 4;
/// What the standard has servers append to a client's key.
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const PROTOCOL: &str = "sec-websocket-protocol";
/// A message in several frames may not grow without end.
const LARGEST_MESSAGE: usize = 32 << 20;
/// Room for what arrives at once.
const READ_SIZE: usize = 64 << 10;

type Stream = TokioIo<Upgraded>;

/// An open WebSocket.
pub(super) struct WebSocket {
    /// The protocol that the server chose.
    pub(super) protocol: String,
    pub(super) sender: MessageSender,
    pub(super) receiver: MessageReceiver,
}

impl WebSocket {
    /// Opens a WebSocket at a path. The protocols are named in the order of preference.
    pub(super) async fn open(
        connection: &Arc<ApiConnection>,
        path: &str,
        protocols: &str,
    ) -> Result<Self, KubeError> {
        let key = STANDARD.encode(random_mask::<16>());
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key.as_str()),
            (PROTOCOL, protocols),
        ];
        let response = connection.upgrade(path, &headers).await?;
        let unusable =
            |reason: &str| KubeError::Answer { path: without_query(path), reason: reason.to_owned() };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let question = Question::get(path);
            let answer = connection.complete(&question, response).await?;
            if answer.status.is_success() {
                return Err(unusable("the server did not open a WebSocket"));
            }
            return Err(api_refusal(&question, &answer));
        }
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        if header("sec-websocket-accept") != Some(accepted_key(&key).as_str()) {
            return Err(unusable("the server answered another WebSocket's key"));
        }
        let protocol = header(PROTOCOL).unwrap_or_default().to_owned();
        if protocols.split(", ").all(|known| known != protocol) {
            return Err(unusable("the server chose none of the protocols that infra speaks"));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|error| connection.broken(&error))?;
        let (reading, writing) = split(TokioIo::new(upgraded));
        let (frames, queue) = mpsc::channel(QUEUE);
        tokio::spawn(write_frames(writing, queue));
        let sender = MessageSender { frames, connection: Arc::clone(connection) };
        let receiver = MessageReceiver {
            reading,
            bytes: BytesMut::with_capacity(READ_SIZE),
            message: BytesMut::new(),
            pongs: sender.frames.downgrade(),
            connection: Arc::clone(connection),
        };
        Ok(Self { protocol, sender, receiver })
    }
}

/// Where messages go out. The connection is closed when all of its clones are dropped.
#[derive(Clone, Debug)]
pub(super) struct MessageSender {
    frames: mpsc::Sender<Vec<u8>>,
    connection: Arc<ApiConnection>,
}

impl MessageSender {
    /// Queues one message that consists of these parts; waits while the connection is slower. Nothing is half sent if the wait is given up.
    pub(super) async fn send(&self, parts: &[&[u8]]) -> Result<(), KubeError> {
        let frame = encode_frame(Opcode::Binary, parts, random_mask());
        self.frames.send(frame).await.map_err(|_| self.connection.broken(&web_socket_closed_error()))
    }
}

/// The half that receives messages.
#[derive(Debug)]
pub(super) struct MessageReceiver {
    reading: ReadHalf<Stream>,
    /// What has come and was not taken yet.
    bytes: BytesMut,
    /// The beginning of a message in several frames.
    message: BytesMut,
    pongs: mpsc::WeakSender<Vec<u8>>,
    connection: Arc<ApiConnection>,
}

impl MessageReceiver {
    /// The next message; none after the last. Nothing is lost if the wait is given up.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, KubeError> {
        loop {
            let taken = take_frame(&mut self.bytes);
            let Some(frame) = taken.map_err(|problem| self.connection.broken(&io::Error::other(problem)))?
            else {
                self.read_more().await?;
                continue;
            };
            match frame.opcode {
                Opcode::Binary if frame.is_last => return Ok(Some(frame.payload)),
                Opcode::Binary | Opcode::Continuation => {
                    if self.message.len() + frame.payload.len() > LARGEST_MESSAGE {
                        let problem = "a message of its WebSocket is larger than 32 MiB";
                        return Err(self.connection.broken(&io::Error::other(problem)));
                    }
                    self.message.extend_from_slice(&frame.payload);
                    if frame.is_last {
                        return Ok(Some(self.message.split().freeze()));
                    }
                }
                Opcode::Close => return Ok(None),
                Opcode::Ping => {
                    if let Some(frames) = self.pongs.upgrade() {
                        // With messages waiting to go out the server sees that this side is alive.
                        let _ = frames.try_send(encode_frame(Opcode::Pong, &[&frame.payload], random_mask()));
                    }
                }
                Opcode::Pong => {}
            }
        }
    }

    /// As [`MessageReceiver::next`], for what comes within a time limit.
    pub(super) async fn next_within(&mut self, limit: Duration) -> Result<Option<Bytes>, KubeError> {
        let connection = Arc::clone(&self.connection);
        connection.within(limit, self.next()).await
    }

    /// What it means that the messages ended before the caller was done.
    pub(super) fn ended_early(&self) -> KubeError {
        self.connection.broken(&web_socket_closed_error())
    }

    async fn read_more(&mut self) -> Result<(), KubeError> {
        self.bytes.reserve(READ_SIZE);
        let connection = Arc::clone(&self.connection);
        let read = async {
            match self.reading.read_buf(&mut self.bytes).await {
                Ok(0) => Err(connection.broken(&web_socket_closed_error())),
                Ok(_) => Ok(()),
                Err(error) => Err(connection.broken(&error)),
            }
        };
        connection.within(LONGEST_SILENCE, read).await
    }
}

/// Writes what is queued, and pings; an error shows at the other half, and when the next message is sent.
async fn write_frames(mut writing: WriteHalf<Stream>, mut queue: mpsc::Receiver<Vec<u8>>) {
    let mut pings = interval(PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is now.
    pings.tick().await;
    loop {
        let (frame, is_last) = tokio::select! {
            _ = pings.tick() => (encode_frame(Opcode::Ping, &[], random_mask()), false),
            frame = queue.recv() => match frame {
                Some(frame) => (frame, false),
                None => (encode_frame(Opcode::Close, &[], random_mask()), true),
            },
        };
        let written = match writing.write_all(&frame).await {
            Ok(()) => writing.flush().await,
            failed => failed,
        };
        if written.is_err() || is_last {
            return;
        }
    }
}

fn web_socket_closed_error() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// What a server answers to a key.
pub(super) fn accepted_key(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{ACCEPT_SUFFIX}").as_bytes()))
}

/// Random bytes. They keep proxies from taking a message for a request of its own, which the TLS around it does anyway, so that zeros from
/// a machine without random numbers do no harm.
fn random_mask<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    let _ = rand::fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::accepted_key;

    /// The example of RFC 6455, 1.3.
    #[test]
    fn a_key_is_accepted_as_the_standard_says() {
        assert_eq!(accepted_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
