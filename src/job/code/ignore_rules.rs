//! What of a directory is code: all but what `.gitignore` and `.infraignore` leave out, and what is never code.

use std::fs;
use std::path::{Path, PathBuf};

use super::ignore_pattern::IgnorePattern;
use crate::job::data::{DataError, PARTS_DIRECTORY, SOURCE_FILE, Selection};

/// Files with patterns; the later one wins in its directory.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".infraignore"];
/// Directories and files that no program needs, or that hold records of infra or of Python.
const NEVER_CODE: [&str; 5] = [".git", ".infra", "__pycache__", PARTS_DIRECTORY, SOURCE_FILE];
/// What says that a directory is that of a cluster.
const CLUSTER_FILE: &str = "cluster.yaml";
/// What holds keys in the directory of a cluster.
const KEYS: [&str; 3] = ["credentials", "userdata", "kubeconfig"];

/// The patterns of one directory.
#[derive(Debug)]
struct Rules {
    directory: PathBuf,
    patterns: Vec<IgnorePattern>,
    has_cluster: bool,
}

/// The patterns that count in the directory that is read now: its own, and those of the directories above it.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules {
    above: Vec<Rules>,
}

impl IgnoreRules {
    /// The patterns of the directories above `directory`: up to the root of its repository, or up to the directory of the job file.
    pub(super) fn above(directory: &Path, job_directory: &Path) -> Result<Self, DataError> {
        let real = |path: &Path| path.canonicalize().map_err(DataError::local("read", path));
        let (directory, job_directory) = (real(directory)?, real(job_directory)?);
        let repository = directory.ancestors().find(|path| path.join(".git").symlink_metadata().is_ok());
        let top = repository.unwrap_or(&job_directory);
        let mut above: Vec<&Path> =
            directory.ancestors().skip(1).take_while(|path| path.starts_with(top)).collect();
        above.reverse();
        Ok(Self { above: above.into_iter().map(Rules::read).collect::<Result<_, _>>()? })
    }
}

impl Selection for IgnoreRules {
    fn enter(&mut self, directory: &Path) -> Result<(), DataError> {
        // The paths of entries are compared with those of the directories above, which are real ones.
        let real = directory.canonicalize().map_err(DataError::local("read", directory))?;
        self.above.push(Rules::read(&real)?);
        Ok(())
    }

    fn leave(&mut self) {
        self.above.pop();
    }

    fn is_wanted(&self, source: &Path, is_directory: bool) -> bool {
        let Some(name) = source.file_name() else { return true };
        let is_one_of = |names: &[&str]| names.iter().any(|one| name == *one);
        let own = self.above.last();
        if is_one_of(&NEVER_CODE) || (is_one_of(&KEYS) && own.is_some_and(|own| own.has_cluster)) {
            return false;
        }
        // Results of a run, which `infra job fetch` put there.
        if is_directory && source.join(SOURCE_FILE).symlink_metadata().is_ok() {
            return false;
        }
        let Some(path) = own.map(|own| own.directory.join(name)) else { return true };
        let decision = self.above.iter().rev().find_map(|rules| rules.decide(&path, is_directory));
        decision.unwrap_or(true)
    }
}

impl Rules {
    fn read(directory: &Path) -> Result<Self, DataError> {
        let mut patterns = Vec::new();
        for name in IGNORE_FILES {
            let file = directory.join(name);
            // As git has it: a link is not followed.
            if !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let bytes = fs::read(&file).map_err(DataError::local("read", &file))?;
            let text = String::from_utf8_lossy(&bytes);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            patterns.extend(text.split('\n').filter_map(IgnorePattern::parse));
        }
        let has_cluster = directory.join(CLUSTER_FILE).symlink_metadata().is_ok();
        Ok(Self { directory: directory.to_owned(), patterns, has_cluster })
    }

    /// What the last pattern that matches says: whether the path is wanted.
    fn decide(&self, path: &Path, is_directory: bool) -> Option<bool> {
        let below = path.strip_prefix(&self.directory).ok()?.to_str()?;
        let last = self.patterns.iter().rev().find(|pattern| pattern.matches(below, is_directory))?;
        Some(last.is_negated)
    }
}
