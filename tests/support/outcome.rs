//! How a program ended, and what it printed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output};

/// The end of a run; killed by a signal it has the code that a shell would give it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Runs a program that ends by itself.
    pub fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self::new(status, text(stdout), text(stderr))
    }

    pub fn new(status: ExitStatus, stdout: String, stderr: String) -> Self {
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Self { code, stdout, stderr }
    }

    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn expect_stdout(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "'{part}' is not in:\n{}", self.stdout);
        self
    }

    #[track_caller]
    pub fn expect_stderr(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "'{part}' is not in:\n{}", self.stderr);
        self
    }
}
