//! A program in a running pod: its input, its output and how it ended, over the API server's WebSocket.
//!
//! In: a pod and a command. Out: [`ExecInput`] and [`ExecOutput`], which can be used at the same time. The program ends with the
//! connection's end at the latest, when it next reads or writes.

use bytes::{Buf, Bytes};
use serde::Deserialize;
use serde_json::json;

use super::message::one_line;
use super::path::encode_path_segment;
use super::web_socket::{MessageReceiver, MessageSender};
use super::{ApiServer, KubeError};

/// The fourth version of the protocol is what an API server before 1.30 speaks.
const PROTOCOLS: &str = "v5.channel.k8s.io, v4.channel.k8s.io";
/// The first version in which a client can end a program's input.
const CAN_END_INPUT: &str = "v5.channel.k8s.io";
/// The API server takes messages of up to 32 MiB, and copies each; small ones keep it and the pings flowing.
const LARGEST_PIECE: usize = 128 << 10;

const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ERROR_OUTPUT: u8 = 2;
const STATUS: u8 = 3;
const WINDOW: u8 = 4;
const END: u8 = 255;

/// Which program to run, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExecRequest<'a> {
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The pod, which must be running.
    pub pod: &'a str,
    /// The container; by default the only one, or the pod's default.
    pub container: Option<&'a str>,
    /// The program and its arguments; no shell reads them.
    pub command: &'a [&'a str],
    /// Whether the program gets a terminal, which has one output.
    pub terminal: bool,
}

/// The size of a terminal's window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowSize {
    /// The width.
    pub columns: u16,
    /// The height.
    pub rows: u16,
}

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExecEvent {
    /// It wrote this to stdout.
    Stdout(Bytes),
    /// It wrote this to stderr.
    Stderr(Bytes),
    /// It ended with this exit code; nothing follows.
    Ended(i32),
}

/// The input of a program. Its clones are the same input.
#[derive(Clone, Debug)]
pub(crate) struct ExecInput {
    sender: MessageSender,
    can_end: bool,
}

/// The output of a program, and its end.
#[derive(Debug)]
pub(crate) struct ExecOutput {
    receiver: MessageReceiver,
    pod: String,
    /// Keeps the connection open while only the output is of interest.
    _sender: MessageSender,
}

impl ApiServer {
    /// Starts a program in a pod.
    pub(crate) async fn exec(&self, request: &ExecRequest<'_>) -> Result<(ExecInput, ExecOutput), KubeError> {
        let socket = self.open_web_socket(&exec_path(request), PROTOCOLS).await?;
        let pod = request.pod.to_owned();
        let can_end = socket.protocol == CAN_END_INPUT;
        let input = ExecInput { sender: socket.sender.clone(), can_end };
        Ok((input, ExecOutput { receiver: socket.receiver, pod, _sender: socket.sender }))
    }
}

fn exec_path(request: &ExecRequest<'_>) -> String {
    let (namespace, pod) = (encode_path_segment(request.namespace), encode_path_segment(request.pod));
    let terminal = request.terminal;
    let mut path = format!(
        "/api/v1/namespaces/{namespace}/pods/{pod}/exec?stdin=true&stdout=true&stderr={}&tty={terminal}",
        !terminal
    );
    if let Some(container) = request.container {
        path = format!("{path}&container={}", encode_path_segment(container));
    }
    request.command.iter().fold(path, |path, word| format!("{path}&command={}", encode_path_segment(word)))
}

impl ExecInput {
    /// Sends bytes to the program; waits while the program is slower.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Result<(), KubeError> {
        for piece in bytes.chunks(LARGEST_PIECE) {
            self.sender.send(&[&[INPUT], piece]).await?;
        }
        Ok(())
    }

    /// Ends the input: the program reads an end of file. A server that cannot pass that on leaves the input open.
    pub(crate) async fn finish(&self) -> Result<(), KubeError> {
        if self.can_end {
            self.sender.send(&[&[END, INPUT]]).await?;
        }
        Ok(())
    }

    /// Tells the program's terminal how large its window is.
    pub(crate) async fn resize(&self, window: WindowSize) -> Result<(), KubeError> {
        let size = json!({"Width": window.columns, "Height": window.rows}).to_string();
        self.sender.send(&[&[WINDOW], size.as_bytes()]).await
    }
}

impl ExecOutput {
    /// What the program does next. Nothing is lost if the wait is given up.
    pub(crate) async fn next(&mut self) -> Result<ExecEvent, KubeError> {
        loop {
            let Some(mut message) = self.receiver.next().await? else {
                return Err(self.receiver.ended_early());
            };
            if !message.has_remaining() {
                continue;
            }
            match message.get_u8() {
                OUTPUT if message.has_remaining() => return Ok(ExecEvent::Stdout(message)),
                ERROR_OUTPUT if message.has_remaining() => return Ok(ExecEvent::Stderr(message)),
                STATUS => return self.ended(&message).map(ExecEvent::Ended),
                _ => {}
            }
        }
    }

    /// The exit code in a Status document, or why the program could not be run.
    fn ended(&self, document: &[u8]) -> Result<i32, KubeError> {
        let status: Status = serde_json::from_slice(document).unwrap_or_default();
        if status.status == "Success" {
            return Ok(0);
        }
        let mut causes = status.details.causes.iter().filter(|cause| cause.reason == "ExitCode");
        match causes.next().and_then(|cause| cause.message.parse().ok()) {
            Some(code) if status.reason == "NonZeroExitCode" => Ok(code),
            _ if status.message.is_empty() => {
                Err(self.failed("the program was ended without a reason".to_owned()))
            }
            _ => Err(self.failed(one_line(&status.message))),
        }
    }

    fn failed(&self, reason: String) -> KubeError {
        KubeError::Pod { pod: self.pod.clone(), reason }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_field_names, reason = "the names are Kubernetes'")]
struct Status {
    status: String,
    reason: String,
    message: String,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}
