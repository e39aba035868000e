//! Rendered files on disk: writes them, and finds those of an earlier render.

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use super::Project;
use super::asset_directory::AssetDirectory;
use super::error::ProjectError;
use crate::render::Assets;

/// A folder of the asset directory that rendering writes to.
struct Folder {
    name: &'static str,
    /// What the names of rendered files end with.
    extension: &'static str,
    /// What others may do in it at most; the umask may allow less.
    mode: u32,
}

const FOLDERS: [Folder; 3] = [
    Folder { name: "stacks", extension: "json", mode: 0o755 },
    // It holds keys.
    Folder { name: "userdata", extension: "ign", mode: 0o700 },
    Folder { name: "manifests", extension: "yaml", mode: 0o755 },
];

/// What was done to the files, by their path below the asset directory.
#[derive(Debug, Default)]
pub(crate) struct WrittenFiles {
    /// Files that are new or have changed.
    pub(crate) written: Vec<String>,
    /// How many files are unchanged.
    pub(crate) unchanged: usize,
    /// Files of an earlier render that are no longer needed.
    pub(crate) deleted: Vec<String>,
}

impl Project {
    /// Writes every rendered file that is not on disk as it should be, and deletes those of an earlier render.
    pub(crate) fn write(&self, assets: &Assets) -> Result<WrittenFiles, ProjectError> {
        let mut files = WrittenFiles::default();
        let on_disk = &self.directory.files;
        for folder in &FOLDERS {
            on_disk.create_directory(folder.name, folder.mode)?;
        }
        for asset in assets.files() {
            if on_disk.ensure_file(&asset.path, &asset.bytes, asset.access)? {
                files.written.push(asset.path.clone());
            } else {
                files.unchanged += 1;
            }
        }
        for stale in self.files_of_earlier_render(assets)? {
            on_disk.delete_file(&stale)?;
            files.deleted.push(stale);
        }
        Ok(files)
    }

    /// How many files on disk are not what was rendered now; none if nothing was ever written.
    pub(crate) fn count_outdated_files(&self, assets: &Assets) -> Result<usize, ProjectError> {
        if self.directory.rendered_files()?.is_empty() {
            return Ok(0);
        }
        let mut outdated = self.files_of_earlier_render(assets)?.len();
        for asset in assets.files() {
            let found = self.directory.files.read(&asset.path)?.map(Zeroizing::new);
            outdated += usize::from(found.is_none_or(|bytes| bytes != asset.bytes));
        }
        Ok(outdated)
    }

    fn files_of_earlier_render(&self, assets: &Assets) -> Result<Vec<String>, ProjectError> {
        let wanted: BTreeSet<&str> = assets.files().map(|asset| asset.path.as_str()).collect();
        let mut files = self.directory.rendered_files()?;
        files.retain(|path| !wanted.contains(path.as_str()));
        Ok(files)
    }
}

impl AssetDirectory {
    /// Every rendered file on disk, by its path below the directory.
    fn rendered_files(&self) -> Result<Vec<String>, ProjectError> {
        let mut files = Vec::new();
        for folder in &FOLDERS {
            for entry in self.files.entries(folder.name)? {
                let is_ours = entry.path().extension().is_some_and(|found| found == folder.extension);
                let kind = entry.file_type().map_err(ProjectError::disk("read", &entry.path()))?;
                if is_ours && kind.is_file() {
                    files.push(format!("{}/{}", folder.name, entry.file_name().to_string_lossy()));
                }
            }
        }
        Ok(files)
    }
}
