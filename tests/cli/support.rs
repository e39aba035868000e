//! A directory for one test, the binary, and the tools that scripts/prepare-tests sets up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A cluster.yaml with nothing but what must be there, three members and two controllers.
pub const MINIMAL: &str = "\
clusterName: paddle
externalDNSName: k8s.example.com
region: us-west-2
availabilityZones: [us-west-2a, us-west-2b, us-west-2c]
kmsKeyArn: arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
";

/// An empty directory that is gone after the test.
pub struct Workspace(TempDir);

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Workspace {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
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

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn credential(&self, name: &str) -> PathBuf {
        self.path("credentials").join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    /// The binary, to be run in this directory with nothing of the caller's settings.
    pub fn command<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infra"));
        command.args(arguments).current_dir(self.0.path());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.0.path());
        command
    }

    pub fn infra<const N: usize>(&self, arguments: [&str; N]) -> Run {
        Run::of(&mut self.command(arguments))
    }
}

impl Run {
    pub fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn expect_stderr(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "'{part}' is not in:\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub fn expect_stdout(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "'{part}' is not in:\n{}", self.stdout);
        self
    }
}

/// A program that scripts/prepare-tests provides.
#[track_caller]
pub fn tool(path: &str) -> Command {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-tools").join(path);
    assert!(full.exists(), "{} is not there: run scripts/prepare-tests once", full.display());
    Command::new(full)
}

/// Runs openssl and gives back what it printed, or what it complained about.
pub fn openssl<const N: usize>(arguments: [&str; N]) -> Result<String, String> {
    let run = Run::of(Command::new("openssl").args(arguments));
    if run.code == Some(0) { Ok(run.stdout) } else { Err(format!("{}{}", run.stdout, run.stderr)) }
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
