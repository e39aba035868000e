//! What every certificate that is issued needs: a serial number, and a start that allows for clocks that differ.

use rcgen::SerialNumber;
use time::Duration;

use super::error::CredentialsError;

/// Clocks differ: a certificate is valid from a little before its creation.
pub(super) fn clock_tolerance() -> Duration {
    Duration::hours(1)
}

/// Sixteen random bytes, positive; the library's own default would repeat itself for the same key.
pub(super) fn random_serial() -> Result<SerialNumber, CredentialsError> {
    let mut bytes = [0; 16];
    fill_random(&mut bytes)?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// Random bytes from the operating system's generator.
pub(super) fn fill_random(bytes: &mut [u8]) -> Result<(), CredentialsError> {
    aws_lc_rs::rand::fill(bytes).map_err(|_| CredentialsError::Crypto {
        what: "random bytes".to_owned(),
        reason: "the operating system gave none".to_owned(),
    })
}
