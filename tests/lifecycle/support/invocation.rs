//! A run of the binary, or of any program: what it is given, what it prints while it runs, and its end in time.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::kubernetes::KubernetesApi;
use super::outcome::Outcome;
use super::release_server::{RELEASE_SERVER_VARIABLE, ReleaseServer};

const TEMPO_VARIABLE: &str = "INFRA_TEST_TEMPO";
/// Pauses are this part of those that users get, so that tests do not sleep; time limits are as they are.
const TEMPO: &str = "0.05";

/// A run that is about to begin.
pub struct Invocation {
    command: Command,
    input: Option<String>,
    is_typed: bool,
    time_limit: Duration,
}

impl Invocation {
    /// Any program, with five minutes to end, which only what hangs ever needs.
    pub fn of(command: Command) -> Self {
        Self { command, input: None, is_typed: false, time_limit: Duration::from_secs(300) }
    }

    /// The binary, or a program that runs it, with short pauses and a release server that has every driver.
    pub fn of_infra(command: Command) -> Self {
        let server = ReleaseServer::shared().url();
        Self::of(command).env(TEMPO_VARIABLE, TEMPO).env(RELEASE_SERVER_VARIABLE, &server)
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

    /// Uses this API server, whatever the name of the cluster's resolves to.
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

    /// The text on standard input, which is empty otherwise.
    pub fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    /// Standard input stays open, for [`Running::write_input`].
    pub fn typed(mut self) -> Self {
        self.is_typed = true;
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
        let has_input = self.input.is_some() || self.is_typed;
        self.command.stdin(if has_input { Stdio::piped() } else { Stdio::null() });
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if let Some(input) = self.input {
            // It may end without having read.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        }
        let input = child.stdin.take();
        let stdout = Captured::of(child.stdout.take().unwrap());
        let stderr = Captured::of(child.stderr.take().unwrap());
        Running { child, input, stdout, stderr, deadline: Instant::now() + self.time_limit }
    }
}

/// What came out of a pipe so far; a thread of its own empties it, so that the program never waits for the reader.
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

/// A program that is running, and is killed when it is dropped.
pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
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

    /// Types something, as soon as the program waits for it.
    pub fn write_input(&mut self, text: &str) {
        let input = self.input.as_mut().expect("its input is closed");
        input.write_all(text.as_bytes()).and_then(|()| input.flush()).unwrap();
    }

    /// Kills the program.
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

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Whether the program is still running.
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
        Outcome::new(status, self.stdout.finish(), self.stderr.finish())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
