//! What others wrote or send: nothing of it controls the terminal, and no answer is read without end.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;
use crate::support::outcome::Outcome;

/// Sets the title of the window, clears the screen and writes on its first line, in green; then the same with other characters.
const HOSTILE: &str = "x\u{1b}]0;OWNED\u{7}\u{1b}[2J\u{1b}[1;1H\u{1b}[32mdone: all is well\u{9b}1m\u{202e}";
const HARMLESS: &str = "x�]0;OWNED��[2J�[1;1Hdone: all is well�1m�";

/// A job of which one pod waits for its image, and says so.
fn with_waiting_pod(message: &str) -> JobWorld {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, index, _| if index == 0 { Fate::Run("gpu-1") } else { Fate::Wait });
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.set_status("worker", 1, waiting(message));
    world
}

fn waiting(message: &str) -> Value {
    let state = json!({"waiting": {"reason": "ImagePullBackOff", "message": message}});
    json!({"phase": "Pending", "containerStatuses": [{"name": "worker", "state": state}]})
}

/// A terminal that shows no colours gets no code at all.
#[track_caller]
fn expect_harmless(seen: &Outcome) {
    let is_harmless = |character: char| !character.is_control() || matches!(character, '\n' | '\r' | '\t');
    assert!(seen.stdout.chars().all(is_harmless) && !seen.stdout.contains('\u{202e}'), "{:?}", seen.stdout);
}

#[track_caller]
fn expect_no_reader(world: &JobWorld) {
    world.cluster.wait_for("the reader to go", |state| (!state.has_pod_of("reader")).then_some(()));
}

/// A reader of the team's own: what it does with each `client` who asks for a `page`.
fn with_reader(program: &str) -> JobWorld {
    let world = JobWorld::new(TRAIN);
    let directory = world.workspace.path("templates/jobs");
    fs::create_dir_all(&directory).unwrap();
    let server = format!(
        "import io, os, socket, tarfile, time\n\
         listener = socket.create_server(('127.0.0.1', int(os.environ['ARCHIVE_PORT'])))\n\
         while True:\n\
         \x20   client = listener.accept()[0]\n\
         \x20   page = client.recv(65536).split()[1]\n\
         \x20   try:\n{}\
         \x20       client.close()\n\
         \x20   except OSError:\n\
         \x20       pass\n",
        program.lines().map(|line| format!("        {line}\n")).collect::<String>()
    );
    fs::write(directory.join("serve_archive.py"), server).unwrap();
    world
}

#[test]
fn a_message_does_not_control_the_terminal() {
    let world = with_waiting_pod(&format!("{HOSTILE}\nerror: forged"));
    let seen = world.at_terminal("status", "").expect_code(0);
    expect_harmless(&seen);
    seen.expect_stdout(&format!("ImagePullBackOff: {HARMLESS} error: forged"));

    let key = world.cluster.pod("worker", 1);
    let creating = json!([{"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}}]);
    let stuck =
        json!({"spec": {"nodeName": "gpu-2"}, "status": {"phase": "Pending", "containerStatuses": creating}});
    world.cluster.change("pods", "default", &key.2, stuck);
    world.cluster.warn(&key, "FailedMount", HOSTILE);
    let seen = world.at_terminal("status", "").expect_code(0);
    expect_harmless(&seen);
    seen.expect_stdout(&format!("FailedMount: {HARMLESS}"));

    world.cluster.refuse_with(Some((403, HOSTILE)));
    let seen = world.at_terminal("status", "").expect_code(1);
    expect_harmless(&seen);
    seen.expect_stdout("error: the Kubernetes API refused GET ").expect_stdout(HARMLESS);

    // One that shows colours gets ours.
    let invocation = world.workspace.at_terminal("job status", "xterm");
    let seen = invocation.env("INFRA_API_SERVER", &world.cluster.address()).run().expect_code(1);
    let ours = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[36m", "\u{1b}[0m"];
    let bare = ours.iter().fold(seen.stdout.clone(), |text, code| text.replace(code, ""));
    assert_ne!(bare, seen.stdout);
    expect_harmless(&Outcome { stdout: bare, ..seen });
}

#[test]
fn json_says_what_was_said_and_does_not_control_the_terminal() {
    let world = with_waiting_pod(HOSTILE);
    let detail = |text: &str| {
        let document: Value = serde_json::from_str(text).unwrap();
        document["replicas"][1]["detail"].as_str().unwrap().to_owned()
    };
    let expected = format!("ImagePullBackOff: {HOSTILE}");
    let piped = world.run(["status", "--output", "json"]).expect_code(0);
    assert_eq!(detail(&piped.stdout), expected);
    let seen = world.at_terminal("status --output json", "").expect_code(0);
    expect_harmless(&seen);
    assert_eq!(detail(&seen.stdout), expected);
}

#[test]
fn a_log_is_cleaned_at_a_terminal_and_unchanged_in_a_pipe() {
    let world = with_waiting_pod("no image");
    let log = format!("{HOSTILE}\n10%\r20%\r\nend\n");
    world.cluster.print("worker", 0, &log);
    let seen = world.at_terminal("logs", "").expect_code(0);
    expect_harmless(&seen);
    // The terminal itself adds a return to every line end.
    assert_eq!(seen.stdout, format!("{HARMLESS}\n10%\n20%\nend\n").replace('\n', "\r\n"));
    assert_eq!(world.run(["logs"]).expect_code(0).stdout, log);
}

#[test]
fn a_log_from_the_claim_is_cleaned_at_a_terminal_and_unchanged_in_a_pipe() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|role, _, _| if role == "reader" { Fate::Wait } else { Fate::Run("gpu-1") });
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    let directory = world.cluster.claim().join("train/runs/r-1/logs/attempt-0/worker-0");
    fs::create_dir_all(&directory).unwrap();
    let log = format!("{HOSTILE}\nend\n");
    fs::write(directory.join("output.log"), &log).unwrap();
    let seen = world.at_terminal("logs --attempt 0", "").expect_code(0);
    expect_harmless(&seen);
    seen.expect_stdout(&format!("{HARMLESS}\r\nend\r\n"));
    assert_eq!(world.run(["logs", "--attempt", "0"]).expect_code(0).stdout, log);
    expect_no_reader(&world);
}

#[test]
fn a_reader_that_waits_does_not_control_the_terminal() {
    let world = JobWorld::new(TRAIN);
    world.cluster.run_no_programs();
    let invocation = world.workspace.at_terminal("job fetch --run r-1", "dumb");
    let mut fetching = invocation.env("INFRA_API_SERVER", &world.cluster.address()).spawn();
    world.cluster.set_status("reader", 0, waiting(HOSTILE));
    fetching.wait_for_stdout("the reader pod is waiting: ");
    world.cluster.finish("reader", 0, 1);
    let seen = fetching.wait().expect_code(1);
    expect_harmless(&seen);
    seen.expect_stdout(HARMLESS);
    expect_no_reader(&world);
}

#[test]
fn a_name_in_an_archive_does_not_control_the_terminal() {
    let world = with_reader(
        "body = io.BytesIO()\n\
         with tarfile.open(fileobj=body, mode='w') as archive:\n\
         \x20   archive.addfile(tarfile.TarInfo('../x\\x1b]0;OWNED\\x07\\x1b[2J'))\n\
         body = b'7' if page.startswith(b'/ready') else body.getvalue()\n\
         client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s' % (len(body), body))\n",
    );
    let seen = world.at_terminal("fetch --run r-1", "").expect_code(1);
    expect_harmless(&seen);
    seen.expect_stdout("the archive contains '../x�]0;OWNED��[2J', which is outside of the directory");
    expect_no_reader(&world);
}

/// `fetch` ends with this message and deletes its reader pod, which is this program.
#[track_caller]
fn expect_given_up(reader: &str, message: &str) {
    let world = with_reader(reader);
    let fetching = world.infra(["fetch", "--run", "r-1"]).time_limit(Duration::from_secs(60));
    fetching.run().expect_code(1).expect_stderr(message);
    expect_no_reader(&world);
}

#[test]
fn a_reader_that_never_ends_its_answer_is_given_up_and_deleted() {
    expect_given_up(
        "client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\n')\n\
         while True:\n\
         \x20   client.sendall(b'7' * 65536)\n\
         \x20   time.sleep(0.01)\n",
        "its reader pod did not say how much there is",
    );
}

#[test]
fn a_reader_that_never_ends_its_refusal_is_given_up_and_deleted() {
    expect_given_up(
        "client.sendall(b'HTTP/1.1 403 Forbidden\\r\\nContent-Type: text/plain\\r\\n\\r\\nnot for you\\n')\n\
         while True:\n\
         \x20   client.sendall(b'7' * 65536)\n\
         \x20   time.sleep(0.001)\n",
        "not for you (403 Forbidden)",
    );
}

#[test]
fn a_reader_that_stops_in_the_middle_of_its_answer_is_given_up_and_deleted() {
    expect_given_up(
        "client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\n7')\ntime.sleep(600)\n",
        "did not answer within 20 seconds",
    );
}
