//! The stand-in for AWS that tests/aws/launcher.py describes: it has a URL, and settings of what fails.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::test_tool::test_tool;

/// A server of its own on a free port of 127.0.0.1. It ends when it is dropped, or when its owner dies.
pub struct MiniStack {
    process: Child,
    /// Open as long as the server, which may print to it.
    _stdout: BufReader<ChildStdout>,
    directory: PathBuf,
    url: String,
    settings: Mutex<Value>,
}

impl MiniStack {
    /// The server that all tests of this binary share: each account sees only what is its own, and has settings of its own. A test
    /// that needs some for every account starts its own server.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<MiniStack> = LazyLock::new(MiniStack::start);
        &SHARED
    }

    pub fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = test_tool("aws-venv/bin/python");
        let directory = tempfile::Builder::new().prefix("ministack-").tempdir().unwrap().keep();
        let settings = json!({});
        write_control(&directory, &settings);
        let mut process = Command::new("/bin/sh")
            // A shared server is never dropped: the shell tidies up after it, whatever happened to the tests.
            .args(["-c", r#""$0" -I "$1" && cd / && rm -rf "$TMPDIR""#])
            .args([&python, &root.join("tests/aws/launcher.py")])
            // Nothing of the caller's: no proxy, no credentials, and no Docker, whose containers MiniStack would tidy up.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", &directory)
            .env("CONTROL_FILE", directory.join("control.json"))
            .env("LOG_LEVEL", "ERROR")
            .env("DOCKER_HOST", "unix:///nowhere")
            .env("SFTP_ENABLED", "0")
            .env("IOT_MTLS_ENABLED", "0")
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(directory.join("log")).unwrap())
            // A group of its own: Control-C reaches the tests only, and the end of standard input does the rest.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}", port.trim());
        let server = Self { process, _stdout: stdout, directory, url, settings: Mutex::new(settings) };
        assert!(!port.trim().is_empty(), "MiniStack did not start:\n{}", server.log());
        server
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its control file and its log are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sets the faults and delays from now on; an empty object means none. See launcher.py.
    pub fn control(&self, settings: Value) {
        let mut now = self.settings.lock().unwrap();
        *now = settings;
        write_control(&self.directory, &now);
    }

    /// The same for one account.
    pub fn control_account(&self, account: &str, settings: Value) {
        let mut now = self.settings.lock().unwrap();
        now["accounts"][account] = settings;
        write_control(&self.directory, &now);
    }

    /// The log of the server.
    pub fn log(&self) -> String {
        fs::read(self.directory.join("log"))
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The server reads the file at any moment, and never half of it.
fn write_control(directory: &Path, settings: &Value) {
    let part = directory.join("control.part");
    fs::write(&part, settings.to_string()).unwrap();
    fs::rename(part, directory.join("control.json")).unwrap();
}

impl Drop for MiniStack {
    fn drop(&mut self) {
        // The launcher ends with its standard input.
        drop(self.process.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        if matches!(self.process.try_wait(), Ok(None)) {
            let group = format!("-{}", self.process.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = self.process.wait();
        }
        // The shell keeps the log of a server that failed.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
