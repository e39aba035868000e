//! Requests to the program in the pod, and its answers, in order.

use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::RemoteEntry;
use super::error::DataError;
use super::pod::{FilesPod, MOUNT_PATH};
use crate::kube::{ApiServer, ExecEvent, ExecInput, ExecOutput, ExecRequest};

/// Reads the program itself from the input, then runs it: no file and no argument holds it.
const START: &str =
    "import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv[3])).decode(), 'move_files.py', 'exec'))";
/// The two lengths that every message begins with.
const LENGTHS: usize = 8;
/// More than any answer has.
const LARGEST_DOCUMENT: usize = 16 << 20;
/// As much of what a broken program says as a message needs.
const LAST_WORDS: usize = 600;

/// What the program answers; each request has its own fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    pub(super) ready: bool,
    pub(super) end: bool,
    pub(super) error: Option<String>,
    pub(super) missing: bool,
    pub(super) gone: bool,
    pub(super) needed: Vec<(usize, u64)>,
    pub(super) entries: Vec<RemoteEntry>,
    pub(super) hashes: Vec<Option<String>>,
    pub(super) hash: String,
    pub(super) offset: u64,
    pub(super) modified: u64,
    pub(super) tree: Option<String>,
    pub(super) newest: Option<String>,
    pub(super) executable: bool,
    pub(super) imported: bool,
    pub(super) bytes: i64,
    pub(super) files: u64,
    pub(super) notes: Vec<String>,
    pub(super) refused: Vec<RefusedObject>,
}

/// An object that S3 does not hand out, by its number in the request.
#[derive(Debug, Deserialize)]
pub(super) struct RefusedObject {
    pub(super) number: usize,
    pub(super) code: String,
    pub(super) message: String,
}

/// A connection to the program in the pod.
#[derive(Debug)]
pub(crate) struct Channel {
    input: ExecInput,
    output: ExecOutput,
    bytes: BytesMut,
    last_words: Vec<u8>,
    claim: String,
}

impl Channel {
    /// Starts the program in a running pod.
    pub(crate) async fn open(api: &ApiServer, pod: &FilesPod<'_>, script: &str) -> Result<Self, DataError> {
        let (alive, length) = (pod.alive_file(), script.len().to_string());
        let command = ["python3", "-c", START, MOUNT_PATH, &alive, &length];
        let request = ExecRequest {
            namespace: pod.namespace(),
            pod: pod.name(),
            container: None,
            command: &command,
            terminal: false,
        };
        let (input, output) = api.exec(&request).await?;
        let claim = pod.claim().to_owned();
        let mut channel = Self { input, output, bytes: BytesMut::new(), last_words: Vec::new(), claim };
        channel.input.send(script.as_bytes()).await?;
        let (answer, _) = channel.receive().await?;
        if answer.ready { Ok(channel) } else { Err(unexpected_answer("it did not begin with a greeting")) }
    }

    /// Sends a request.
    pub(super) async fn send(&self, request: &Value, content: &[u8]) -> Result<(), DataError> {
        let text = request.to_string();
        let mut message = Vec::with_capacity(LENGTHS + text.len() + content.len());
        for length in [text.len(), content.len()] {
            let length = u32::try_from(length).map_err(|_| unexpected_answer("a request is too large"))?;
            message.extend_from_slice(&length.to_be_bytes());
        }
        message.extend_from_slice(text.as_bytes());
        message.extend_from_slice(content);
        Ok(self.input.send(&message).await?)
    }

    /// The next answer with its bytes; a refusal is an error.
    pub(super) async fn receive(&mut self) -> Result<(Answer, Bytes), DataError> {
        loop {
            if let Some((answer, content)) = self.take_answer()? {
                return match answer.error {
                    None => Ok((answer, content)),
                    Some(reason) if answer.missing => {
                        let path =
                            reason.rsplit_once(": ").map_or(reason.clone(), |(path, _)| path.to_owned());
                        Err(DataError::Missing { path, claim: self.claim.clone() })
                    }
                    Some(reason) => Err(DataError::Refused { reason }),
                };
            }
            match self.output.next().await? {
                ExecEvent::Stdout(bytes) => self.bytes.extend_from_slice(&bytes),
                ExecEvent::Stderr(bytes) => {
                    self.last_words.extend_from_slice(&bytes);
                    let surplus = self.last_words.len().saturating_sub(LAST_WORDS);
                    self.last_words.drain(..surplus);
                }
                ExecEvent::Ended(code) => return Err(self.ended(code)),
            }
        }
    }

    #[allow(clippy::many_single_char_names, reason = "eight bytes in a row")]
    fn take_answer(&mut self) -> Result<Option<(Answer, Bytes)>, DataError> {
        let Some((lengths, _)) = self.bytes.split_first_chunk::<LENGTHS>() else { return Ok(None) };
        let [a, b, c, d, e, f, g, h] = *lengths;
        let [text, content] = [[a, b, c, d], [e, f, g, h]].map(|length| u32::from_be_bytes(length) as usize);
        if text > LARGEST_DOCUMENT || content > LARGEST_DOCUMENT {
            return Err(unexpected_answer("it is not the answer of our program"));
        }
        if self.bytes.len() < LENGTHS + text + content {
            return Ok(None);
        }
        self.bytes.advance(LENGTHS);
        let answer = serde_json::from_slice(&self.bytes.split_to(text));
        let answer = answer.map_err(|error| unexpected_answer(&error.to_string()))?;
        Ok(Some((answer, self.bytes.split_to(content).freeze())))
    }

    fn ended(&self, code: i32) -> DataError {
        let words = String::from_utf8_lossy(&self.last_words);
        let last = words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
        DataError::Pod {
            reason: format!("its program ended with {code}: {last}"),
            help: (code == 126 || code == 127)
                .then(|| "its image needs python3, 3.8 or later; `--image` names another one".to_owned()),
        }
    }

    /// What is at a path: first itself, with an empty name, then what is in it, or everything below.
    pub(crate) async fn list(
        &mut self,
        path: &str,
        is_recursive: bool,
    ) -> Result<Vec<RemoteEntry>, DataError> {
        self.send(&json!({"do": "list", "path": path, "recursive": is_recursive}), &[]).await?;
        let mut entries = Vec::new();
        loop {
            let (answer, _) = self.receive().await?;
            entries.extend(answer.entries);
            if answer.end {
                return Ok(entries);
            }
        }
    }

    /// Deletes a file, a link, or a directory with all that is below.
    pub(crate) async fn remove(&mut self, path: &str) -> Result<(), DataError> {
        self.send(&json!({"do": "remove", "path": path}), &[]).await?;
        self.receive().await.map(drop)
    }
}

/// An answer that our program does not give.
fn unexpected_answer(what: &str) -> DataError {
    DataError::Pod { reason: format!("its answer cannot be read: {what}"), help: None }
}
