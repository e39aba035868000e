//! Transcripts: what each command prints, word for word.

use std::process::Command;

use crate::support::{Outcome, Workspace};

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/commands/*.trycmd");
}

#[test]
fn completions_are_valid_shell_scripts() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = workspace.infra(["completions", shell]).expect_code(0);
        assert!(run.stdout.contains("certificates") && run.stdout.contains("generate-ca"), "{shell}");
        workspace.write(shell, run.stdout);
    }
    Outcome::of(Command::new("bash").arg("-n").arg(workspace.path("bash"))).expect_code(0);
}

#[test]
fn an_invalid_pool_name_is_refused_with_the_reason() {
    let workspace = Workspace::new();
    for command in ["up", "plan"] {
        workspace
            .infra([command, "--pool", "GPU"])
            .expect_code(2)
            .expect_stderr("the pool name 'GPU' has a 'G' in it")
            .expect_stderr("--pool <NAME>");
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let workspace = Workspace::new();
    let infra = env!("CARGO_BIN_EXE_infra");
    let script = format!("{infra} schema | head -n 1; exit ${{PIPESTATUS[0]}}");
    Outcome::of(Command::new("bash").args(["-c", &script]).current_dir(workspace.path(""))).expect_code(0);
}

#[test]
fn colour_is_for_terminals_only_and_can_be_switched_off() {
    let workspace = Workspace::new();
    let at_terminal = |environment: &str| {
        let command = format!("{environment} {} validate", env!("CARGO_BIN_EXE_infra"));
        let mut script = Command::new("script");
        script
            .args(["-qefc", &command, "/dev/null"])
            .current_dir(workspace.path(""))
            .env("TERM", "xterm-256color");
        Outcome::of(script.env_remove("NO_COLOR").env_remove("CI").stdin(std::process::Stdio::null())).stdout
    };
    assert!(at_terminal("").contains("\u{1b}[1m"), "{:?}", at_terminal(""));
    assert!(!at_terminal("NO_COLOR=1").contains('\u{1b}'));
    assert!(!workspace.infra(["validate"]).stderr.contains('\u{1b}'));
}

#[test]
fn a_tempo_of_tests_is_a_number() {
    let workspace = Workspace::with_cluster();
    let with_tempo =
        |tempo: &str| Outcome::of(workspace.command(["validate"]).env("INFRA_TEST_TEMPO", tempo));
    with_tempo("0.05").expect_code(0);
    for wrong in ["", "0", "2", "fast"] {
        let message = format!("INFRA_TEST_TEMPO: '{wrong}' is not a number above 0 and at most 1");
        with_tempo(wrong).expect_code(2).expect_stderr(&message);
    }
}

#[test]
fn progress_is_plain_or_chosen_by_the_terminal() {
    let workspace = Workspace::with_cluster();
    let with_choice =
        |choice: &str| Outcome::of(workspace.command(["validate"]).env("INFRA_PROGRESS", choice));
    for right in ["plain", "auto", ""] {
        with_choice(right).expect_code(0);
    }
    for wrong in ["Plain", "none", "live"] {
        let message = format!("INFRA_PROGRESS: '{wrong}' is neither auto nor plain");
        with_choice(wrong)
            .expect_code(2)
            .expect_stderr(&message)
            .expect_stderr("help: `plain` prints every line once");
    }
}

#[test]
fn a_release_server_is_a_url() {
    let workspace = Workspace::with_cluster();
    let with_server =
        |url: &str| Outcome::of(workspace.command(["validate"]).env("INFRA_RELEASE_SERVER", url));
    with_server("https://flatcar.example.com/releases/").expect_code(0);
    for wrong in ["", "flatcar.example.com", "https://", "ftp://flatcar.example.com", "https://a b"] {
        let message = format!("INFRA_RELEASE_SERVER is '{wrong}'");
        with_server(wrong).expect_code(2).expect_stderr(&message);
    }
}
