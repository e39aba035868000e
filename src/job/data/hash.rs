//! The content of a file as a hash.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};

use super::error::DataError;
use crate::hexadecimal::hexadecimal;

const PIECE: usize = 1 << 20;

/// A hash that grows with what it is given.
#[derive(Clone)]
pub(super) struct Hash(Context);

impl Hash {
    pub(super) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> String {
        hexadecimal(self.0.finish().as_ref())
    }

    /// The hash of everything that is left to read.
    pub(super) fn read(mut self, mut reader: impl Read) -> io::Result<Self> {
        let mut buffer = vec![0; PIECE];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(self),
                count => self.update(&buffer[..count]),
            }
        }
    }
}

/// The hash of a file of this machine.
pub(super) fn hash_file(path: &Path) -> Result<String, DataError> {
    let read = File::open(path).and_then(|file| Hash::new().read(file));
    Ok(read.map_err(DataError::local("read", path))?.finish())
}
