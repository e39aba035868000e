//! Keys in memory: no core dump holds them, and once everything is written they are gone from the process.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Outcome, Workspace, files_in};

fn proc_file(child: &Child, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{name}", child.id()))
}

/// Waits for what a process reaches by itself.
#[track_caller]
fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !reached() {
        assert!(Instant::now() < end, "{what} is not reached");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A run that waits for credentials that the test has locked, with core dumps allowed as far as the caller decides.
fn waiting_run(workspace: &Workspace, command: &mut Command) -> (Child, File) {
    let lock = File::options().write(true).open(workspace.credential(".lock")).unwrap();
    lock.lock().unwrap();
    let mut child =
        command.current_dir(workspace.root()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut told = Vec::new();
    let mut stderr = child.stderr.take().unwrap();
    wait_until("the wait for the lock", || {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap();
        told.push(byte[0]);
        String::from_utf8_lossy(&told).contains("waiting for another infra")
    });
    child.stderr = Some(stderr);
    (child, lock)
}

#[test]
fn a_run_leaves_no_core_dump() {
    let workspace = Workspace::with_credentials();
    let script = "ulimit -c unlimited 2>/dev/null || ulimit -c $(ulimit -H -c); exec \"$0\" render stack";
    let mut command = Command::new("sh");
    let (mut child, _lock) =
        waiting_run(&workspace, command.args(["-c", script, env!("CARGO_BIN_EXE_infra")]));
    let limits = fs::read_to_string(proc_file(&child, "limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    Outcome::of(Command::new("kill").args(["-ABRT", &child.id().to_string()])).expect_code(0);
    let status = child.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
    let cores = fs::read_dir(workspace.root()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(cores.filter(|name| name.to_string_lossy().starts_with("core")).count(), 0);
}

#[test]
fn other_programs_of_the_user_cannot_read_the_memory() {
    let workspace = Workspace::with_credentials();
    let is_root = fs::metadata(workspace.root()).unwrap().uid() == 0;
    let mut command = if is_root {
        // Root can read everything, so another user runs this.
        let copy = workspace.path("infra");
        Outcome::of(Command::new("cp").arg(env!("CARGO_BIN_EXE_infra")).arg(&copy)).expect_code(0);
        Outcome::of(Command::new("chown").args(["-R", "65534:65534"]).arg(workspace.root())).expect_code(0);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
        command
    } else {
        Command::new(env!("CARGO_BIN_EXE_infra"))
    };
    let (mut child, _lock) = waiting_run(&workspace, command.args(["render", "stack"]));
    let owner = fs::metadata(proc_file(&child, "environ")).unwrap().uid();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(owner, 0, "the memory of the process belongs to its user");
}

/// How often each text is in the writable memory of a process; nothing if this process may not read the memory.
fn count_in_memory(child: &Child, texts: &[(String, Vec<u8>)]) -> Option<Vec<(String, usize)>> {
    let maps = fs::read_to_string(proc_file(child, "maps"));
    let memory = match (maps, File::open(proc_file(child, "mem"))) {
        (Ok(maps), Ok(memory)) => (maps, memory),
        (Err(error), _) | (_, Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            return None;
        }
    };
    let mut found: Vec<(String, usize)> = texts.iter().map(|(name, _)| (name.clone(), 0)).collect();
    for line in
        memory.0.lines().filter(|line| line.split(' ').nth(1).is_some_and(|mode| mode.starts_with("rw")))
    {
        let (first, last) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let (first, last) = (u64::from_str_radix(first, 16).unwrap(), u64::from_str_radix(last, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(last - first).unwrap()];
        if memory.1.read_exact_at(&mut bytes, first).is_err() {
            continue;
        }
        for ((_, text), (_, count)) in texts.iter().zip(&mut found) {
            let begins = |at: &usize| bytes[*at..].starts_with(text);
            let first_byte = bytes.iter().enumerate().filter(|(_, byte)| **byte == text[0]);
            *count += first_byte.map(|(at, _)| at).filter(begins).count();
        }
    }
    Some(found)
}

#[test]
fn keys_are_wiped_from_memory_once_everything_is_written() {
    use base64::Engine as _;
    let workspace = Workspace::with_credentials();
    // Without a warning, which would be the first line that does not fit into the pipe below.
    let closed = format!("{}api: {{allowedCIDRs: [203.0.113.0/24]}}\n", crate::support::MINIMAL);
    fs::write(workspace.path("cluster.yaml"), closed).unwrap();
    let mut texts = Vec::new();
    for (name, bytes) in files_in(&workspace.path("credentials")) {
        if name.ends_with("-key.pem") {
            let pem = String::from_utf8(bytes.clone()).unwrap();
            texts.push((name.clone(), pem.lines().nth(2).unwrap().as_bytes().to_vec()));
            let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
            texts.push((format!("{name} in Base64"), encoded.as_bytes()[80..140].to_vec()));
        }
    }
    assert!(texts.len() > 20);
    // Its last line does not fit into the pipe, so the run stops there, with all its work done.
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut child = workspace
        .infra_command()
        .args(["render", "stack"])
        .stderr(fill(&mut writer))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    drop(writer);
    let mut looks = 0;
    wait_until("the end of the work", || {
        let is_blocked = fs::read_to_string(proc_file(&child, "stat"))
            .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")));
        // What waits for the disk is in another state; nothing but the full pipe stops it for this long.
        looks = if is_blocked && workspace.path("stacks/network.json").exists() { looks + 1 } else { 0 };
        looks == 20
    });
    let found = count_in_memory(&child, &texts);
    drop(reader);
    child.kill().unwrap();
    child.wait().unwrap();
    // Without root's rights the memory is closed, which is as good.
    let left: Vec<_> = found.into_iter().flatten().filter(|(_, count)| *count > 0).collect();
    assert!(left.is_empty(), "left in memory: {left:?}");
}

/// Fills a pipe, so that the next write to it waits.
fn fill(writer: &mut std::io::PipeWriter) -> Stdio {
    use std::io::Write as _;
    // The default size of a pipe.
    writer.write_all(&[b'.'; 1 << 16]).unwrap();
    writer.try_clone().unwrap().into()
}
