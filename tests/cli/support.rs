//! A directory for one test, the binary, and the tools that scripts/prepare-tests sets up.

#[path = "../support/directory.rs"]
mod directory;
#[path = "../support/outcome.rs"]
mod outcome;
#[path = "../support/test_tool.rs"]
pub mod test_tool;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::directory::Directory;
pub use self::outcome::Outcome;
use self::test_tool::test_tool;

/// A cluster.yaml with nothing but what must be there, three members and two controllers.
pub const MINIMAL: &str = "\
clusterName: paddle
externalDNSName: k8s.example.com
region: us-west-2
availabilityZones: [us-west-2a, us-west-2b, us-west-2c]
kmsKeyArn: arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
";

/// A directory for a cluster, without AWS.
pub struct Workspace(Directory);

impl Deref for Workspace {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

impl Workspace {
    pub fn new() -> Self {
        Self(Directory::new())
    }

    /// A directory with a minimal cluster.yaml.
    pub fn with_cluster() -> Self {
        let workspace = Self::new();
        workspace.write("cluster.yaml", MINIMAL);
        workspace
    }

    /// A directory with a minimal cluster.yaml and all its credentials.
    pub fn with_credentials() -> Self {
        let workspace = Self::with_cluster();
        workspace.infra(["render", "credentials", "--generate-ca"]).expect_code(0);
        workspace
    }

    pub fn credential(&self, name: &str) -> PathBuf {
        self.path("credentials").join(name)
    }

    pub fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    pub fn command<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = self.infra_command();
        command.args(arguments);
        command
    }

    pub fn infra<const N: usize>(&self, arguments: [&str; N]) -> Outcome {
        Outcome::of(&mut self.command(arguments))
    }
}

/// A program that scripts/prepare-tests provides.
#[track_caller]
pub fn tool(path: &str) -> Command {
    Command::new(test_tool(path))
}

/// Runs openssl; returns what it printed, or its error.
pub fn openssl<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<String, String> {
    let run = Outcome::of(Command::new("openssl").args(arguments));
    if run.code == 0 { Ok(run.stdout) } else { Err(format!("{}{}", run.stdout, run.stderr)) }
}

/// Every regular file below a directory, with its bytes.
pub fn files_in(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}
