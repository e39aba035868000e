//! `infra data`: the real binary at one end, the real program of the pod at the other, a WebSocket that breaks in between.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::{JobWorld, TRAIN};
use crate::schema_judge::expect_exact;
use crate::support::invocation::Invocation;
use crate::support::outcome::Outcome;

/// What one command sends besides files: its program and its questions.
const OVERHEAD: u64 = 60_000;

pub(super) fn data<'a>(world: &JobWorld, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
    let all: Vec<&str> = std::iter::once("data").chain(arguments).collect();
    world.workspace.infra(all).env("INFRA_API_SERVER", &world.cluster.address())
}

#[track_caller]
fn run<'a>(world: &JobWorld, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
    data(world, arguments).run()
}

#[track_caller]
pub(super) fn expect_same(one: &Path, other: &Path) {
    let compared = Command::new("diff").args(["-r", "--no-dereference"]).args([one, other]).output().unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}

#[track_caller]
fn expect_no_pod(world: &JobWorld) {
    world.cluster.wait_for("the pod to go", |state| (!state.has_pod_of("files")).then_some(()));
}

pub(super) fn bytes(count: u32) -> Vec<u8> {
    (0..count / 4).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// A directory of every kind of file, and its path.
fn corpus(world: &JobWorld) -> PathBuf {
    let corpus = world.workspace.path("corpus");
    fs::create_dir_all(corpus.join("deep/empty")).unwrap();
    fs::write(corpus.join("model.bin"), bytes(3_000_000)).unwrap();
    fs::write(corpus.join("deep/übersicht, final.txt"), "good\n").unwrap();
    fs::write(corpus.join("nothing"), "").unwrap();
    fs::write(corpus.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(corpus.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../model.bin", corpus.join("deep/latest")).unwrap();
    for number in 0..300 {
        fs::write(corpus.join(format!("deep/part-{number}")), format!("line {number}\n").repeat(100))
            .unwrap();
    }
    corpus
}

#[test]
fn what_is_put_is_there_and_a_second_time_nothing_moves() {
    let world = JobWorld::new(TRAIN);
    let corpus = corpus(&world);
    let put = || run(&world, ["put", corpus.to_str().unwrap(), "import"]).expect_code(0);
    put().expect_stderr("304 files, 3.1 MiB; in import\n");
    let there = world.cluster.claim().join("import/corpus");
    expect_same(&corpus, &there);
    let mode = |name: &str| fs::metadata(there.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("run.sh"), mode("nothing")), (0o755, 0o644));
    let modified =
        |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap().elapsed().unwrap().as_secs();
    assert!(modified(corpus.join("nothing")).abs_diff(modified(there.join("nothing"))) < 5);
    expect_no_pod(&world);
    assert!(world.cluster.take_exec_bytes().0 > 3_000_000);

    put().expect_stderr("304 files, 3.1 MiB: nothing to move, all of it is there; in import\n");
    let (sent, _) = world.cluster.take_exec_bytes();
    assert!(sent < OVERHEAD + 304 * 300, "{sent}");

    fs::write(corpus.join("nothing"), "something").unwrap();
    fs::set_permissions(corpus.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    put().expect_stderr(": moved 1 file with 9 bytes; in import\n");
    assert_eq!(mode("run.sh"), 0o644);
    // Someone else's change of the same size is seen.
    fs::write(there.join("nothing"), "otherwise").unwrap();
    put().expect_stderr(": moved 1 file with 9 bytes; in import\n");
    expect_same(&corpus, &there);
}

#[test]
fn what_is_got_is_the_same_and_a_second_time_nothing_moves() {
    let world = JobWorld::new(TRAIN);
    let corpus = corpus(&world);
    fs::rename(&corpus, world.cluster.claim().join("corpus")).unwrap();
    fs::create_dir_all(world.cluster.claim().join("corpus/.infra/hashes")).unwrap();
    let here = world.workspace.path("here");
    let got = run(&world, ["get", "corpus", here.to_str().unwrap()]).expect_code(0);
    got.expect_stderr("304 files, 3.1 MiB; in ");
    fs::remove_dir_all(world.cluster.claim().join("corpus/.infra")).unwrap();
    expect_same(&world.cluster.claim().join("corpus"), &here.join("corpus"));
    world.cluster.take_exec_bytes();
    let again = run(&world, ["get", "corpus/", here.join("corpus").to_str().unwrap()]).expect_code(0);
    again.expect_stderr("nothing to move, all of it is there");
    assert!(world.cluster.take_exec_bytes().1 < OVERHEAD + 304 * 400);
    expect_no_pod(&world);

    let one = world.workspace.path("one");
    run(
        &world,
        ["get", "corpus/deep", one.to_str().unwrap(), "--include", "part-1?", "--include", "**/latest"],
    )
    .expect_code(0);
    assert_eq!(fs::read_dir(one.join("deep")).unwrap().count(), 11);
    let file = world.workspace.path("file");
    run(&world, ["get", "corpus/run.sh", file.to_str().unwrap()]).expect_code(0);
    assert_eq!(fs::metadata(file.join("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
}

#[test]
fn a_transfer_continues_where_its_connection_broke() {
    let world = JobWorld::new(TRAIN);
    let file = world.workspace.path("model.bin");
    fs::write(&file, bytes(24_000_000)).unwrap();
    world.cluster.break_exec_after(&[9_000_000, 9_000_000]);
    let put = run(&world, ["put", file.to_str().unwrap(), "."]).expect_code(0);
    put.expect_stderr("; continuing\n").expect_stderr("in .\n");
    assert_eq!(fs::read(world.cluster.claim().join("model.bin")).unwrap(), fs::read(&file).unwrap());
    // What was on its way when the connection broke goes twice, at most.
    let (sent, _) = world.cluster.take_exec_bytes();
    assert!(sent < 24_000_000 + 2 * 8_500_000, "{sent}");
    assert!(fs::read_dir(world.cluster.claim().join(".infra/incoming")).unwrap().next().is_none());

    let here = world.workspace.path("here");
    world.cluster.break_exec_after(&[9_000_000, 9_000_000]);
    run(&world, ["get", "model.bin", here.to_str().unwrap()]).expect_code(0).expect_stderr("; continuing\n");
    assert_eq!(fs::read(here.join("model.bin")).unwrap(), fs::read(&file).unwrap());
    assert_eq!(fs::read_dir(&here).unwrap().count(), 1, "no parts are left");
    let (_, received) = world.cluster.take_exec_bytes();
    assert!(received < 24_000_000 + 2 * 3_000_000, "{received}");
    expect_no_pod(&world);
}

#[test]
fn a_run_that_was_killed_is_continued_by_the_next() {
    let world = JobWorld::new(TRAIN);
    let file = world.workspace.path("model.bin");
    fs::write(&file, bytes(40_000_000)).unwrap();
    let arguments = ["put", file.to_str().unwrap(), "."];
    let incoming = world.cluster.claim().join(".infra/incoming");
    let mut killed = data(&world, arguments).spawn();
    let part = world.cluster.wait_for("a part of the file", |_| {
        let part = fs::read_dir(&incoming).ok()?.flatten().next()?;
        (part.metadata().ok()?.len() > 5_000_000).then(|| part.path())
    });
    killed.kill();
    drop(killed);
    assert!(!world.cluster.claim().join("model.bin").exists());
    world.cluster.wait_for("the program of the pod to end", |state| {
        let before = fs::metadata(&part).ok()?.len();
        let _ = state;
        std::thread::sleep(Duration::from_millis(300));
        (fs::metadata(&part).ok()?.len() == before).then_some(())
    });
    let kept = fs::metadata(&part).unwrap().len();
    world.cluster.take_exec_bytes();
    run(&world, arguments).expect_code(0);
    let (sent, _) = world.cluster.take_exec_bytes();
    // A few messages of the killed run may have been on their way.
    let late = 1 << 20;
    assert!(sent < 40_000_000 - kept + OVERHEAD + late, "{sent} after {kept}");
    assert_eq!(fs::read(world.cluster.claim().join("model.bin")).unwrap(), fs::read(&file).unwrap());
}

#[test]
fn a_connection_that_always_breaks_is_given_up_and_can_be_continued() {
    let world = JobWorld::new(TRAIN);
    let file = world.workspace.path("model.bin");
    fs::write(&file, bytes(2_000_000)).unwrap();
    world.cluster.break_exec_after(&[1_000; 7]);
    let broken = run(&world, ["put", file.to_str().unwrap(), "."]).expect_code(5);
    broken.expect_stderr("help: run the same command again: it continues with what is missing");
    expect_no_pod(&world);
    run(&world, ["put", file.to_str().unwrap(), "."]).expect_code(0);
}

#[test]
fn an_interrupted_command_leaves_no_pod_and_ends_with_5() {
    let world = JobWorld::new(TRAIN);
    world.cluster.run_no_programs();
    fs::write(world.workspace.path("a"), "a").unwrap();
    let file = world.workspace.path("a");
    let mut putting = data(&world, ["put", file.to_str().unwrap(), "."]).spawn();
    let unplaced = json!([{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]);
    world.cluster.set_status("files", 0, json!({"phase": "Pending", "conditions": unplaced}));
    putting.wait_for_stderr("the pod for the files is waiting: 0/4 nodes are available");
    putting.interrupt();
    putting
        .wait()
        .expect_code(5)
        .expect_stderr("interrupted; the same command continues with what is missing");
    expect_no_pod(&world);
}

#[test]
fn nothing_leaves_the_claim_and_no_link_is_followed() {
    let world = JobWorld::new(TRAIN);
    let claim = world.cluster.claim();
    let outside = world.workspace.path("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    symlink(&outside, claim.join("way")).unwrap();
    fs::create_dir(claim.join("real")).unwrap();
    symlink("real", claim.join("alias")).unwrap();
    symlink(outside.join("secret"), claim.join("real/file")).unwrap();
    let file = world.workspace.path("file");
    fs::write(&file, "mine").unwrap();
    let put = run(&world, ["put", file.to_str().unwrap(), "way/sub"]).expect_code(1);
    put.expect_stderr("error: on the claim: way is a link or a file, not a directory");
    run(&world, ["put", file.to_str().unwrap(), "alias"]).expect_code(1).expect_stderr("alias is a link");
    // A link with the name of the file is replaced, not written through.
    run(&world, ["put", file.to_str().unwrap(), "real"]).expect_code(0);
    assert_eq!(fs::read_to_string(claim.join("real/file")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    for path in ["way", "way/secret", "alias/"] {
        let here = world.workspace.path("here");
        run(&world, ["get", path, here.to_str().unwrap()]).expect_code(1).expect_stderr("is a link");
        run(&world, ["rm", &format!("{}/x", path.trim_end_matches('/')), "--yes"]).expect_code(1);
    }
    run(&world, ["rm", "way", "--yes"]).expect_code(0);
    assert!(!claim.join("way").exists() && outside.join("secret").exists());

    // The same here: what leads out of the directory is left out and named.
    let tree = world.workspace.path("tree");
    fs::create_dir(&tree).unwrap();
    symlink(&outside, tree.join("absolute")).unwrap();
    symlink("../outside/secret", tree.join("upwards")).unwrap();
    Command::new("mkfifo").arg(tree.join("pipe")).status().unwrap();
    let put = run(&world, ["put", &format!("{}/", tree.display()), "tree"]).expect_code(0);
    put.expect_stderr("warning: left out 2 links, leading out of the directory: absolute -> ")
        .expect_stderr("upwards -> ../outside/secret")
        .expect_stderr("warning: left out 1 special file (pipes, devices): ")
        .expect_stderr("no files; in tree\n");
    assert_eq!(fs::read_dir(claim.join("tree")).map_or(0, Iterator::count), 0);
}

#[test]
fn rm_asks_first_and_never_deletes_the_root() {
    let world = JobWorld::new(TRAIN);
    let claim = world.cluster.claim();
    fs::create_dir_all(claim.join("old/run")).unwrap();
    fs::write(claim.join("old/run/model"), "x".repeat(2048)).unwrap();
    let asked = run(&world, ["rm", "old"]).expect_code(1);
    asked.expect_stderr("old: a directory with 1 file, 2 KiB\n").expect_stderr("--yes");
    assert!(claim.join("old/run/model").exists());
    run(&world, ["rm", "old", "--yes"]).expect_code(0).expect_stderr("deleted old\n");
    assert!(!claim.join("old").exists());
    run(&world, ["rm", "old", "--yes"]).expect_code(0);
    let missing = run(&world, ["rm", "old"]).expect_code(1);
    missing
        .expect_stderr("there is no old on the claim efs")
        .expect_stderr("`infra data ls` shows what is there");
    let before = world.cluster.changes();
    for (path, reason) in [
        (".", "this is the root of the claim, with the files of every job; name what is in it"),
        ("train/.infra", "directories named .infra hold records of infra itself"),
        ("../other", "it contains '..', which could lead out of the claim"),
        ("/etc", "it begins with '/'; paths on the claim are relative to its root, as import/data.tar.gz"),
        ("", "it is empty; `.` means the root of the claim"),
    ] {
        let refused = run(&world, ["rm", "--yes", path]).expect_code(2);
        refused.expect_stderr(&format!("for '<REMOTE>...': {reason}\n"));
    }
    assert_eq!(world.cluster.changes(), before);
}

#[test]
fn ls_shows_what_is_there() {
    let world = JobWorld::new(TRAIN);
    let claim = world.cluster.claim();
    fs::create_dir_all(claim.join("import/deep")).unwrap();
    fs::create_dir_all(claim.join(".infra")).unwrap();
    fs::write(claim.join("import/data.tar.gz"), "12345").unwrap();
    fs::write(claim.join("import/deep/\u{1b}[2Jtrap"), "").unwrap();
    symlink("data.tar.gz", claim.join("import/latest")).unwrap();
    let listed = run(&world, ["ls", "import"]).expect_code(0);
    let names: Vec<&str> = listed.stdout.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    assert_eq!(names, ["data.tar.gz", "deep/", "latest -> data.tar.gz"]);
    assert!(listed.stdout.starts_with("5  "), "{}", listed.stdout);
    run(&world, ["ls"]).expect_code(0).expect_stdout("import/");
    assert!(!run(&world, ["ls", "--recursive"]).expect_code(0).stdout.contains('\u{1b}'));
    let listed = run(&world, ["ls", "import", "--output", "json"]).expect_code(0);
    let document: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&document[0]["path"], &document[0]["size"]), (&json!("data.tar.gz"), &json!(5)));
    run(&world, ["ls", "none"]).expect_code(1).expect_stderr("there is no none on the claim efs");
    expect_no_pod(&world);
}

#[test]
fn what_cannot_be_put_is_refused_before_anything_is_created() {
    let world = JobWorld::new(TRAIN);
    let path = |name: &str| world.workspace.path(name).to_str().unwrap().to_owned();
    fs::create_dir_all(world.workspace.path("a")).unwrap();
    fs::create_dir_all(world.workspace.path("b")).unwrap();
    for file in ["a/x", "b/x"] {
        fs::write(world.workspace.path(file), "").unwrap();
    }
    for (arguments, code, reason) in [
        (vec!["put".to_owned(), path("none"), "import".to_owned()], 1, "cannot read "),
        (
            vec!["put".to_owned(), path("a/x"), path("b/x"), "import".to_owned()],
            2,
            "two of the files to put would become import/x",
        ),
        (vec!["put".to_owned(), format!("{}/", path("a/x")), "import".to_owned()], 1, "cannot read "),
        (vec!["put".to_owned(), "x".to_owned()], 2, "required arguments were not provided"),
        (vec!["put".to_owned(), path("a/x"), "../up".to_owned()], 2, "it contains '..'"),
        (
            vec!["put".to_owned(), path("a/x"), "x/.infra/y".to_owned()],
            2,
            "directories named .infra hold records",
        ),
        (
            vec!["get".to_owned(), "import".to_owned(), path("credentials")],
            2,
            "which infra reads or writes itself",
        ),
    ] {
        let refused = run(&world, arguments.iter().map(String::as_str)).expect_code(code);
        refused.expect_stderr(reason);
    }
    assert!(world.cluster.changes().is_empty());
    world.cluster.put_claim("default", "new", "Pending");
    let file = path("a/x");
    for (claim, reason) in [
        ("none", "there is no claim none in namespace default"),
        ("new", "the claim new in namespace default is Pending: it has no volume"),
    ] {
        let refused = run(&world, ["put", &file, ".", "--claim", claim]).expect_code(1);
        refused.expect_stderr(reason).expect_stderr("`--claim NAME` names another one");
    }
    assert!(world.cluster.changes().is_empty());
}

#[test]
fn programs_read_a_transfer_line_by_line() {
    let world = JobWorld::new(TRAIN);
    fs::write(world.workspace.path("file"), "12345").unwrap();
    let file = world.workspace.path("file");
    let put = run(&world, ["put", file.to_str().unwrap(), ".", "--output", "json"]).expect_code(0);
    let lines: Vec<String> = put.stdout.lines().map(str::to_owned).collect();
    expect_exact(&BTreeMap::from([("transfer", lines.clone())]), &[]);
    let events: Vec<Value> = lines.iter().map(|line| without_time(line)).collect();
    let began =
        json!({"type": "transfer-began", "direction": "put", "subject": "files", "files": 1, "bytes": 5});
    let done = json!({"type": "transfer-progress", "files": 1, "bytes": 5, "doneFiles": 1, "doneBytes": 5});
    let mut end = json!({"type": "transferred", "direction": "put", "subject": "files", "files": 1, "bytes": 5,
                         "movedFiles": 1, "movedBytes": 5, "outsideLinks": [], "specialFiles": [], "gone": []});
    assert_eq!(events, [began, done, end.clone()]);

    let here = world.workspace.path("here");
    let got = run(&world, ["get", "file", here.to_str().unwrap(), "--output", "json"]).expect_code(0);
    end["direction"] = json!("get");
    assert_eq!(without_time(got.stdout.lines().last().unwrap()), end);
}

/// An event that has the time it happened at.
fn without_time(line: &str) -> Value {
    let mut event: Value = serde_json::from_str(line).unwrap();
    let time = event.as_object_mut().unwrap().remove("time").unwrap();
    assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
    event
}
