//! Brings a document's text in from disk, refusing what cannot be one before a parser sees it.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::outcome::{Explain, Outcome};

/// Far above any description a person writes, far below what would make a parser slow.
const LARGEST_DOCUMENT: u64 = 1024 * 1024;

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("{} does not exist", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The path is not a file.
    #[error("{} is {what}, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The operating system refused.
    #[error("cannot read {}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: std::io::Error,
    },
    /// No description is that long.
    #[error("{} is larger than {} KiB, which no description of this kind is", path.display(), LARGEST_DOCUMENT / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are not text.
    #[error("{}:{line}: not UTF-8 text (byte {offset} of the file)", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line the first bad byte is on.
        line: usize,
        /// The number of valid bytes before it.
        offset: usize,
    },
}

impl Explain for ReadError {
    fn outcome(&self) -> Outcome {
        Outcome::Invalid
    }
}

/// Reads a whole document as UTF-8, without a byte-order mark.
pub(crate) fn read_text(path: &Path) -> Result<String, ReadError> {
    let refused = |reason: std::io::Error| match reason.kind() {
        ErrorKind::NotFound => ReadError::Missing { path: path.to_owned() },
        _ => ReadError::Refused { path: path.to_owned(), reason },
    };
    let kind = std::fs::metadata(path).map_err(refused)?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() { "a directory" } else { "a device, pipe or socket" };
        return Err(ReadError::NotAFile { path: path.to_owned(), what });
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(refused)?;
    file.take(LARGEST_DOCUMENT + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > LARGEST_DOCUMENT {
        return Err(ReadError::TooLarge { path: path.to_owned() });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..offset]);
        let line = 1 + before.matches('\n').count();
        ReadError::NotText { path: path.to_owned(), line, offset }
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
