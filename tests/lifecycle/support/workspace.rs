//! A directory with one of the clusters of tests/clusters and an account of its own, and the binary to run in it.

use std::fs::{self, Permissions};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use super::aws::Aws;
use super::directory::Directory;
use super::invocation::Invocation;
use super::terminal::at_terminal;

/// A directory that is gone after the test.
pub struct Workspace {
    directory: Directory,
    account: String,
}

impl Deref for Workspace {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.directory
    }
}

impl Workspace {
    /// The cluster.yaml and the credentials of a cluster of tests/clusters.
    pub fn of_golden(name: &str) -> Self {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters").join(name);
        let workspace = Self { directory: Directory::new(), account: fresh_account() };
        fs::copy(golden.join("cluster.yaml"), workspace.path("cluster.yaml")).unwrap();
        fs::create_dir(workspace.credentials()).unwrap();
        fs::set_permissions(workspace.credentials(), Permissions::from_mode(0o700)).unwrap();
        for entry in fs::read_dir(golden.join("credentials")).unwrap() {
            let from = entry.unwrap().path();
            let name = from.file_name().unwrap().to_str().unwrap();
            let to = workspace.credentials().join(name);
            fs::copy(&from, &to).unwrap();
            // Git keeps no modes.
            let secret = name.ends_with("-key.pem") || name.ends_with(".key");
            fs::set_permissions(to, Permissions::from_mode(if secret { 0o600 } else { 0o644 })).unwrap();
        }
        workspace
    }

    /// Another directory for the same account, with nothing but the cluster.yaml, and the credentials if they are handed over.
    pub fn elsewhere(&self, with_credentials: bool) -> Self {
        let other = Self { directory: Directory::new(), account: self.account.clone() };
        fs::copy(self.path("cluster.yaml"), other.path("cluster.yaml")).unwrap();
        if with_credentials {
            let status = Command::new("cp")
                .arg("-rp")
                .args([self.credentials(), other.credentials()])
                .status()
                .unwrap();
            assert!(status.success());
        }
        other
    }

    pub fn credentials(&self) -> PathBuf {
        self.path("credentials")
    }

    /// Changes cluster.yaml.
    #[track_caller]
    pub fn edit(&self, change: impl FnOnce(&str) -> String) {
        let before = self.read("cluster.yaml");
        let after = change(&before);
        assert_ne!(before, after, "the edit changed nothing");
        self.write("cluster.yaml", after);
    }

    /// Twelve digits that no other test uses.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The value of a key of cluster.yaml that has a line of its own.
    #[track_caller]
    pub fn setting(&self, key: &str) -> String {
        let text = self.read("cluster.yaml");
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        value.unwrap_or_else(|| panic!("no {key} in:\n{text}")).trim().to_owned()
    }

    /// `infra -C DIRECTORY` with these arguments, and with nothing of the caller's environment but PATH.
    pub fn infra<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let mut command = self.infra_command();
        command.arg("-C").arg(self.root()).args(arguments);
        self.authenticate(&mut command);
        Invocation::of_infra(command)
    }

    /// `infra -C DIRECTORY` with these words at a pseudo-terminal; all that is seen there is on standard output.
    pub fn at_terminal(&self, words: &str, terminal: &str) -> Invocation {
        let line = format!("{} -C {} {words}", env!("CARGO_BIN_EXE_infra"), self.root().display());
        let mut command = Command::new("script");
        command.args(["-qefc", &line, "/dev/null"]).env_clear().env("TERM", terminal);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.root());
        self.authenticate(&mut command);
        Invocation::of_infra(command)
    }

    /// `infra -C DIRECTORY` with these words at a terminal that obeys the orders of [`terminal`](super::terminal).
    pub fn at_own_terminal<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Invocation {
        let mut command = at_terminal([env!("CARGO_BIN_EXE_infra"), "-C"]);
        command.arg(self.root()).args(words);
        command.env_clear().env("TERM", "xterm").env("HOME", self.root());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        self.authenticate(&mut command);
        Invocation::of_infra(command).typed()
    }

    fn authenticate(&self, command: &mut Command) {
        command.env("AWS_ACCESS_KEY_ID", &self.account).env("AWS_SECRET_ACCESS_KEY", "any");
        command.env("AWS_EC2_METADATA_DISABLED", "true");
    }

    /// Looks at this workspace's account in the region of its cluster.
    pub fn aws(&self, url: &str) -> Aws {
        Aws { url: url.to_owned(), account: self.account.clone(), region: self.setting("region") }
    }
}

/// Test binaries that run at the same time count from different numbers.
fn fresh_account() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let first = 100_000_000_000 + u64::from(std::process::id()) * 10_000;
    (first + NEXT.fetch_add(1, Ordering::Relaxed)).to_string()
}
