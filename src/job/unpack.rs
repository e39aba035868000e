//! Unpacks an archive of results into a directory: nothing outside of it is written, linked or named, and modes follow the umask.
//!
//! Whoever may write to the claim chooses what is in the archive, so only files, directories and links among them are created.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path};
use std::time::{Duration, UNIX_EPOCH};

use tar::{Archive, Entry, EntryType};

use crate::confined_directory::{ConfinedDirectory, ConfinedError};

const DIRECTORY_MODE: u32 = 0o777;
const FILE_MODE: u32 = 0o666;
const EXECUTABLE: u32 = 0o111;

/// What was unpacked, and what was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unpacked {
    /// How many files were written.
    pub files: usize,
    /// Links that lead out of the directory, with their targets.
    pub outside_links: Vec<String>,
    /// Pipes and devices.
    pub special_files: Vec<String>,
}

/// Why an archive could not be unpacked; what was unpacked before stays.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("the archive ended early")]
    EndedEarly(#[source] io::Error),
    #[error("the archive contains '{name}', which {problem}")]
    Refused { name: String, problem: &'static str },
    #[error("writing {name}")]
    Disk {
        name: String,
        #[source]
        reason: io::Error,
    },
}

/// Unpacks an archive into a directory, which is created if it does not exist.
pub(crate) fn unpack(archive: impl Read, directory: &Path) -> Result<Unpacked, UnpackError> {
    let failed = |reason| UnpackError::Disk { name: directory.display().to_string(), reason };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let files = ConfinedDirectory::new(directory);
    let mut unpacked = Unpacked::default();
    for entry in Archive::new(archive).entries().map_err(UnpackError::EndedEarly)? {
        unpack_entry(entry.map_err(UnpackError::EndedEarly)?, &files, &mut unpacked)?;
    }
    Ok(unpacked)
}

fn unpack_entry(
    mut entry: Entry<'_, impl Read>,
    files: &ConfinedDirectory,
    unpacked: &mut Unpacked,
) -> Result<(), UnpackError> {
    let path = entry.path().map_err(UnpackError::EndedEarly)?.into_owned();
    let name = path.display().to_string();
    let refused = |problem| UnpackError::Refused { name: name.clone(), problem };
    let failed = |reason| UnpackError::Disk { name: name.clone(), reason };
    let confined = |error| match error {
        ConfinedError::Outside { .. } => refused("is outside of the directory"),
        ConfinedError::Link { .. } => refused("leads through a link"),
        ConfinedError::Disk { reason, .. } => failed(reason),
        ConfinedError::Write(error) => failed(io::Error::other(error)),
    };
    let target = files.path(&path).map_err(confined)?;
    if let Some(parent) = path.parent() {
        files.create_directory(parent, DIRECTORY_MODE).map_err(confined)?;
    }
    let link = entry.link_name().map_err(UnpackError::EndedEarly)?.map(std::borrow::Cow::into_owned);
    let link = link.unwrap_or_default();
    match entry.header().entry_type() {
        EntryType::Directory => files.create_directory(&path, DIRECTORY_MODE).map_err(confined)?,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let executable = entry.header().mode().map_err(UnpackError::EndedEarly)? & EXECUTABLE;
            let mode = FILE_MODE | if executable == 0 { 0 } else { EXECUTABLE };
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(mode).open(&target).map_err(failed)?;
            copy_content(&mut entry, &mut file, failed)?;
            unpacked.files += 1;
        }
        EntryType::Link => {
            let original = files.path(&link).map_err(confined)?;
            std::fs::hard_link(original, &target).map_err(failed)?;
            unpacked.files += 1;
        }
        EntryType::Symlink if stays_inside(&path, &link) => symlink(&link, &target).map_err(failed)?,
        EntryType::Symlink => unpacked.outside_links.push(format!("{name} -> {}", link.display())),
        // Says something about other entries.
        EntryType::XGlobalHeader => {}
        _ => unpacked.special_files.push(name),
    }
    Ok(())
}

fn copy_content(
    entry: &mut Entry<'_, impl Read>,
    file: &mut File,
    failed: impl Fn(io::Error) -> UnpackError,
) -> Result<(), UnpackError> {
    let written = io::copy(entry, file).map_err(&failed)?;
    if written != entry.size() {
        return Err(UnpackError::EndedEarly(io::ErrorKind::UnexpectedEof.into()));
    }
    let modified = entry.header().mtime().map_err(UnpackError::EndedEarly)?;
    match UNIX_EPOCH.checked_add(Duration::from_secs(modified)) {
        Some(modified) => file.set_modified(modified).map_err(failed),
        None => Ok(()),
    }
}

/// Whether a link at `path` leads to something below the directory. Upwards it may lead only first, from its own directory, which is a real
/// one: what is above another link is not known from names.
fn stays_inside(path: &Path, target: &Path) -> bool {
    let depth =
        path.components().filter(|part| matches!(part, Component::Normal(_))).count().saturating_sub(1);
    let rest = target.components().filter(|part| *part != Component::CurDir);
    let upwards = rest.clone().take_while(|part| *part == Component::ParentDir).count();
    upwards <= depth && rest.skip(upwards).all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tar::{Builder, EntryType, Header};

    use super::{UnpackError, stays_inside, unpack};

    #[test]
    fn links_may_lead_to_what_is_below_the_directory_only() {
        let inside = [("latest", "pass-1"), ("a/latest", "../b/x"), ("a/b/c", "../../d"), ("x", "./y")];
        for (path, target) in inside {
            assert!(stays_inside(Path::new(path), Path::new(target)), "{path} -> {target}");
        }
        // A name can be a link itself, so what is above it is not known.
        let outside =
            [("x", "/etc/passwd"), ("x", ".."), ("a/x", "../../y"), ("x", "a/../b"), ("./x", "../y")];
        for (path, target) in outside {
            assert!(!stays_inside(Path::new(path), Path::new(target)), "{path} -> {target}");
        }
    }

    /// An archive with one entry for each row: what it is, where, and what it holds or leads to.
    fn archive(rows: &[(EntryType, &str, &str)]) -> std::io::Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        for (kind, name, content) in rows {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o777);
            // As an attacker would: the builder refuses such names.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            let bytes = if *kind == EntryType::Regular { content.as_bytes() } else { &[] };
            if bytes.is_empty() {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            }
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            builder.append(&header, bytes)?;
        }
        builder.into_inner()
    }

    #[test]
    fn an_archive_writes_nothing_outside_of_its_directory() -> Result<(), Box<dyn std::error::Error>> {
        use EntryType::{Directory, Fifo, Link, Regular, Symlink};
        let hostile: [&[(EntryType, &str, &str)]; 6] = [
            &[(Regular, "../flag", "x")],
            &[(Regular, "/tmp/flag", "x")],
            &[(Directory, "a", ""), (Symlink, "d", "a"), (Regular, "d/flag", "x")],
            &[(Link, "copy", "../secret")],
            &[(Directory, "a", ""), (Symlink, "a/d", "../a"), (Link, "copy", "a/d/flag")],
            &[(Regular, "flag", "x"), (Regular, "flag", "y")],
        ];
        for rows in hostile {
            let temporary = tempfile::tempdir()?;
            std::fs::write(temporary.path().join("secret"), "s")?;
            let result = unpack(archive(rows)?.as_slice(), &temporary.path().join("results"));
            assert!(
                matches!(result, Err(UnpackError::Refused { .. } | UnpackError::Disk { .. })),
                "{result:?}"
            );
            let mut names: Vec<_> =
                std::fs::read_dir(temporary.path())?.flatten().map(|entry| entry.file_name()).collect();
            names.sort();
            assert_eq!(names, ["results", "secret"]);
        }
        let temporary = tempfile::tempdir()?;
        let rows = [
            (Regular, "a/file", "content"),
            (Link, "copy", "a/file"),
            (Symlink, "good", "a/file"),
            (Symlink, "bad", "../secret"),
            (Fifo, "pipe", ""),
        ];
        let unpacked = unpack(archive(&rows)?.as_slice(), temporary.path())?;
        assert_eq!((unpacked.files, unpacked.special_files), (2, vec!["pipe".to_owned()]));
        assert_eq!(unpacked.outside_links, ["bad -> ../secret"]);
        assert_eq!(std::fs::read_to_string(temporary.path().join("copy"))?, "content");
        assert_eq!(std::fs::read_dir(temporary.path())?.count(), 3);
        Ok(())
    }
}
