//! Ports of pods: the API server's WebSocket at one end, a server of the test at the other.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::controller::phase_of;
use super::pages::write;
use super::state::Shared;
use super::store::Place;
use crate::support::api_connections::Stream;
use crate::support::http::{Message, field};
use crate::support::kubernetes::{failure, not_found};
use crate::support::web_socket::{self, BINARY, CLOSE, PING, PONG};

/// How long a look for bytes takes while there are none.
const GLANCE: Duration = Duration::from_millis(2);

pub fn forward_port(
    place: &Place,
    request: &Message,
    shared: &Arc<Shared>,
    stream: &mut Stream<'_>,
) -> io::Result<()> {
    let key = place.key();
    let port: u16 = field(request.query(), "ports").unwrap().parse().unwrap();
    let (pod, address, breaks) = {
        let state = shared.state.lock().unwrap();
        (state.store.get(&key).cloned(), state.ports.get(&port).copied(), state.breaks)
    };
    let Some(pod) = pod else { return write(not_found("pods", &key.2), stream) };
    if phase_of(&pod) != "Running" {
        let message =
            format!("unable to forward port because pod is not running. Current status={}", phase_of(&pod));
        return write(failure(400, "BadRequest", &message), stream);
    }
    web_socket::accept(request, "v4.channel.k8s.io", stream)?;
    for channel in [0, 1] {
        web_socket::send(stream, BINARY, &[&[channel][..], &port.to_le_bytes()].concat())?;
    }
    match address.map(TcpStream::connect) {
        Some(Ok(server)) => {
            let is_broken = || shared.state.lock().unwrap().breaks != breaks;
            relay(&server, stream, is_broken)?;
        }
        _ => {
            let said = format!(
                "error forwarding port {port} to pod {}, uid : failed to connect to localhost:{port}: connection refused",
                key.2
            );
            web_socket::send(stream, BINARY, &[&[1][..], said.as_bytes()].concat())?;
        }
    }
    web_socket::send(stream, CLOSE, &[])?;
    // The connection is no HTTP connection any more.
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Passes everything on until one of both goes.
fn relay(mut server: &TcpStream, stream: &mut Stream<'_>, is_broken: impl Fn() -> bool) -> io::Result<()> {
    server.set_read_timeout(Some(GLANCE))?;
    stream.sock.set_read_timeout(Some(GLANCE))?;
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let is_idle =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    loop {
        match server.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => web_socket::send(stream, BINARY, &[&[0][..], &buffer[..length]].concat())?,
            Err(error) if is_idle(&error) => {}
            Err(error) => return Err(error),
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            Err(error) if is_idle(&error) => {}
            Err(error) => return Err(error),
        }
        while let Some((opcode, payload)) = web_socket::take_frame(&mut bytes) {
            match (opcode, payload.as_slice()) {
                (BINARY, [0, content @ ..]) => server.write_all(content)?,
                (PING, _) => web_socket::send(stream, PONG, &payload)?,
                (CLOSE, _) => return Ok(()),
                _ => {}
            }
        }
        if is_broken() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
    }
}
