//! Names of archives.

/// What Python's tarfile and zipfile read.
pub(crate) const ARCHIVE_ENDINGS: [&str; 7] =
    [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz", ".zip"];

/// Whether a name is that of an archive that can be unpacked.
#[must_use]
pub(crate) fn is_archive(name: &str) -> bool {
    ARCHIVE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}
