//! Bytes as hexadecimal digits, the way digests are written.

use std::fmt::Write as _;

/// Two lower-case digits per byte.
#[must_use]
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
