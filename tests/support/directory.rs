//! A directory for one test, and the binary to run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// An empty directory that is gone after the test.
pub struct Directory(TempDir);

impl Directory {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The binary, to be run in this directory with nothing of the caller's environment but PATH.
    pub fn infra_command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infra"));
        command.current_dir(self.root()).env_clear().env("HOME", self.root());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }
}
