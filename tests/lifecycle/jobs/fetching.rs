//! Results: from the claim through a real pod and the API server's proxy to this machine, byte for byte.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;

/// Where the results of the run are on the claim.
const OUTPUT: &str = "train/runs/r-1/output";

/// A world whose job has started its run `r-1`.
fn with_run(job: &str) -> JobWorld {
    let world = JobWorld::new(job);
    world.cluster.decide(|role, _, _| if role == "files" { Fate::Wait } else { Fate::Succeed("gpu-1", "") });
    world.run(["submit", "--detach", "--run", "r-1"]).expect_code(0);
    world
}

/// A world whose job has written files of all kinds.
fn with_results() -> JobWorld {
    let world = with_run(TRAIN);
    let output = world.cluster.claim().join(OUTPUT);
    fs::create_dir_all(output.join("pass-1/empty")).unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(|number| number.to_le_bytes()).collect();
    fs::write(output.join("model.bin"), bytes).unwrap();
    fs::write(output.join("pass-1/übersicht, final.txt"), "good\n").unwrap();
    fs::write(output.join("nothing"), "").unwrap();
    symlink("model.bin", output.join("latest")).unwrap();
    fs::create_dir_all(world.cluster.claim().join("train/runs/r-1/.infra")).unwrap();
    fs::write(world.cluster.claim().join("train/runs/r-1/notes.txt"), "notes\n").unwrap();
    // What other runs and earlier versions wrote is none of it.
    for other in ["train/output", "train/runs/r-2/output"] {
        fs::create_dir_all(world.cluster.claim().join(other)).unwrap();
        fs::write(world.cluster.claim().join(other).join("model.bin"), "other").unwrap();
    }
    world
}

#[track_caller]
fn expect_same(one: &Path, other: &Path) {
    let options = ["-r", "--no-dereference", "--exclude=.infra-source"];
    let compared = Command::new("diff").args(options).args([one, other]).output().unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}

#[track_caller]
fn expect_no_pod(world: &JobWorld) {
    world.cluster.wait_for("the pod to go", |state| (!state.has_pod_of("files")).then_some(()));
}

#[test]
fn results_are_fetched_byte_for_byte() {
    let world = with_results();
    let fetched = world.run(["fetch"]).expect_code(0);
    fetched.expect_stderr("3 files, 11.4 MiB; in ");
    expect_same(&world.cluster.claim().join(OUTPUT), &world.workspace.path("results/train"));
    expect_no_pod(&world);

    // The same command finds what is new, and another run does not mix its results in.
    fs::write(world.cluster.claim().join(OUTPUT).join("later"), "5").unwrap();
    world.run(["fetch"]).expect_code(0).expect_stderr("4 files, 11.4 MiB: moved 1 file with 1 byte; in ");
    let before = world.cluster.changes();
    let refused = world.run(["fetch", "--run", "r-2"]).expect_code(1);
    refused
        .expect_stderr("results/train holds files that are not of this run")
        .expect_stderr("`--to DIR` names another directory");
    assert_eq!(world.cluster.changes(), before);

    let all = world.workspace.path("all");
    world.run(["fetch", "--path", ".", "--to", all.to_str().unwrap()]).expect_code(0);
    assert_eq!(fs::read_to_string(all.join("notes.txt")).unwrap(), "notes\n");
    assert!(all.join("output/model.bin").exists() && !all.join(".infra").exists());
    expect_no_pod(&world);
}

/// The permissions of something that was fetched.
#[track_caller]
fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn hostile_results_open_nothing_and_lead_nowhere() {
    let world = with_results();
    let output = world.cluster.claim().join(OUTPUT);
    for (name, mode) in
        [("nothing", 0o666), ("model.bin", 0o777), ("pass-1", 0o777), ("pass-1/empty", 0o1777)]
    {
        fs::set_permissions(output.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("/home/op/.ssh/id_rsa", output.join("absolute")).unwrap();
    symlink("../../../../credentials/ca-key.pem", output.join("pass-1/upwards")).unwrap();
    symlink("../model.bin", output.join("pass-1/good")).unwrap();
    Command::new("mkfifo").arg(output.join("pipe")).status().unwrap();
    let fetched = world.run(["fetch"]).expect_code(0);
    fetched
        .expect_stderr("warning: left out 2 links, leading out of the directory")
        .expect_stderr(
            ": absolute -> /home/op/.ssh/id_rsa, pass-1/upwards -> ../../../../credentials/ca-key.pem\n",
        )
        .expect_stderr("warning: left out 1 special file (pipes, devices): pipe\n")
        .expect_stderr("3 files, 11.4 MiB; in ");
    let results = world.workspace.path("results/train");
    for name in ["absolute", "pass-1/upwards", "pipe"] {
        assert!(results.join(name).symlink_metadata().is_err(), "{name}");
    }
    assert!(results.join("pass-1/good").exists() && results.join("latest").exists());
    // What this process creates has the modes of the umask.
    let (file, directory) = (world.workspace.path("a-file"), world.workspace.path("a-directory"));
    fs::write(&file, "").unwrap();
    fs::create_dir(&directory).unwrap();
    assert_eq!(mode(&results.join("nothing")), mode(&file));
    assert_eq!(mode(&results.join("model.bin")), mode(&directory), "it stays executable");
    assert_eq!(mode(&results.join("pass-1")), mode(&directory));
    assert_eq!(mode(&results.join("pass-1/empty")), mode(&directory));
    expect_no_pod(&world);
}

#[test]
fn results_never_become_part_of_the_cluster() {
    let world = with_run(&TRAIN.replace("name: train", "name: snippets"));
    let output = world.cluster.claim().join("snippets/runs/r-1/output");
    fs::create_dir_all(&output).unwrap();
    fs::write(output.join("controller.ign"), "{}").unwrap();
    world.run(["fetch"]).expect_code(0);
    assert!(world.workspace.path("results/snippets/controller.ign").exists());
    assert!(!world.workspace.path("snippets").exists());

    let before = world.cluster.changes();
    for name in ["snippets", "templates/jobs", "manifests/extra", "stacks", "userdata/x", "credentials/x"] {
        let directory = world.workspace.path(name);
        let refused = world.run(["fetch", "--to", directory.to_str().unwrap()]).expect_code(2);
        let reserved = name.split('/').next().unwrap();
        refused
            .expect_stderr(&format!(
                "{} is in {reserved}/ of the cluster's directory, which infra reads or writes itself",
                directory.display()
            ))
            .expect_stderr("without it results go to results/NAME");
    }
    fs::rename(world.workspace.path("results"), world.workspace.path("elsewhere")).unwrap();
    fs::create_dir(world.workspace.path("victim")).unwrap();
    symlink("victim", world.workspace.path("results")).unwrap();
    let refused = world.run(["fetch"]).expect_code(2);
    refused.expect_stderr("results is a symbolic link, which infra does not follow");
    assert_eq!(fs::read_dir(world.workspace.path("victim")).unwrap().count(), 0);
    assert_eq!(world.cluster.changes(), before);
}

#[test]
fn fetch_finds_the_results_by_the_job() {
    let world = with_results();
    fs::remove_file(world.workspace.path("job.yaml")).unwrap();
    world.run(["fetch", "train", "--path", "output/pass-1"]).expect_code(0);
    assert_eq!(
        fs::read_to_string(world.workspace.path("results/train/übersicht, final.txt")).unwrap(),
        "good\n"
    );
    world.run(["fetch", "train", "--path", "../other", "--to", "x"]).expect_code(2);
}

/// `fetch` with these arguments downloads a model with this text.
#[track_caller]
fn expect_model(world: &JobWorld, arguments: &[&str], text: &str) {
    let to = world.workspace.path("fetched");
    world
        .run(["fetch", "--to", to.to_str().unwrap()].into_iter().chain(arguments.iter().copied()))
        .expect_code(0);
    assert_eq!(fs::read_to_string(to.join("model")).unwrap(), text);
    fs::remove_dir_all(to).unwrap();
    expect_no_pod(world);
}

#[test]
fn the_results_of_an_earlier_run_are_fetched_by_its_name() {
    let world = with_run(TRAIN);
    world.run(["submit", "--detach", "--replace", "--run", "r-2"]).expect_code(0);
    for run in ["r-1", "r-2"] {
        let output = world.cluster.claim().join(format!("train/runs/{run}/output"));
        fs::create_dir_all(&output).unwrap();
        fs::write(output.join("model"), run).unwrap();
    }
    expect_model(&world, &[], "r-2");
    expect_model(&world, &["--run", "r-1"], "r-1");
    // Either the job or its file says where runs are.
    world.run(["delete", "--yes"]).expect_code(0);
    expect_model(&world, &["--run", "r-1"], "r-1");
    world.run(["submit", "--detach", "--run", "r-3"]).expect_code(0);
    fs::remove_file(world.workspace.path("job.yaml")).unwrap();
    expect_model(&world, &["train", "--run", "r-2"], "r-2");
    let missing = world.run(["fetch", "train", "--run", "r-4"]).expect_code(1);
    missing.expect_stderr("there is no directory train/runs/r-4/output on the claim efs");
    world.run(["fetch", "train", "--run", "../r-1"]).expect_code(2);
}

#[test]
fn a_link_to_the_results_of_another_job_is_not_followed() {
    let world = with_results();
    let claim = world.cluster.claim();
    fs::create_dir_all(claim.join("other")).unwrap();
    fs::rename(claim.join(OUTPUT), claim.join("other/output")).unwrap();
    symlink("../../../other/output", claim.join(OUTPUT)).unwrap();
    let refused = world.run(["fetch"]).expect_code(1);
    refused.expect_stderr("train/runs/r-1/output is a link, which is not followed");
    expect_no_pod(&world);
    assert!(!world.workspace.path("train").exists());
}

#[test]
fn missing_results_are_reported() {
    let world = JobWorld::new(TRAIN);
    let missing = world.run(["fetch"]).expect_code(1);
    missing.expect_stderr("there is no job 'train' in namespace default");
    assert!(world.cluster.changes().is_empty());
    let world = with_run(TRAIN);
    let missing = world.run(["fetch"]).expect_code(1);
    missing
        .expect_stderr(
            "the results of job 'train' cannot be read: there is no directory train/runs/r-1/output on the claim efs",
        )
        .expect_stderr("`--path .` all of it");
    expect_no_pod(&world);
    assert!(!world.workspace.path("results").exists());
}

#[test]
fn a_pod_that_cannot_start_to_read_results_is_explained_and_deleted() {
    let world = with_run(TRAIN);
    world.cluster.run_no_programs();
    let mut fetching = world.infra(["fetch"]).spawn();
    let unplaced = json!([{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]);
    world.cluster.set_status("files", 0, json!({"phase": "Pending", "conditions": unplaced}));
    fetching.wait_for_stderr("the pod for the files is waiting: 0/4 nodes are available");
    fetching.interrupt();
    fetching.wait().expect_code(5).expect_stderr("interrupted; the same command continues");
    expect_no_pod(&world);

    world.cluster.decide(|_, _, _| Fate::Fail("worker-1", 127, ""));
    let failed = world.run(["fetch"]).expect_code(1);
    failed.expect_stderr(
        "the pod that reads and writes the claim cannot be used: it ended: files ended with 127",
    );
    expect_no_pod(&world);
}

#[test]
fn the_pod_that_reads_results_tolerates_the_taints_of_every_pool() {
    let world = JobWorld::of_golden("ha-gpu-efs", TRAIN);
    world.cluster.run_no_programs();
    let fetching = world.infra(["fetch", "--run", "r-1"]).spawn();
    let key = world.cluster.pod("files", 0);
    let pod = world.cluster.object("pods", "default", &key.2).unwrap();
    let stands =
        |key: &str| pod["spec"]["tolerations"].as_array().unwrap().iter().any(|one| one["key"] == key);
    assert!(stands("nvidia.com/gpu") && stands("dedicated"), "{}", pod["spec"]["tolerations"]);
    // No pod of the cluster reaches it, and it only reads.
    let container = &pod["spec"]["containers"][0];
    assert!(container.get("ports").is_none(), "{container}");
    assert_eq!(container["volumeMounts"][0]["readOnly"], true);
    fetching.interrupt();
    fetching.wait().expect_code(5);
}

#[test]
fn a_fetch_that_breaks_off_is_continued() {
    let world = with_results();
    world.cluster.break_exec_after(&[1_500_000; 7]);
    let broken = world.run(["fetch"]).expect_code(5);
    broken.expect_stderr("run the same command again: it continues with what is missing");
    expect_no_pod(&world);
    let got = world.cluster.take_exec_bytes().1;
    world.cluster.break_exec_after(&[]);
    world.run(["fetch"]).expect_code(0);
    let more = world.cluster.take_exec_bytes().1;
    assert!(more < 9_000_000, "{more} after {got}");
    expect_same(&world.cluster.claim().join(OUTPUT), &world.workspace.path("results/train"));
}

#[test]
fn only_the_files_that_are_named_are_fetched() {
    let world = with_results();
    world
        .run(["fetch", "--include", "pass-1/*", "--include", "nothing"])
        .expect_code(0)
        .expect_stderr("2 files, 5 bytes; in ");
    let results = world.workspace.path("results/train");
    assert!(
        results.join("nothing").exists()
            && results.join("pass-1").exists()
            && !results.join("model.bin").exists()
    );
}
