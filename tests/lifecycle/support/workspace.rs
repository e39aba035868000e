//! A directory with one of the clusters of tests/clusters and an account of its own, the binary to run in it, and a plain client
//! that looks at what it did.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::http::{Message, ask, percent_encode};
use super::kubernetes::KubernetesApi;
use super::{authorization, element};

pub const TEMPO_VARIABLE: &str = "INFRA_TEST_TEMPO";
/// Pauses are this part of those that users get, so that tests do not sleep; time limits are as they are.
pub const TEMPO: &str = "0.05";

/// A directory that is gone after the test.
pub struct Workspace {
    directory: TempDir,
    account: String,
}

impl Workspace {
    /// The cluster.yaml and the credentials of a cluster of tests/clusters.
    pub fn of_golden(name: &str) -> Self {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters").join(name);
        let workspace = Self { directory: tempfile::tempdir().unwrap(), account: fresh_account() };
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
        let other = Self { directory: tempfile::tempdir().unwrap(), account: self.account.clone() };
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

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    pub fn credentials(&self) -> PathBuf {
        self.path("credentials")
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Changes cluster.yaml.
    #[track_caller]
    pub fn edit(&self, change: impl FnOnce(&str) -> String) {
        let before = self.read("cluster.yaml");
        let after = change(&before);
        assert_ne!(before, after, "the edit changed nothing");
        fs::write(self.path("cluster.yaml"), after).unwrap();
    }

    /// Twelve digits that nobody else uses.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The value of a key of cluster.yaml that stands on a line of its own.
    #[track_caller]
    pub fn setting(&self, key: &str) -> String {
        let text = self.read("cluster.yaml");
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        value.unwrap_or_else(|| panic!("no {key} in:\n{text}")).trim().to_owned()
    }

    /// `infra -C DIRECTORY` with these arguments, and with nothing of the caller's environment but PATH.
    pub fn infra<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infra"));
        command.arg("-C").arg(self.directory()).args(arguments).current_dir(self.directory());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.directory()).env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("AWS_ACCESS_KEY_ID", &self.account).env("AWS_SECRET_ACCESS_KEY", "any");
        Invocation::of(command).env(TEMPO_VARIABLE, TEMPO)
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

/// A run that is about to begin.
pub struct Invocation {
    command: Command,
    input: Option<String>,
    time_limit: Duration,
}

impl Invocation {
    /// Any program, with five minutes to end, which only what hangs ever needs.
    pub fn of(command: Command) -> Self {
        Self { command, input: None, time_limit: Duration::from_secs(300) }
    }

    /// Appends `--endpoint-url`.
    pub fn endpoint(mut self, url: &str) -> Self {
        self.command.args(["--endpoint-url", url]);
        self
    }

    /// With the pauses that users get: for tests of the pauses themselves.
    pub fn at_real_tempo(mut self) -> Self {
        self.command.env_remove(TEMPO_VARIABLE);
        self
    }

    /// The cluster's API server is found there, whatever its name says.
    pub fn kubernetes(self, api: &KubernetesApi) -> Self {
        self.env("INFRA_API_SERVER", &api.address().to_string())
    }

    pub fn session_token(self, token: &str) -> Self {
        self.env("AWS_SESSION_TOKEN", token)
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// What stands on standard input, which is empty otherwise.
    pub fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    /// How long it may take before it is killed and the test fails.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    #[track_caller]
    pub fn run(self) -> Outcome {
        self.spawn().wait()
    }

    pub fn spawn(mut self) -> Running {
        self.command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if let Some(input) = self.input {
            // It may end without having read.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        }
        let stdout = Captured::of(child.stdout.take().unwrap());
        let stderr = Captured::of(child.stderr.take().unwrap());
        Running { child, stdout, stderr, deadline: Instant::now() + self.time_limit }
    }
}

/// What came out of a pipe so far; a thread of its own empties it, so that nobody waits for the reader.
struct Captured {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Captured {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                shared.lock().unwrap().extend(&buffer[..length]);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}

/// A run that goes on, and is killed when it is dropped.
pub struct Running {
    child: Child,
    stdout: Captured,
    stderr: Captured,
    deadline: Instant,
}

impl Running {
    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it, without a word to it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Sends a signal, as `INT`.
    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "no process to send {name} to");
    }

    /// As Control-C does it.
    pub fn interrupt(&self) {
        self.signal("INT");
    }

    /// What stands on standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Whether it goes on.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns as soon as standard output says so.
    #[track_caller]
    pub fn wait_for_stdout(&mut self, part: &str) {
        self.wait_for_stdout_times(part, 1);
    }

    /// Returns as soon as standard output says so that often.
    #[track_caller]
    pub fn wait_for_stdout_times(&mut self, part: &str, times: usize) {
        while self.stdout.text().matches(part).count() < times {
            assert!(self.is_running(), "it ended without '{part}':\n{}", self.stdout.text());
            self.keep_to_deadline();
        }
    }

    /// Returns as soon as standard error says so.
    #[track_caller]
    pub fn wait_for_stderr(&mut self, part: &str) {
        while !self.stderr.text().contains(part) {
            if let Some(status) = self.child.try_wait().unwrap() {
                let outcome = self.outcome(status);
                assert!(outcome.stderr.contains(part), "it ended without '{part}': {outcome:#?}");
                return;
            }
            self.keep_to_deadline();
        }
    }

    #[track_caller]
    pub fn wait(mut self) -> Outcome {
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return self.outcome(status);
            }
            self.keep_to_deadline();
        }
    }

    #[track_caller]
    fn keep_to_deadline(&mut self) {
        if Instant::now() > self.deadline {
            self.child.kill().unwrap();
            let status = self.child.wait().unwrap();
            let Outcome { stdout, stderr, .. } = self.outcome(status);
            panic!("it took too long and was killed; stdout:\n{stdout}\nstderr:\n{stderr}");
        }
        thread::sleep(Duration::from_millis(5));
    }

    fn outcome(&mut self, status: ExitStatus) -> Outcome {
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Outcome { code, stdout: self.stdout.finish(), stderr: self.stderr.finish() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a run ended; killed by a signal it has the code that a shell would give it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
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

/// A plain client of the stand-in for AWS, in one account.
pub struct Aws {
    url: String,
    account: String,
    pub region: String,
}

impl Aws {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What a call of a service that takes forms answers, be it an error.
    pub fn post(&self, service: &str, region: &str, form: &[(&str, &str)]) -> String {
        let pairs =
            form.iter().map(|(key, value)| format!("{}={}", percent_encode(key), percent_encode(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        self.send(service, region, "POST", "/", &body).text()
    }

    /// The state of a stack, also of a deleted one that is asked for by its id.
    pub fn stack_status(&self, name: &str) -> Option<String> {
        let form = [("Action", "DescribeStacks"), ("Version", "2010-05-15"), ("StackName", name)];
        let answer = self.post("cloudformation", &self.region, &form);
        element(&answer, "StackStatus").map(str::to_owned)
    }

    #[track_caller]
    pub fn create_bucket(&self, name: &str) {
        // The oldest region is the one that must not be named.
        let body = match self.region.as_str() {
            "us-east-1" => String::new(),
            region => format!(
                "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
            ),
        };
        let answer = self.send("s3", &self.region, "PUT", &format!("/{name}"), &body);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }

    /// What a service that speaks JSON answers.
    pub fn ask_json(&self, service: &str, target: &str, question: &Value) -> Value {
        let who = authorization(&self.account, &self.region, service);
        let headers = [
            ("Authorization", who.as_str()),
            ("Content-Type", "application/x-amz-json-1.1"),
            ("X-Amz-Target", target),
        ];
        let request = Message::request("POST", "/", &headers, question.to_string().as_bytes());
        serde_json::from_str(&ask(&self.url, request).unwrap().text()).unwrap()
    }

    /// Any other request, as `("s3", "us-west-2", "GET", "/bucket/key", "")`.
    pub fn send(&self, service: &str, region: &str, method: &str, target: &str, body: &str) -> Message {
        let who = authorization(&self.account, region, service);
        let kind = if service == "s3" { "application/xml" } else { "application/x-www-form-urlencoded" };
        let headers = [("Authorization", who.as_str()), ("Content-Type", kind)];
        ask(&self.url, Message::request(method, target, &headers, body.as_bytes())).unwrap()
    }
}
