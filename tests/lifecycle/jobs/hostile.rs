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
fn expect_no_pod(world: &JobWorld) {
    world.cluster.wait_for("the pod to go", |state| (!state.has_pod_of("files")).then_some(()));
}

/// A program of the team's own at the other end of the channel: what it does after its greeting, with a function that answers.
fn with_program(program: &str) -> JobWorld {
    let world = JobWorld::new(TRAIN);
    let directory = world.workspace.path("templates/jobs");
    fs::create_dir_all(&directory).unwrap();
    let text = format!(
        "import json, struct, sys, time\n\
         def answer(document, content=b''):\n\
         \x20   text = json.dumps(document).encode()\n\
         \x20   sys.stdout.buffer.write(struct.pack('>II', len(text), len(content)) + text + content)\n\
         \x20   sys.stdout.buffer.flush()\n\
         answer({{'ready': True}})\n\
         {program}\n\
         sys.stdin.buffer.read()\n"
    );
    fs::write(directory.join("move_files.py"), text).unwrap();
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
    world.cluster.decide(|role, _, _| if role == "files" { Fate::Wait } else { Fate::Run("gpu-1") });
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    let directory = world.cluster.claim().join("train/runs/r-1/logs/attempt-0/worker-0");
    fs::create_dir_all(&directory).unwrap();
    let log = format!("{HOSTILE}\nend\n");
    fs::write(directory.join("output.log"), &log).unwrap();
    let seen = world.at_terminal("logs --attempt 0", "").expect_code(0);
    expect_harmless(&seen);
    seen.expect_stdout(&format!("{HARMLESS}\r\nend\r\n"));
    assert_eq!(world.run(["logs", "--attempt", "0"]).expect_code(0).stdout, log);
    expect_no_pod(&world);
}

#[test]
fn a_pod_that_waits_does_not_control_the_terminal() {
    let world = JobWorld::new(TRAIN);
    world.cluster.run_no_programs();
    let invocation = world.workspace.at_terminal("job fetch --run r-1", "dumb");
    let mut fetching = invocation.env("INFRA_API_SERVER", &world.cluster.address()).spawn();
    world.cluster.set_status("files", 0, waiting(HOSTILE));
    fetching.wait_for_stdout("the pod for the files is waiting: ");
    world.cluster.finish("files", 0, 1);
    let seen = fetching.wait().expect_code(1);
    expect_harmless(&seen);
    seen.expect_stdout(HARMLESS);
    expect_no_pod(&world);
}

#[test]
fn a_name_on_the_claim_does_not_control_the_terminal_and_leads_nowhere() {
    for (kind, name) in [("file", "../x"), ("directory", "../x"), ("link", "../x"), ("file", "/tmp/x")] {
        let world = with_program(&format!(
            "answer({{'end': True, 'entries': [\
             {{'path': '', 'kind': 'directory', 'size': 0, 'modified': 0, 'executable': False}},\
             {{'path': '{name}\\x1b]0;OWNED\\x07\\x1b[2J', 'kind': '{kind}', 'size': 1, 'modified': 0, 'executable': False, 'target': 'a'}}]}})"
        ));
        let seen = world.at_terminal("fetch --run r-1", "").expect_code(2);
        expect_harmless(&seen);
        seen.expect_stdout("]0;OWNED").expect_stdout("is outside of the directory");
        expect_no_pod(&world);
        assert!(!world.workspace.path("results").join("x").exists());
    }
}

/// `fetch` ends with this message and deletes its pod, whose program this is.
#[track_caller]
fn expect_given_up(program: &str, message: &str) {
    let world = with_program(program);
    let fetching = world.infra(["fetch", "--run", "r-1"]).time_limit(Duration::from_secs(60));
    fetching.run().expect_code(1).expect_stderr(message);
    expect_no_pod(&world);
}

#[test]
fn an_answer_that_is_none_is_given_up() {
    expect_given_up(
        "sys.stdout.buffer.write(b'7' * (64 << 20))",
        "the pod that reads and writes the claim cannot be used: its answer cannot be read",
    );
    expect_given_up("answer(['no', 'answer'])", "its answer cannot be read: ");
    expect_given_up("sys.exit('there is no numpy')", "its program ended with 1: there is no numpy");
    expect_given_up("answer({'error': 'not for you', 'end': True})", "error: on the claim: not for you");
}
