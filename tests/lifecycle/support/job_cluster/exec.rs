//! Programs in pods: the API server's WebSocket at one end, a real process on the directory that stands for the claim at the other.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::controller::phase_of;
use super::pages::write;
use super::state::Shared;
use super::store::Place;
use crate::support::api_connections::Stream;
use crate::support::http::{Message, field, fields};
use crate::support::kubernetes::{failure, not_found};
use crate::support::terminal::{at_terminal, resized, typed};
use crate::support::web_socket::{self, BINARY, CLOSE, PING, PONG};

/// How long a look for bytes of the client takes while there are none.
const GLANCE: Duration = Duration::from_millis(2);
/// How long a program may still run when its client is gone.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn exec(
    place: &Place,
    request: &Message,
    shared: &Arc<Shared>,
    stream: &mut Stream<'_>,
) -> io::Result<()> {
    let key = place.key();
    let (pod, limit) = {
        let mut state = shared.state.lock().unwrap();
        (state.store.get(&key).cloned(), state.exec_limits.pop_front().unwrap_or(usize::MAX))
    };
    let Some(pod) = pod else { return write(not_found("pods", &key.2), stream) };
    if phase_of(&pod) != "Running" {
        let message =
            format!("cannot exec into a container in a completed pod; current phase is {}", phase_of(&pod));
        return write(failure(400, "BadRequest", &message), stream);
    }
    web_socket::accept(request, "v5.channel.k8s.io", stream)?;
    let mount = pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"].as_str().unwrap();
    let claim = shared.state.lock().unwrap().claim.to_str().unwrap().to_owned();
    let words = fields(request.query(), "command");
    let words: Vec<String> = words.iter().map(|word| word.replacen(mount, &claim, 1)).collect();
    let has_terminal = field(request.query(), "tty").as_deref() == Some("true");
    let mut command = if has_terminal {
        at_terminal(words.iter().map(String::as_str))
    } else {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    };
    let mut child = command
        .envs(variables(&pod, mount, &claim))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let ended = talk(&mut child, has_terminal, limit, shared, stream);
    // Its input has ended, so that it ends too.
    let deadline = std::time::Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if std::time::Instant::now() > deadline {
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(5));
    }
    ended?;
    // The connection is no HTTP connection any more.
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Passes everything on until the program ends, the client goes, or as many bytes have passed as may.
fn talk(
    child: &mut Child,
    has_terminal: bool,
    limit: usize,
    shared: &Arc<Shared>,
    stream: &mut Stream<'_>,
) -> io::Result<()> {
    let (sender, output) = channel();
    copy_output(1, child.stdout.take().unwrap(), sender.clone());
    let stderr = child.stderr.take().unwrap();
    if has_terminal {
        // What the program writes there is on the terminal; the rest is not its own.
        thread::spawn(move || io::copy(&mut { stderr }, &mut io::sink()));
        drop(sender);
    } else {
        copy_output(2, stderr, sender);
    }
    let breaks = shared.state.lock().unwrap().breaks;
    let mut input = Some(feed(child.stdin.take().unwrap()));
    stream.sock.set_read_timeout(Some(GLANCE))?;
    let (mut bytes, mut passed) = (Vec::new(), 0);
    let mut buffer = vec![0; 256 << 10];
    loop {
        if !send_output(&output, stream, (&mut passed, limit), shared)? {
            let code = child.wait()?.code().unwrap_or(137);
            let mut status = vec![3];
            status.extend(status_of(code).into_bytes());
            web_socket::send(stream, BINARY, &status)?;
            return web_socket::send(stream, CLOSE, &[]);
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        while let Some((opcode, payload)) = web_socket::take_frame(&mut bytes) {
            match (opcode, payload.as_slice()) {
                (BINARY, [0, content @ ..]) => {
                    passed += content.len();
                    shared.state.lock().unwrap().exec_bytes.0 += content.len() as u64;
                    if let Some(input) = &input {
                        let content =
                            if has_terminal { typed(content).into_bytes() } else { content.to_vec() };
                        // A program that has ended reads no more.
                        let _ = input.send(content);
                    }
                }
                (BINARY, [4, size @ ..]) => {
                    let size: Value = serde_json::from_slice(size).unwrap();
                    shared.state.lock().unwrap().history.push(format!("window {size}"));
                    let (columns, rows) = (size["Width"].as_u64().unwrap(), size["Height"].as_u64().unwrap());
                    if let Some(input) = input.as_ref().filter(|_| has_terminal) {
                        let _ = input.send(resized(columns, rows).into_bytes());
                    }
                }
                (BINARY, [255, 0]) => input = None,
                (PING, _) => web_socket::send(stream, PONG, &payload)?,
                (CLOSE, _) => return Ok(()),
                _ => {}
            }
        }
        if passed > limit || shared.state.lock().unwrap().breaks != breaks {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
    }
}

/// The variables that a pod's container has whatever the cluster, with paths on the directory that stands for the claim.
fn variables(pod: &Value, mount: &str, claim: &str) -> Vec<(String, String)> {
    let listed = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    let own = listed.iter().filter_map(|entry| Some((entry["name"].as_str()?, entry["value"].as_str()?)));
    own.map(|(name, value)| (name.to_owned(), value.replacen(mount, claim, 1))).collect()
}

/// Sends what the program has written; false if it will write no more.
fn send_output(
    output: &Receiver<(u8, Vec<u8>)>,
    stream: &mut Stream<'_>,
    (passed, limit): (&mut usize, usize),
    shared: &Arc<Shared>,
) -> io::Result<bool> {
    use std::sync::mpsc::TryRecvError;
    loop {
        match output.try_recv() {
            Ok((channel, content)) => {
                *passed += content.len();
                shared.state.lock().unwrap().exec_bytes.1 += content.len() as u64;
                let message = [&[channel][..], &content].concat();
                web_socket::send(stream, BINARY, &message)?;
                if *passed > limit {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            }
            Err(TryRecvError::Empty) => return Ok(true),
            Err(TryRecvError::Disconnected) => return Ok(false),
        }
    }
}

fn copy_output(number: u8, mut pipe: impl Read + Send + 'static, sender: Sender<(u8, Vec<u8>)>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 32 << 10];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if sender.send((number, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// A program may read slowly, and must not keep its output from being sent.
fn feed(mut input: ChildStdin) -> SyncSender<Vec<u8>> {
    let (sender, pieces): (_, Receiver<Vec<u8>>) = sync_channel(256);
    thread::spawn(move || pieces.into_iter().try_for_each(|piece| input.write_all(&piece)));
    sender
}

fn status_of(code: i32) -> String {
    match code {
        0 => r#"{"metadata":{},"status":"Success"}"#.to_owned(),
        _ => format!(
            r#"{{"metadata":{{}},"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with exit code {code}","details":{{"causes":[{{"reason":"ExitCode","message":"{code}"}}]}}}}"#
        ),
    }
}
