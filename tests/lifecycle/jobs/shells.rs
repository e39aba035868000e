//! Shells in replicas: at a terminal, through pipes, and where there is none to open.

use std::fs;

use serde_json::json;

use super::kubeconfigs::Elsewhere;
use super::{JobWorld, TRAIN};
use crate::support::invocation::Running;
use crate::support::job_cluster::controller::Fate;
use crate::support::terminal::{AS_BEFORE, resized, signalled, typed};

fn running() -> JobWorld {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    world
}

/// `infra job shell` at a terminal, with what is typed, resized and signalled there.
fn at_terminal(world: &JobWorld, words: &[&str]) -> Running {
    let words = ["job", "shell"].into_iter().chain(words.iter().copied());
    world.workspace.at_own_terminal(words).env("INFRA_API_SERVER", &world.cluster.address()).spawn()
}

#[test]
fn a_shell_at_a_terminal_has_its_size_its_keys_and_its_exit_code() {
    let world = running();
    let mut shell = at_terminal(&world, &["1"]);
    shell.wait_for_stdout("worker 1 of job 'train', in pod train-worker-0-1-");
    shell.write_input(&typed(b"stty size\r"));
    shell.wait_for_stdout("24 80");
    shell.write_input(&resized(132, 43));
    world.cluster.wait_for("the window's size", |state| {
        state.history().iter().any(|line| line == r#"window {"Width":132,"Height":43}"#).then_some(())
    });
    shell.write_input(&typed(b"stty size; tty -s && echo at\"\"tached\r"));
    shell.wait_for_stdout("43 132");
    shell.wait_for_stdout("attached");
    // It ends the program in the pod, and neither the shell nor infra.
    // The program itself says that it waits: what a shell prints comes before the program has the terminal, and a shell that
    // catches the signal just before it executes the program loses it.
    let followed = world.workspace.path("followed");
    fs::write(&followed, "waiting\n").unwrap();
    shell.write_input(&typed(format!("tail -f {}\r", followed.display()).as_bytes()));
    shell.wait_for_stdout("waiting");
    shell.write_input(&typed(b"\x03"));
    shell.write_input(&typed(b"echo st\"\"atus $?\r"));
    shell.wait_for_stdout("status 130");
    // Codes are drawn as they come.
    shell.write_input(&typed(b"printf '\\033[2J\\342\\234\\223'\r"));
    shell.wait_for_stdout("\u{1b}[2J\u{2713}");
    shell.write_input(&typed(b"exit 42\r"));
    let ended = shell.wait().expect_code(42);
    assert!(ended.stderr.ends_with(AS_BEFORE), "{}", ended.stderr);
}

#[test]
fn the_end_of_a_connection_is_said_and_gives_the_terminal_back() {
    let world = running();
    let mut shell = at_terminal(&world, &["train"]);
    shell.write_input(&typed(b"echo he\"\"re\r"));
    shell.wait_for_stdout("here");
    world.cluster.break_logs();
    let ended = shell.wait().expect_code(1);
    let ended = ended
        .expect_stdout("the connection to worker 0 of job 'train' broke: the Kubernetes API at ")
        .expect_stdout(
            "what ran there may continue; `infra job status train` shows whether the replica does",
        );
    assert!(ended.stderr.ends_with(AS_BEFORE), "{}", ended.stderr);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let world = running();
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("QUIT", 131), ("INT", 130)] {
        let mut shell = at_terminal(&world, &["--", "sh", "-c", "echo be\"\"gun; exec sleep 600"]);
        shell.wait_for_stdout("begun");
        shell.write_input(&signalled(signal));
        let ended = shell.wait().expect_code(code);
        assert!(ended.stderr.ends_with(AS_BEFORE), "{signal}: {}", ended.stderr);
    }
}

#[test]
fn a_command_gets_pipes_unchanged_and_gives_its_exit_code() {
    let world = running();
    let binary = "a\r\n\u{1b}[2J\0é";
    let echoed = world.infra(["shell", "--", "cat"]).input(binary).run().expect_code(0);
    assert_eq!((echoed.stdout.as_str(), echoed.stderr.as_str()), (binary, ""));
    let both =
        world.run(["shell", "train", "1", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]).expect_code(7);
    assert_eq!((both.stdout.as_str(), both.stderr.as_str()), ("out\n", "err\n"));
    // Words are passed as they are.
    let words = world.run(["shell", "--", "printf", "<%s>", "a b", "$HOME", "-n"]).expect_code(0);
    assert_eq!(words.stdout, "<a b><$HOME><-n>");
    // Without a command the shell reads what is piped.
    let piped = world.infra(["shell"]).input("echo one\nexit 3\n").run().expect_code(3);
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("one\n", ""));
    world
        .run(["shell", "--", "no-such-program"])
        .expect_code(127)
        .expect_stderr("no-such-program: not found");
    let mut waiting = world.infra(["shell", "--", "sh", "-c", "echo begun; sleep 600"]).spawn();
    waiting.wait_for_stdout("begun\n");
    waiting.interrupt();
    waiting.wait().expect_code(130).expect_stderr("interrupted; the program in the pod may continue");
    // Much more than fits into any buffer.
    let length = 8 << 20;
    let large: String = "0123456789abcde\n".repeat(length / 16);
    let counted = world.infra(["shell", "--", "wc", "-c"]).input(&large).run().expect_code(0);
    assert_eq!(counted.stdout.trim(), length.to_string());
    let long = world.run(["shell", "--", "head", "-c", &length.to_string(), "/dev/zero"]).expect_code(0);
    assert_eq!(long.stdout.len(), length);
}

#[test]
fn codes_of_a_pipe_do_not_reach_a_terminal() {
    let world = running();
    // Its stdin is no terminal.
    let seen = world.at_terminal("shell -- printf 'a\\033[2Jb\\n' </dev/null", "").expect_code(0);
    assert!(!seen.stdout.contains('\u{1b}') && seen.stdout.contains("[2Jb"), "{:?}", seen.stdout);
}

#[test]
fn a_launcher_that_holds_its_pod_is_mentioned() {
    let world = running();
    let key = world.cluster.pod("worker", 0);
    let pod = world.cluster.object("pods", &key.1, &key.2).unwrap();
    let variables = pod["spec"]["containers"][0]["env"].as_array().unwrap();
    let marks = variables.iter().find(|variable| variable["name"] == "INFRA_MARK_DIR").unwrap();
    let marks =
        world.cluster.claim().join(marks["value"].as_str().unwrap().strip_prefix("/mnt/training/").unwrap());
    fs::create_dir_all(&marks).unwrap();
    world.run(["shell", "--", "true"]).expect_code(0);
    fs::write(marks.join("failed.0.worker.0"), "").unwrap();
    let held = world.run(["shell", "--", "echo", "there"]).expect_code(0);
    assert_eq!(held.stdout, "there\n");
    assert_eq!(
        held.stderr,
        "infra: the program of this replica has failed; the launcher holds the pod for 180 s at most, and this ends with it\n"
    );
}

#[test]
fn where_no_shell_can_be_opened_is_explained() {
    let job = TRAIN.replace("pytorch", "tensorflow").replace("replicas: 2", "ps: 1\nworkers: 2");
    let world = JobWorld::new(&job);
    world.run(["shell"]).expect_code(1).expect_stderr("there is no job 'train' in namespace default");
    world.cluster.decide(|role, index, _| match (role, index) {
        ("ps", _) => Fate::Run("worker-1"),
        (_, 0) => Fate::Run("gpu-1"),
        _ => Fate::Wait,
    });
    world.run(["submit", "--detach"]).expect_code(0);
    let role = world.run(["shell", "--role", "ps", "--", "sh", "-c", "echo $INFRA_ROLE"]).expect_code(0);
    assert_eq!(role.stdout, "ps\n");
    let refused = |words: &[&str], code, message: &str, help: &str| {
        let run = world.run(["shell"].into_iter().chain(words.iter().copied())).expect_code(code);
        assert_eq!(run.stderr, format!("error: {message}\nhelp: {help}\n"), "{words:?}");
    };
    let why = "`infra job why train` says what it waits for";
    refused(&["1"], 1, "worker 1 of job 'train' has not started: worker 1: Pending", why);
    refused(
        &["7"],
        1,
        "job 'train' has no replica with number 7",
        "`infra job status train` lists its replicas",
    );
    refused(
        &["--role", "chief"],
        1,
        "job 'train' has no replica of role chief with number 0",
        "`infra job status train` lists its replicas",
    );
    let number = "`infra job shell NAME 2` opens a shell in replica 2 of job NAME";
    refused(&["train", "one"], 2, "'one' is not the number of a replica", number);
    refused(&["1st"], 2, "'1st' is not the number of a replica", number);
    world.run(["shell", "train", "1", "2"]).expect_code(2);
    let status = |phase: &str| json!({"phase": phase});
    world.cluster.set_status("worker", 0, status("Unknown"));
    refused(
        &[],
        1,
        "worker 0 of job 'train' cannot be reached: its machine does not answer",
        "`infra job status train` shows when it is replaced",
    );
    world.cluster.set_status("worker", 0, status("Running"));
    world.cluster.keep_pods(true);
    world.cluster.evict("worker", 0);
    refused(
        &[],
        1,
        "worker 0 of job 'train' is being terminated: EvictionByEvictionAPI: Eviction API: evicting",
        "`infra job status train` shows whether it is started again",
    );
}

#[test]
fn a_replica_that_has_ended_has_no_shell() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(|_, index, _| match index {
        0 => Fate::Run("gpu-1"),
        _ => Fate::Succeed("gpu-2", "well\n"),
    });
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    world
        .run(["shell", "1"])
        .expect_code(1)
        .expect_stderr("worker 1 of job 'train' has ended: Succeeded")
        .expect_stderr("`infra job logs train --role worker --index 1` prints its log");
    world.cluster.finish("worker", 0, 1);
    world.run(["shell"]).expect_code(1).expect_stderr("worker 0 of job 'train' has ended");
}

#[test]
fn a_job_in_a_queue_has_no_shell() {
    let world = JobWorld::new(&format!("{TRAIN}queue: team-a\n"));
    world.cluster.install_kueue(&["team-a"]);
    world.run(["submit", "--detach"]).expect_code(0);
    world
        .run(["shell"])
        .expect_code(1)
        .expect_stderr("worker 0 of job 'train' is held and has no pod: ")
        .expect_stderr("`infra job why train` says what it waits for");
}

/// A user who may do this with programs in pods, and with everything else.
fn user_with(world: &JobWorld, verbs: &[&str]) -> Elsewhere {
    let elsewhere = Elsewhere::new(world);
    let kubeconfig = world.workspace.infra(["kubeconfig"]).run().expect_code(0).stdout;
    let without: Vec<&str> =
        kubeconfig.lines().filter(|line| !line.trim_start().starts_with("client-")).collect();
    elsewhere.write("config", &format!("{}\n    token: some-token\n", without.join("\n")));
    world.cluster.put_user_token("some-token", "ada");
    let all = json!({"apiGroups": ["", "batch", "jobset.x-k8s.io"], "verbs": ["get", "list"],
                     "resources": ["pods", "jobs", "jobsets", "events"]});
    let exec = json!({"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs});
    world.cluster.put("clusterroles", json!({"metadata": {"name": "some"}, "rules": [all, exec]}));
    world.cluster.put(
        "clusterrolebindings",
        json!({"metadata": {"name": "some"}, "subjects": [{"kind": "User", "name": "ada"}],
               "roleRef": {"kind": "ClusterRole", "name": "some"}}),
    );
    elsewhere
}

#[test]
fn a_user_needs_both_rights_and_a_token_is_enough() {
    for (verbs, missing) in [(&[][..], "get"), (&["get"][..], "create")] {
        let world = running();
        let user = user_with(&world, verbs);
        let refused = user
            .infra(["job", "shell", "train", "--kubeconfig", "config", "--", "true"])
            .run()
            .expect_code(1);
        refused
            .expect_stderr(&format!(
                "user 'ada' may not {missing} pods/exec in namespace default (403 Forbidden)"
            ))
            .expect_stderr("`infra user add NAME --team default`");
    }
    let world = running();
    let user = user_with(&world, &["get", "create"]);
    let ran = user
        .infra(["job", "shell", "train", "--kubeconfig", "config", "--", "echo", "in"])
        .run()
        .expect_code(0);
    assert_eq!(ran.stdout, "in\n");
}
