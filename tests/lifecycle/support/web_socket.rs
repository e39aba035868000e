//! The server's side of a WebSocket, as far as an API server speaks it.

use std::io::{self, Write};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::http::Message;

pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// Agrees to speak a protocol.
pub fn accept(request: &Message, protocol: &str, stream: &mut impl Write) -> io::Result<()> {
    let key = request.header("sec-websocket-key").unwrap_or_default();
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let accepted = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()));
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accepted}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.flush()
}

/// Sends a frame.
pub fn send(stream: &mut impl Write, opcode: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = vec![0x80 | opcode];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => frame.push(length as u8),
        Ok(length) => frame.extend([&[126][..], &length.to_be_bytes()].concat()),
        Err(_) => frame.extend([&[127][..], &(payload.len() as u64).to_be_bytes()].concat()),
    }
    frame.extend_from_slice(payload);
    stream.write_all(&frame)?;
    stream.flush()
}

/// Takes the first frame off what a client has sent, if it is whole.
pub fn take_frame(bytes: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (width, length) = match second & 0x7f {
        126 => (2, u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap()))),
        127 => (8, u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap())),
        short => (0, u64::from(short)),
    };
    let (mask, start) = (2 + width, 6 + width);
    let end = start + length as usize;
    let mask: [u8; 4] = bytes.get(mask..start)?.try_into().unwrap();
    let mut payload = bytes.get(start..end)?.to_vec();
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    bytes.drain(..end);
    Some((first & 0x0f, payload))
}
