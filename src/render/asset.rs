//! A rendered file: its path, its bytes, and who may read it.

use std::fmt;

use zeroize::Zeroizing;

use crate::durable_file::Access;
use crate::hexadecimal::hexadecimal;

/// One rendered file.
#[derive(Clone)]
pub struct Asset {
    /// The path of the file below the asset directory.
    pub path: String,
    /// The bytes of the file; wiped when they are no longer needed, because many hold keys.
    pub bytes: Zeroizing<Vec<u8>>,
    /// Who may read the file.
    pub access: Access,
}

impl Asset {
    /// A file that holds keys.
    pub(super) fn private(path: String, bytes: Zeroizing<Vec<u8>>) -> Self {
        Self { path, bytes, access: Access::Private }
    }

    /// A config that the team wrote.
    #[must_use]
    pub fn snippet(name: &str, text: String) -> Self {
        Self::private(format!("snippets/{name}"), Zeroizing::new(text.into_bytes()))
    }

    /// A file that can be committed.
    pub(super) fn public(path: String, text: String) -> Self {
        Self { path, bytes: Zeroizing::new(text.into_bytes()), access: Access::Public }
    }

    /// The SHA-512 of the bytes, in hexadecimal digits.
    #[must_use]
    pub fn sha512(&self) -> String {
        hexadecimal(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA512, &self.bytes).as_ref())
    }
}

/// The bytes may be secret.
impl fmt::Debug for Asset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Asset({}, {} bytes)", self.path, self.bytes.len())
    }
}
