//! The directory that a job brings along: what is in it, and the digest of that.

use std::path::Path;

use super::ignore_rules::IgnoreRules;
use super::largest::name_largest;
use crate::confined_directory::{ConfinedDirectory, ConfinedError};
use crate::document::Fault;
use crate::job::data::{LeftOut, LocalTree, bytes_in_words};
use crate::outcome::Explain;
use crate::plural::count_of;

/// Where code is on the claim, each tree in a directory named after its digest.
const CODE_DIRECTORY: &str = "code";
/// More than that is data, or was meant to be left out.
const MOST_BYTES: u64 = 100 << 20;
const MOST_FILES: u64 = 20_000;
/// How many digits of a digest name a directory.
const DIGEST_LENGTH: usize = 32;

/// Code of this machine, read and hashed.
#[derive(Debug)]
pub(crate) struct CodeTree {
    pub(super) tree: LocalTree,
    /// The digest of paths, contents, links and executable bits.
    pub(crate) digest: String,
    /// How many files there are.
    pub(crate) files: u64,
    /// How many bytes they have.
    pub(crate) bytes: u64,
}

impl CodeTree {
    /// Reads the directory that the job file names; `mount_points` are directories in it that the job mounts something at.
    pub(super) fn read(job_file: &Path, code: &str, mount_points: &[String]) -> Result<Self, Fault> {
        let beside =
            job_file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = find_directory(beside, code, job_file)?;
        let read = IgnoreRules::above(&directory, beside)
            .and_then(|mut rules| LocalTree::read_selected(&directory, &mut rules));
        let mut tree = read.map_err(|error| cannot_be_read(&error))?;
        let (files, bytes) = tree.size();
        check_size(&tree, files, bytes)?;
        if files == 0 {
            return Err(Fault::new(format!(
                "there is no code in '{code}': it has no files, or all are ignored"
            ))
            .help("see .gitignore and .infraignore, which say what is left out; '!name' includes it again"));
        }
        tree.remove_empty_directories();
        for point in mount_points {
            tree.ensure_directory(point).map_err(|path| {
                Fault::new(format!("nothing can be mounted at '{point}' of the code: '{path}' is a file"))
                    .help("change mounts, or rename the file")
            })?;
        }
        let digest = tree.digest().map_err(|error| cannot_be_read(&error))?;
        let digest = digest.get(..DIGEST_LENGTH).unwrap_or(&digest).to_owned();
        tree.move_below(&code_staging_directory(&digest));
        Ok(Self { tree, digest, files, bytes })
    }

    /// The directory of the code on the claim.
    #[must_use]
    pub(crate) fn directory(&self) -> String {
        format!("{CODE_DIRECTORY}/{}", self.digest)
    }

    /// What was left out although no rule says so.
    #[must_use]
    pub(crate) fn left_out(&self) -> &LeftOut {
        &self.tree.left_out
    }
}

/// Where code is on the claim while it is not complete.
pub(super) fn code_staging_directory(digest: &str) -> String {
    format!(".infra/{CODE_DIRECTORY}/{digest}")
}

fn find_directory(beside: &Path, code: &str, job_file: &Path) -> Result<std::path::PathBuf, Fault> {
    let directory = ConfinedDirectory::new(beside).path(code).map_err(|error| match &error {
        ConfinedError::Link { .. } => Fault::new(error.to_string()).help(
            "the job file may come from someone else, so code is taken from real directories below its own only: name one",
        ),
        _ => match error.help() {
            Some(help) => Fault::new(error.to_string()).help(help),
            None => Fault::new(error.to_string()),
        },
    })?;
    let name = job_file.file_name().map_or_else(|| "the job file".into(), |name| name.to_string_lossy());
    match std::fs::metadata(&directory) {
        Ok(found) if found.is_dir() => Ok(directory),
        Ok(_) => Err(Fault::new(format!("'{code}' is not a directory"))
            .help(format!("name the directory that it is in; `code: .` is that of {name}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Fault::new(format!("there is no directory '{code}' beside {name}"))
                .help(format!("`code: .` is the directory of {name}")))
        }
        Err(error) => Err(Fault::new(format!("cannot read {}: {error}", directory.display()))),
    }
}

fn cannot_be_read(error: &impl std::fmt::Display) -> Fault {
    Fault::new(format!("the code cannot be read: {error}"))
        .help("leave it out with a line in .infraignore, or change its permissions")
}

fn check_size(tree: &LocalTree, files: u64, bytes: u64) -> Result<(), Fault> {
    let (is_too_large, has_too_many) = (bytes > MOST_BYTES, files > MOST_FILES);
    if !is_too_large && !has_too_many {
        return Ok(());
    }
    let limit = if is_too_large { bytes_in_words(MOST_BYTES) } else { count_of(MOST_FILES, "file") };
    let largest = name_largest(tree.files(), !is_too_large);
    Err(Fault::new(format!(
        "the code has {} in {}, at most {limit} are allowed; the largest: {largest}",
        bytes_in_words(bytes),
        count_of(files, "file"),
    ))
    .help("leave out what the program does not need, with lines in .infraignore as `/data/` or `*.pt`; data goes to the claim with `infra data put`"))
}
