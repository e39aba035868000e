//! A directory of this machine that files are downloaded to: each appears whole or not at all, and what was downloaded of it before a
//! break is kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::error::DataError;
use super::hash::{Hash, hash_file};
use crate::confined_directory::ConfinedDirectory;

const DIRECTORY_MODE: u32 = 0o777;
const FILE_MODE: u32 = 0o666;
const EXECUTABLE: u32 = 0o111;
/// Where files are before they are whole.
pub(crate) const PARTS_DIRECTORY: &str = ".infra-parts";
/// Says where the files of a directory were fetched from: the same command continues there, another one does not mix its results in.
pub(crate) const SOURCE_FILE: &str = ".infra-source";

/// A directory that files are downloaded to.
#[derive(Clone, Debug)]
pub(super) struct Download {
    root: PathBuf,
    files: ConfinedDirectory,
}

/// A file that is not whole yet.
pub(super) struct Part {
    file: File,
    source: PathBuf,
    hash: Hash,
    pub(super) length: u64,
}

/// What a file gets when it is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileMarks {
    pub(super) modified: u64,
    pub(super) executable: bool,
}

impl Download {
    /// Creates the directory if it does not exist.
    pub(super) fn new(root: &Path) -> Result<Self, DataError> {
        fs::create_dir_all(root).map_err(DataError::local("create", root))?;
        Ok(Self { root: root.to_owned(), files: ConfinedDirectory::new(root) })
    }

    pub(super) fn create_directory(&self, path: &str) -> Result<(), DataError> {
        Ok(self.files.create_directory(path, DIRECTORY_MODE)?)
    }

    /// The hash of the file that is there, if it has this size and is as executable as the one on the claim.
    pub(super) fn hash_of(
        &self,
        path: &str,
        size: u64,
        is_executable: bool,
    ) -> Result<Option<String>, DataError> {
        let Some(found) = self.files.metadata(path)? else { return Ok(None) };
        let is_same = found.len() == size && (found.permissions().mode() & 0o100 != 0) == is_executable;
        if found.is_file() && is_same { hash_file(&self.files.path(path)?).map(Some) } else { Ok(None) }
    }

    /// What was downloaded of a file before, up to a size.
    pub(super) fn open_part(&self, path: &str, size: u64) -> Result<Part, DataError> {
        self.create_directory(PARTS_DIRECTORY)?;
        let mut name = Hash::new();
        name.update(path.as_bytes());
        let source = self.files.path(format!("{PARTS_DIRECTORY}/{}", name.finish()))?;
        let failed = DataError::local("write", &source);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .open(&source)
            .map_err(&failed)?;
        let mut length = file.metadata().map_err(&failed)?.len();
        if length > size {
            file.set_len(0).map_err(&failed)?;
            length = 0;
        }
        let hash = Hash::new().read(&file).map_err(&failed)?;
        Ok(Part { file, source, hash, length })
    }

    /// Gives a whole file its name, in place of whatever file has it.
    pub(super) fn finish(&self, part: &Part, path: &str, marks: FileMarks) -> Result<(), DataError> {
        let target = self.prepare(path)?;
        let failed = DataError::local("write", &target);
        // The mode that a new file gets, which the umask decides.
        let mode = part.file.metadata().map_err(&failed)?.permissions().mode() & 0o777;
        let readers = (mode & 0o444) >> 2;
        let mode = if marks.executable { mode | (readers & EXECUTABLE) } else { mode & !EXECUTABLE };
        part.file.set_permissions(fs::Permissions::from_mode(mode)).map_err(&failed)?;
        if let Some(modified) = UNIX_EPOCH.checked_add(Duration::from_secs(marks.modified)) {
            part.file.set_modified(modified).map_err(&failed)?;
        }
        fs::rename(&part.source, &target).map_err(failed)
    }

    /// Creates a link, in place of whatever file or link has its name.
    pub(super) fn create_link(&self, path: &str, target: &str) -> Result<(), DataError> {
        let parent = Path::new(path).parent().unwrap_or(Path::new(""));
        self.files.create_directory(parent, DIRECTORY_MODE)?;
        let place = self.files.path(parent)?.join(Path::new(path).file_name().unwrap_or_default());
        let failed = DataError::local("create", &place);
        if fs::read_link(&place).is_ok_and(|found| found == Path::new(target)) {
            return Ok(());
        }
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        symlink(target, &place).map_err(failed)
    }

    /// Writes a small file of ours.
    pub(super) fn mark(&self, name: &str, text: &str) -> Result<(), DataError> {
        let path = self.files.path(name)?;
        fs::write(&path, text).map_err(DataError::local("write", &path))
    }

    /// Deletes the directory of parts, once all files are whole.
    pub(super) fn clean_up(&self) {
        // Parts of files that are gone on the claim stay for a later run.
        let _ = fs::remove_dir(self.root.join(PARTS_DIRECTORY));
    }

    fn prepare(&self, path: &str) -> Result<PathBuf, DataError> {
        if let Some(parent) = Path::new(path).parent() {
            self.files.create_directory(parent, DIRECTORY_MODE)?;
        }
        Ok(self.files.path(path)?)
    }
}

impl Part {
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        self.file.write_all(bytes).map_err(DataError::local("write", &self.source))?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The hash of all that is there.
    pub(super) fn hash(&self) -> String {
        self.hash.clone().finish()
    }

    /// Forgets what was downloaded.
    pub(super) fn discard(&self) -> Result<(), DataError> {
        fs::remove_file(&self.source).map_err(DataError::local("delete", &self.source))
    }
}
