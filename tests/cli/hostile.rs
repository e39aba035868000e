//! Files that are no cluster.yaml at all: no panic, little time, little memory. Each run has one second of CPU time and 200 MB of
//! address space.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{MINIMAL, Outcome, Workspace};

/// Runs `infra validate` under the limits.
fn validate(workspace: &Workspace) -> Outcome {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -t 1; ulimit -v 204800; exec \"$0\" validate", env!("CARGO_BIN_EXE_infra")]);
    command.current_dir(workspace.path("")).env_clear().env("PATH", "/usr/bin:/bin");
    Outcome::of(&mut command)
}

#[track_caller]
fn refused(contents: impl AsRef<[u8]>, part: &str) {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", contents);
    let run = validate(&workspace).expect_code(2);
    let all = format!("{}{}", run.stdout, run.stderr);
    assert!(all.contains(part), "'{part}' is not in:\n{all}");
    assert!(!all.contains("panicked"), "{all}");
}

#[track_caller]
fn accepted(contents: impl AsRef<[u8]>) {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", contents);
    validate(&workspace).expect_code(0);
}

#[test]
fn empty_files() {
    refused("", "cluster.yaml:1:1: the file is empty");
    refused("# only a comment\n", "cluster.yaml:1:1: the file is empty");
    refused("---\n", "cluster.yaml:1:1: the file is empty");
}

#[test]
fn binary_garbage() {
    let bytes: Vec<u8> =
        (0..4096_u32).map(|n| u8::try_from(n.wrapping_mul(2_654_435_761) >> 24).unwrap()).collect();
    refused(bytes, "not UTF-8 text");
    refused("clusterName: \0\u{1}\u{2}\n", "cluster.yaml:1:14");
}

#[test]
fn other_encodings() {
    refused(b"clusterName: caf\xe9\n", "cluster.yaml:1: not UTF-8 text (byte 16 of the file)");
    let utf16: Vec<u8> = MINIMAL.encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused([&[0xff, 0xfe], utf16.as_slice()].concat(), "not UTF-8 text");
}

#[test]
fn a_file_of_ten_megabytes() {
    refused(format!("{MINIMAL}# {}\n", "x".repeat(10_000_000)), "larger than 1024 KiB");
    refused(format!("{MINIMAL}tags:\n{}", "  key: value\n".repeat(800_000)), "larger than 1024 KiB");
}

#[test]
fn aliases_that_multiply() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..=30 {
        let uses = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{uses}]\n"));
    }
    refused(text, "nested too deeply or has too many values");
}

#[test]
fn deep_nesting() {
    refused(
        format!("tags: {}{}\n", "[".repeat(50_000), "]".repeat(50_000)),
        "nested too deeply or has too many values",
    );
    refused(
        format!("tags: {}1{}\n", "{a: ".repeat(50_000), "}".repeat(50_000)),
        "nested too deeply or has too many values",
    );
    let mut block = String::new();
    for depth in 0..1_000 {
        block.push_str(&format!("{}a:\n", " ".repeat(depth)));
    }
    refused(block, "nested too deeply or has too many values");
}

#[test]
fn a_megabyte_of_keys_and_of_one_line() {
    let keys: String = (0..50_000).map(|n| format!("k{n}: v\n")).collect();
    refused(keys, "too many values");
    let long = MINIMAL.replace("paddle", &"a".repeat(1_000_000));
    refused(long, "cluster.yaml:1:14: the cluster name 'aaa");
}

#[test]
fn tabs_are_named() {
    refused(format!("{MINIMAL}etcd:\n\tcount: 3\n"), "cluster.yaml:7:");
}

#[test]
fn duplicate_keys() {
    refused(format!("{MINIMAL}clusterName: other\n"), "cluster.yaml:6:1: 'clusterName' is written twice");
    refused(format!("{MINIMAL}tags: {{a: b, a: c}}\n"), "cluster.yaml:6:14: 'a' is written twice");
}

#[test]
fn windows_line_ends_and_byte_order_marks_mean_nothing() {
    accepted(MINIMAL.replace('\n', "\r\n"));
    accepted(format!("\u{feff}{MINIMAL}"));
    refused(
        format!("\u{feff}{}", MINIMAL.replace("paddle", "Paddle").replace('\n', "\r\n")),
        "cluster.yaml:1:14: the cluster name 'Paddle' has a 'P' in it",
    );
}

#[test]
fn a_directory_a_device_and_nothing_in_its_place() {
    let workspace = Workspace::new();
    validate(&workspace)
        .expect_code(2)
        .expect_stderr("cluster.yaml does not exist")
        .expect_stderr("`infra init`");
    fs::create_dir(workspace.path("cluster.yaml")).unwrap();
    validate(&workspace).expect_code(2).expect_stderr("cluster.yaml is a directory, not a file");
    fs::remove_dir(workspace.path("cluster.yaml")).unwrap();
    Outcome::of(Command::new("mkfifo").arg(workspace.path("cluster.yaml"))).expect_code(0);
    validate(&workspace).expect_code(2).expect_stderr("cluster.yaml is a device, pipe or socket, not a file");
    fs::remove_file(workspace.path("cluster.yaml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", workspace.path("cluster.yaml")).unwrap();
    validate(&workspace).expect_code(2).expect_stderr("cluster.yaml is a symbolic link");
}

#[test]
fn an_unreadable_file() {
    let workspace = Workspace::with_cluster();
    fs::set_permissions(workspace.path("cluster.yaml"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(workspace.path("cluster.yaml")).is_ok() {
        // The superuser can read everything, so another user runs this.
        fs::set_permissions(workspace.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = workspace.path("infra");
        // By another process: what a thread of this one has open for writing, a fork of another thread inherits, and then the copy
        // is "Text file busy".
        Outcome::of(Command::new("cp").arg(env!("CARGO_BIN_EXE_infra")).arg(&copy)).expect_code(0);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy).arg("validate");
        let run = Outcome::of(command.current_dir(workspace.path("")));
        run.expect_code(2).expect_stderr("cannot read cluster.yaml: Permission denied");
    } else {
        validate(&workspace).expect_code(2).expect_stderr("cannot read cluster.yaml: Permission denied");
    }
}

#[test]
fn arguments_do_not_control_the_terminal() {
    let workspace = Workspace::new();
    let at_terminal = |argument: &str| {
        let command = format!("{} $'{argument}'", env!("CARGO_BIN_EXE_infra"));
        let mut script = Command::new("script");
        script.args(["-qefc", &command, "/dev/null"]).current_dir(workspace.path("")).env("TERM", "xterm");
        script.env("SHELL", "/bin/bash").env_remove("NO_COLOR").stdin(std::process::Stdio::null());
        Outcome::of(&mut script).expect_code(2).stdout
    };
    let seen = at_terminal("x\\x1b]0;OWNED\\x07\\x1b[2J");
    assert!(seen.contains("unrecognized subcommand 'x'"), "{seen:?}");
    assert!(!seen.contains('\u{1b}') && !seen.contains('\u{7}'), "{seen:?}");
    // All others see colours.
    assert!(at_terminal("nothing").contains("\u{1b}["));
}
