//! Frames of a WebSocket (RFC 6455): bytes of a connection into messages and pings, and back.
//!
//! Written here because the usual crates change features that the AWS SDK's crates share, which builds all of them again; what a client of
//! one kind of server needs of the protocol is this file.

use bytes::{Buf, Bytes, BytesMut};

/// Larger than anything that an API server sends at once.
const LARGEST_PAYLOAD: u64 = 16 << 20;
const LAST: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const SHORT: u8 = 125;
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    /// More of the message before.
    Continuation,
    /// A message, or its beginning. Text counts as one.
    Binary,
    /// Nothing follows.
    Close,
    /// To be answered with a pong.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl Opcode {
    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 | 2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }
}

/// A frame from the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebSocketFrame {
    /// Whether the message ends with it.
    pub(super) is_last: bool,
    pub(super) opcode: Opcode,
    pub(super) payload: Bytes,
}

/// A whole message as one frame from a client, whose payload is the parts one after the other, masked as clients must.
pub(super) fn encode_frame(opcode: Opcode, parts: &[&[u8]], mask: [u8; 4]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(length + 14);
    frame.push(LAST | opcode.number());
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short <= SHORT => frame.push(MASKED | short),
        (_, Ok(length)) => {
            frame.push(MASKED | TWO_BYTES);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            frame.push(MASKED | EIGHT_BYTES);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&mask);
    let start = frame.len();
    for part in parts {
        frame.extend_from_slice(part);
    }
    apply_mask(&mut frame[start..], mask);
    frame
}

/// Eight bytes at a time: a byte at a time would be the slowest part of an upload.
fn apply_mask(payload: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let mut words = payload.chunks_exact_mut(8);
    for word in &mut words {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        word.copy_from_slice(&(u64::from_ne_bytes(bytes) ^ wide).to_ne_bytes());
    }
    for (byte, mask) in words.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// Takes the first frame off the bytes that have come; nothing if it is not whole yet. The error says what is wrong with it.
pub(super) fn take_frame(bytes: &mut BytesMut) -> Result<Option<WebSocketFrame>, &'static str> {
    let [first, second, rest @ ..] = &bytes[..] else { return Ok(None) };
    if first & RESERVED != 0 {
        return Err("a frame of its WebSocket uses an extension that nobody asked for");
    }
    let Some(opcode) = Opcode::of(first & 0x0F) else {
        return Err("a frame of its WebSocket has an unknown kind");
    };
    if second & MASKED != 0 {
        return Err("a frame of its WebSocket is masked, as only those of clients are");
    }
    let (width, length) = match second & !MASKED {
        TWO_BYTES => (2, rest.first_chunk().map(|bytes| u64::from(u16::from_be_bytes(*bytes)))),
        EIGHT_BYTES => (8, rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))),
        short => (0, Some(u64::from(short))),
    };
    let Some(length) = length else { return Ok(None) };
    if length > LARGEST_PAYLOAD {
        return Err("a frame of its WebSocket is larger than 16 MiB");
    }
    let (is_last, head) = (first & LAST != 0, 2 + width);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if bytes.len() - head < length {
        bytes.reserve(head + length - bytes.len());
        return Ok(None);
    }
    bytes.advance(head);
    Ok(Some(WebSocketFrame { is_last, opcode, payload: bytes.split_to(length).freeze() }))
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};

    use super::{Opcode, WebSocketFrame, encode_frame, take_frame};

    /// The frames of RFC 6455, 5.7.
    #[test]
    fn the_examples_of_the_standard_are_read_and_written() {
        assert_eq!(
            encode_frame(Opcode::Pong, &[b"Hel", b"lo"], [0x37, 0xfa, 0x21, 0x3d]),
            [0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]
        );
        let mut bytes = BytesMut::from(&b"\x01\x03Hel\x80\x02lo\x89\x05Hello"[..]);
        let expected = [
            (false, Opcode::Binary, "Hel"),
            (true, Opcode::Continuation, "lo"),
            (true, Opcode::Ping, "Hello"),
        ];
        for (is_last, opcode, text) in expected {
            let payload = Bytes::from(text);
            assert_eq!(take_frame(&mut bytes), Ok(Some(WebSocketFrame { is_last, opcode, payload })));
        }
        assert_eq!((take_frame(&mut bytes), bytes.len()), (Ok(None), 0));
    }

    #[test]
    fn lengths_of_every_width_are_written_and_read() -> Result<(), &'static str> {
        for (length, head) in [(0, 6), (125, 6), (126, 8), (65_535, 8), (65_536, 14)] {
            let content: Vec<u8> =
                (0..length).map(|number| u8::try_from(number % 251).unwrap_or(0)).collect();
            let frame = encode_frame(Opcode::Binary, &[&content], [7, 8, 9, 10]);
            assert_eq!(frame.len(), length + head);
            // As a server would send it: without the mask.
            let mut plain = BytesMut::from(&frame[..head - 4]);
            plain[1] &= 0x7f;
            plain.extend_from_slice(&content);
            for end in [1, head - 5, head - 4] {
                let mut part = BytesMut::from(&plain[..end.min(plain.len() - 1)]);
                assert_eq!(take_frame(&mut part), Ok(None), "{length}: {end} bytes");
            }
            let read = take_frame(&mut plain)?.ok_or("it is not whole")?;
            assert_eq!(read.payload, content);
            let unmasked =
                frame[head..].iter().zip([7, 8, 9, 10].iter().cycle()).map(|(byte, mask)| byte ^ mask);
            assert!(unmasked.eq(content));
        }
        Ok(())
    }

    #[test]
    fn what_no_server_may_send_is_refused() {
        let hostile: [&[u8]; 4] =
            [b"\xc2\x01a", b"\x83\x01a", b"\x82\x81aaaaa", b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"];
        for bytes in hostile {
            assert!(take_frame(&mut BytesMut::from(bytes)).is_err(), "{bytes:?}");
        }
    }
}
