//! Rendered files on disk: writing them, and telling which are of an earlier render.

use std::collections::BTreeSet;

use super::Project;
use super::asset_directory::AssetDirectory;
use super::error::ProjectError;
use crate::durable_file;
use crate::render::{Asset, Assets};

/// What rendering writes below the asset directory: folders, and what the names of its files end with.
const FOLDERS: [(&str, &str); 3] = [("stacks", "json"), ("userdata", "ign"), ("manifests", "yaml")];

/// What was done to the files, by their path below the asset directory.
#[derive(Debug, Default)]
pub(crate) struct WrittenFiles {
    /// New ones, and those that have changed.
    pub(crate) written: Vec<String>,
    /// How many are as they were.
    pub(crate) unchanged: usize,
    /// Those of an earlier render that are no longer needed.
    pub(crate) deleted: Vec<String>,
}

impl Project {
    /// Writes every rendered file that is not on disk as it should be, and deletes those of an earlier render.
    pub(crate) fn write(&self, assets: &Assets) -> Result<WrittenFiles, ProjectError> {
        let mut files = WrittenFiles::default();
        for asset in assets.files() {
            let path = self.directory.file(&asset.path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(ProjectError::disk("create", parent))?;
            }
            if durable_file::ensure(&path, &asset.bytes, asset.access)? {
                files.written.push(asset.path.clone());
            } else {
                files.unchanged += 1;
            }
        }
        for stale in self.files_of_earlier_render(assets)? {
            let path = self.directory.file(&stale);
            std::fs::remove_file(&path).map_err(ProjectError::disk("delete", &path))?;
            files.deleted.push(stale);
        }
        Ok(files)
    }

    /// How many files on disk are not what was rendered now; none if nothing was ever written.
    pub(crate) fn count_outdated_files(&self, assets: &Assets) -> Result<usize, ProjectError> {
        if self.directory.rendered_files()?.is_empty() {
            return Ok(0);
        }
        let differs = |asset: &&Asset| {
            std::fs::read(self.directory.file(&asset.path)).map_or(true, |bytes| bytes != *asset.bytes)
        };
        Ok(assets.files().filter(differs).count() + self.files_of_earlier_render(assets)?.len())
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
        for (folder, extension) in FOLDERS {
            let path = self.file(folder);
            if !path.is_dir() {
                continue;
            }
            for entry in std::fs::read_dir(&path).map_err(ProjectError::disk("read", &path))? {
                let entry = entry.map_err(ProjectError::disk("read", &path))?;
                let is_ours = entry.path().extension().is_some_and(|found| found == extension);
                let kind = entry.file_type().map_err(ProjectError::disk("read", &entry.path()))?;
                if is_ours && kind.is_file() {
                    files.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        Ok(files)
    }
}
