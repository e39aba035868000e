//! `code:` in a job file: uploaded by content before the run, complete or absent, and never changed under a running job.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::moving_files::{bytes, expect_same};
use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

/// What one command sends besides files: its program and its questions.
const OVERHEAD: u64 = 60_000;

fn world() -> JobWorld {
    let world = JobWorld::new(&format!("{TRAIN}code: src\n"));
    world.cluster.decide(|role, index, _| match role {
        "worker" => Fate::Succeed(
            if index == 0 { "gpu-1" } else { "gpu-2" },
            "well
",
        ),
        // It runs its program.
        _ => Fate::Wait,
    });
    fs::create_dir_all(world.workspace.path("src/lib")).unwrap();
    write(&world, "train.py", b"print(1)\n");
    write(&world, "lib/model.py", b"layers = 3\n");
    write(&world, "lib/table.bin", &bytes(600_000));
    write(&world, ".gitignore", b"*.pt\n");
    write(&world, "model.pt", &bytes(5_000_000));
    symlink("train.py", world.workspace.path("src/main.py")).unwrap();
    world
}

fn write(world: &JobWorld, path: &str, content: &[u8]) {
    fs::write(world.workspace.path("src").join(path), content).unwrap();
}

/// The directory of the code that the JobSet mounts.
fn code(world: &JobWorld) -> PathBuf {
    world.cluster.claim().join(code_path(world))
}

fn code_path(world: &JobWorld) -> String {
    let set = world.cluster.object("jobsets", "default", "train").expect("there is no JobSet");
    let pod = &set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|mount| mount["mountPath"] == "/mnt/code").unwrap();
    assert_eq!(mount["readOnly"], true);
    let prepare = pod["initContainers"][0]["env"].as_array().unwrap();
    let path = mount["subPath"].as_str().unwrap().to_owned();
    let told = json!({"name": "INFRA_CODE_ON_CLAIM", "value": format!("/mnt/training/{path}")});
    assert!(prepare.contains(&told), "{prepare:?}");
    path
}

#[test]
fn code_is_on_the_claim_before_the_job_and_an_unchanged_tree_moves_nothing() {
    let world = world();
    let first = world.run(["submit"]).expect_code(0);
    first.expect_stderr("code: 4 files, 585.9 KiB, uploaded\n").expect_stdout("complete, 2 of 2 done");
    let changes = world.cluster.changes();
    let of = |what: &str| changes.iter().position(|change| change.contains(what)).unwrap();
    assert!(of("pods/infra-files-") < of("jobsets/train"), "{changes:?}");
    fs::remove_file(world.workspace.path("src/model.pt")).unwrap();
    expect_same(&world.workspace.path("src"), &code(&world));
    assert!(world.cluster.take_exec_bytes().0 > 600_000);
    let before = code(&world);

    let again = world.run(["submit", "--replace"]).expect_code(0);
    again.expect_stderr("code: 4 files, 585.9 KiB, unchanged since 20");
    assert!(world.cluster.take_exec_bytes().0 < OVERHEAD);
    assert_eq!(code(&world), before);

    // One changed file moves alone, and the code of the run before stays as it was.
    write(&world, "train.py", b"print(2)\n");
    world
        .run(["submit"])
        .expect_code(1)
        .expect_stderr("another job of this name already exists: 'train', complete");
    let changed = world.run(["submit", "--replace"]).expect_code(0);
    changed.expect_stderr("code: 4 files, 585.9 KiB, uploaded 1 file with 9 bytes; the others were there\n");
    assert!(world.cluster.take_exec_bytes().0 < OVERHEAD);
    assert_ne!(code(&world), before);
    expect_same(&world.workspace.path("src"), &code(&world));
    assert_eq!(fs::read(before.join("train.py")).unwrap(), b"print(1)\n");
    assert!(fs::read_dir(world.cluster.claim().join(".infra/code")).unwrap().next().is_none());
    // A run whose code changed says so.
    let runs = world.run(["runs", "--output", "json"]).expect_code(0);
    let runs: Value = serde_json::from_str(&runs.stdout).unwrap();
    let changed: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["changed"]).collect();
    assert_eq!(changed, [&Value::Null, &json!([]), &json!(["code"])]);
}

#[test]
fn programs_read_of_an_upload_before_they_read_of_the_job() {
    let world = world();
    let submitted = world.run(["submit", "--output", "json"]).expect_code(0);
    let values: Vec<Value> =
        serde_json::Deserializer::from_str(&submitted.stdout).into_iter().map(Result::unwrap).collect();
    let kinds: Vec<&Value> = values.iter().map(|value| &value["type"]).collect();
    assert_eq!(
        kinds,
        [&json!("transfer-began"), &json!("transfer-progress"), &json!("transferred"), &Value::Null]
    );
    assert_eq!((&values[2]["subject"], &values[2]["movedFiles"]), (&json!("code"), &json!(4)));
    assert_eq!(values[3]["state"], "complete");
    let again = world.run(["submit", "--replace", "--output", "json"]).expect_code(0);
    let end: Value = serde_json::from_str(again.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&end["type"], &end["files"], &end["movedFiles"]),
        (&json!("transferred"), &json!(4), &json!(0))
    );
}

#[test]
fn an_edit_while_a_job_runs_changes_neither_the_job_nor_what_attaches_to_it() {
    let world = world();
    world.cluster.decide(|role, _, _| if role == "worker" { Fate::Run("gpu-1") } else { Fate::Wait });
    world.run(["submit", "--detach"]).expect_code(0);
    world.cluster.take_exec_bytes();
    world.run(["submit", "--detach"]).expect_code(0).expect_stderr("already exists and is");
    assert_eq!(world.cluster.take_exec_bytes(), (0, 0), "nothing is uploaded for a job that is there");
    let before = code(&world);
    write(&world, "train.py", b"print(2)\n");
    world.run(["submit"]).expect_code(1).expect_stderr("another job of this name already exists");
    assert_eq!(fs::read(before.join("train.py")).unwrap(), b"print(1)\n");
}

#[test]
fn a_dry_run_says_what_would_be_uploaded_and_uploads_nothing() {
    let world = world();
    let plan = world.run(["submit", "--dry-run"]).expect_code(0);
    plan.expect_stdout("code: 4 files, 585.9 KiB, at /mnt/code; uploaded unless code/");
    let plan = world.run(["submit", "--dry-run", "--output", "json"]).expect_code(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!((&plan["code"]["files"], &plan["code"]["mountedAt"]), (&json!(4), &json!("/mnt/code")));
    assert_eq!(world.cluster.changes(), Vec::<String>::new());
}

#[test]
fn an_upload_that_breaks_continues_and_nothing_half_is_visible() {
    let world = world();
    write(&world, "lib/table.bin", &bytes(24_000_000));
    world.cluster.break_exec_after(&[9_000_000; 7]);
    // The first connections break one after the other; each brings the upload further.
    world
        .run(["submit"])
        .expect_code(0)
        .expect_stderr("; continuing\n")
        .expect_stderr("code: 4 files, 22.8 MiB, uploaded");
    expect_without_ignored(&world);

    write(&world, "lib/table.bin", &bytes(24_000_004));
    world.cluster.break_exec_after(&[1_000; 7]);
    let broken = world.run(["submit", "--replace"]).expect_code(5);
    broken.expect_stderr("help: run the same command again: it continues with what is missing");
    let trees = fs::read_dir(world.cluster.claim().join("code")).unwrap().count();
    assert_eq!(trees, 1, "a tree that is not complete is not visible");
    // The job that was to be replaced is still there.
    world.run(["status"]).expect_code(0).expect_stdout("default/train: complete");
    world.run(["submit", "--replace"]).expect_code(0);
    expect_without_ignored(&world);
}

#[track_caller]
fn expect_without_ignored(world: &JobWorld) {
    let ignored = world.workspace.path("src/model.pt");
    let content = fs::read(&ignored).unwrap();
    fs::remove_file(&ignored).unwrap();
    expect_same(&world.workspace.path("src"), &code(world));
    fs::write(&ignored, content).unwrap();
}

#[test]
fn an_interrupted_upload_creates_no_job_and_leaves_no_pod() {
    let world = world();
    world.cluster.run_no_programs();
    let mut running = world.infra(["submit"]).spawn();
    let unplaced = json!([{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]);
    world.cluster.set_status("files", 0, json!({"phase": "Pending", "conditions": unplaced}));
    running.wait_for_stderr("the pod for the files is waiting: 0/4 nodes are available");
    running.interrupt();
    let ended = running.wait().expect_code(5);
    let ended = ended.expect_stderr(
        "interrupted; no job was created, and the same command continues with what is missing of the code",
    );
    assert!(!ended.stderr.contains("detaching"), "{}", ended.stderr);
    world.cluster.wait_for("the pod to go", |state| (!state.has_pod_of("files")).then_some(()));
    assert!(world.cluster.object("jobsets", "default", "train").is_none());
}

#[test]
fn code_that_someone_changed_on_the_claim_is_not_run() {
    let world = world();
    world.run(["submit"]).expect_code(0);
    let path = code_path(&world);
    fs::write(code(&world).join("train.py"), b"print(9)\n").unwrap();
    let refused = world.run(["submit", "--replace"]).expect_code(1);
    refused
        .expect_stderr(&format!(
            "{path} on the claim was changed by someone: it is not the code that its name stands for"
        ))
        .expect_stderr(&format!(
            "help: when no run uses it, delete it with `infra data rm {path}`, then submit again: it is uploaded again"
        ));
    fs::remove_dir_all(code(&world)).unwrap();
    world.run(["submit", "--replace"]).expect_code(0).expect_stderr(", uploaded\n");
    assert_eq!(fs::read(code(&world).join("train.py")).unwrap(), b"print(1)\n");
}

#[test]
fn links_out_of_the_code_are_left_out_and_named() {
    let world = world();
    symlink("../job.yaml", world.workspace.path("src/job.yaml")).unwrap();
    let submitted = world.run(["submit"]).expect_code(0);
    submitted
        .expect_stderr("warning: left out 1 link, leading out of the directory: job.yaml -> ../job.yaml\n");
    assert!(fs::symlink_metadata(code(&world).join("job.yaml")).is_err());
}

#[test]
fn a_claim_that_the_job_brings_is_there_before_its_code() {
    let world = world();
    world.cluster.put("namespaces", json!({"metadata": {"name": "vision"}}));
    world.write_job(&format!("{TRAIN}namespace: vision\ncode: src\n"));
    world.run(["submit"]).expect_code(0).expect_stderr("code: 4 files, 585.9 KiB, uploaded\n");
    let changes = world.cluster.changes();
    let of = |what: &str| changes.iter().position(|change| change.contains(what)).unwrap();
    assert!(of("persistentvolumeclaims/efs") < of("pods/infra-files-"), "{changes:?}");
}
