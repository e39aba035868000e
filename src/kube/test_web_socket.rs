//! A server of WebSockets for unit tests: TLS with the golden cluster's credentials, one conversation per connection, in a thread.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};

use super::test_server::{TestServer, read_request, server_configuration};
use super::web_socket::accepted_key;

pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;
const LAST: u8 = 0x80;

/// The server's end of a WebSocket.
pub(super) struct ServerSocket {
    stream: StreamOwned<ServerConnection, TcpStream>,
}

impl ServerSocket {
    /// The next frame of the client: what it is, and what it holds.
    pub(super) fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let [first, second] = self.read()?;
        assert_eq!((first & LAST, second & 0x80), (LAST, 0x80), "one frame for each message, masked");
        let length = match second & 0x7f {
            126 => u64::from(u16::from_be_bytes(self.read()?)),
            127 => u64::from_be_bytes(self.read()?),
            short => u64::from(short),
        };
        let mask: [u8; 4] = self.read()?;
        let mut payload = Vec::new();
        Read::by_ref(&mut self.stream).take(length).read_to_end(&mut payload)?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        Ok((first & 0x0f, payload))
    }

    /// The next message of the client, pings aside.
    pub(super) fn receive_message(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.receive()? {
                (BINARY, payload) => return Ok(payload),
                (CLOSE, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }

    fn read<const COUNT: usize>(&mut self) -> io::Result<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A message on a channel.
    pub(super) fn send(&mut self, channel: u8, text: &[u8]) -> io::Result<()> {
        self.send_frame(LAST | BINARY, &[&[channel], text].concat())
    }

    /// A ping, or anything else that fits one frame.
    pub(super) fn send_control(&mut self, opcode: u8, text: &[u8]) -> io::Result<()> {
        self.send_frame(LAST | opcode, text)
    }

    /// A frame with this first byte.
    pub(super) fn send_frame(&mut self, first: u8, payload: &[u8]) -> io::Result<()> {
        let mut frame = vec![first];
        match u16::try_from(payload.len()) {
            Ok(length @ 0..=125) => frame.extend(u8::try_from(length)),
            Ok(length) => frame.extend([&[126][..], &length.to_be_bytes()].concat()),
            Err(_) => frame.extend([&[127][..], &(payload.len() as u64).to_be_bytes()].concat()),
        }
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame)?;
        self.stream.flush()
    }
}

/// A server that chooses this protocol, and then talks.
pub(super) fn serve_web_socket(
    protocol: &'static str,
    talk: impl Fn(&mut ServerSocket) -> io::Result<()> + Send + 'static,
) -> Result<TestServer, Box<dyn Error>> {
    let configuration = Arc::new(server_configuration("apiserver", "ca")?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let Ok(connection) = ServerConnection::new(Arc::clone(&configuration)) else { continue };
            let mut stream = StreamOwned::new(connection, socket);
            let Ok(request) = read_request(&mut stream) else { continue };
            let key =
                request.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n",
                accepted_key(key)
            );
            // What a client does to its connection is for the test to judge.
            let _ = stream.write_all(head.as_bytes());
            let _ = sender.send(request);
            let mut socket = ServerSocket { stream };
            let _ = socket.stream.sock.set_read_timeout(Some(Duration::from_secs(20)));
            let _ = talk(&mut socket);
            let _ = socket.stream.sock.shutdown(Shutdown::Both);
        }
    });
    Ok(TestServer { address, requests })
}
