//! Imports whose pods fail, are evicted or killed: what is retried, what counts, what is shown.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{DATA, JobWorld, TRAIN};
use crate::support::http::{Message, Server};
use crate::support::job_cluster::controller::Fate;

/// The kubelet ends a pod because its node lacks memory; unlike one that is drained, the pod stays.
fn evict_by_kubelet(world: &JobWorld) {
    let disruption =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]);
    let status = json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
                        "conditions": disruption});
    world.cluster.set_status("data", 0, status);
}

#[test]
fn an_evicted_import_is_replaced_without_being_counted() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.cluster.run_no_programs();
    let mut running = world.infra(["submit"]).spawn();
    running.wait_for_stderr("importing the data");
    evict_by_kubelet(&world);
    running.wait_for_stderr("the import was restarted after 1 lost machine\n");
    world.cluster.finish("data", 0, 1);
    running.wait_for_stderr("the import was restarted after 1 failure of 3 and 1 lost machine\n");
    // More than the failures that it may have.
    for _ in 0..4 {
        evict_by_kubelet(&world);
    }
    world.cluster.run("data", 0, "worker-1");
    let status = world.run(["status"]).expect_code(0);
    status.expect_stdout(
        "default/train: importing, import restarted after 1 failure of 3 and 5 lost machines\nrun ",
    );
    let document = world.run(["status", "--output", "json"]).expect_code(0);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["importRestarts"], json!({"failures": 1, "lostMachines": 5, "allowed": 3}));
    assert_eq!(document["restarts"], Value::Null);
    world.cluster.decide(|_, _, _| Fate::Run("gpu-1"));
    world.cluster.finish("data", 0, 0);
    running.wait_for_stderr("train: running");
    // What happened to the import no longer matters.
    let status = world.run(["status"]).expect_code(0);
    assert!(!status.stdout.contains("import"), "{}", status.stdout);
    running.interrupt();
    running.wait().expect_code(5);
}

#[test]
fn a_failing_import_is_tried_again_three_times() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world
        .cluster
        .decide(|_, _, _| Fate::Fail("worker-1", 1, "infra: the data cannot be imported: no route\n"));
    let failed = world.run(["submit"]).expect_code(1);
    failed.expect_stderr(
        "the data of job 'train' could not be imported: the data cannot be imported: no route",
    );
    let status = world.run(["status"]).expect_code(3);
    status.expect_stdout(", import restarted after 3 failures of 3\n").expect_stdout("data  0      Failed");
    assert_eq!(world.cluster.pods("data").len(), 4);
}

/// Serves an archive: the first answer stops in the middle, and the connection stays open. Returns what was asked for.
fn serve_halves(archive: Vec<u8>) -> (Server, Arc<Mutex<Vec<Option<String>>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let server = Server::start(move |stream| {
        // An error is a client that went away.
        drop(answer_half(stream, &archive, &seen));
    });
    (server, asked)
}

fn answer_half(
    mut stream: &TcpStream,
    archive: &[u8],
    seen: &Mutex<Vec<Option<String>>>,
) -> std::io::Result<()> {
    let Some(request) = Message::read_head(&mut BufReader::new(stream))? else { return Ok(()) };
    let range = request.header("Range").map(str::to_owned);
    let is_first = {
        let mut seen = seen.lock().unwrap();
        seen.push(range.clone());
        seen.len() == 1
    };
    let first = range.and_then(|range| range.strip_prefix("bytes=")?.trim_end_matches('-').parse().ok());
    let first: usize = first.unwrap_or(0);
    let (tag, last, all) = ("\"one\"", archive.len() - 1, archive.len());
    let part = format!("bytes {first}-{last}/{all}");
    let body = &archive[first..];
    let answer = match first {
        0 => Message::answer(200, &[("ETag", tag)], body),
        _ => Message::answer(206, &[("ETag", tag), ("Content-Range", &part)], body),
    };
    stream.write_all(&answer.head())?;
    if is_first {
        let (half, rest) = body.split_at(body.len() / 2);
        stream.write_all(half)?;
        // A slow server: what has arrived is recorded now and then.
        for byte in rest.chunks(1).take(600) {
            std::thread::sleep(Duration::from_millis(100));
            stream.write_all(byte)?;
        }
        return Ok(());
    }
    stream.write_all(body)
}

#[test]
fn an_import_continues_where_its_last_pod_was_killed() {
    let world = JobWorld::new(&format!("{TRAIN}{DATA}"));
    world.put_archive(200_000);
    let archive = std::fs::read(world.cluster.claim().join("import/data.tar.gz")).unwrap();
    let (server, asked) = serve_halves(archive.clone());
    world.write_job(&format!(
        "{TRAIN}data: {{url: 'http://{}/data.tar.gz', split: lines}}\n",
        server.address()
    ));
    world.cluster.decide(|role, _, _| if role == "data" { Fate::Wait } else { Fate::Succeed("gpu-1", "") });
    let running = world.infra(["submit"]).spawn();
    let marker = world.cluster.claim().join("train/.infra");
    let arrived = || {
        let files = std::fs::read_dir(&marker).into_iter().flatten().flatten();
        let mut records = files.filter(|file| file.file_name().to_string_lossy().ends_with(".json"));
        let record = records.find(|file| file.file_name().to_string_lossy().starts_with("download-"))?;
        let record: Value = serde_json::from_str(&std::fs::read_to_string(record.path()).ok()?).ok()?;
        record["done"].as_u64().filter(|done| *done > 0)
    };
    let arrived = world.cluster.wait_for("a part of the archive", |_| arrived());
    let pod = world.cluster.pod("data", 0);
    world.cluster.state().stop_program(&pod);
    running.wait().expect_code(0).expect_stdout("complete");
    assert_eq!(*asked.lock().unwrap(), [None, Some(format!("bytes={}-", arrived - 1))]);
    assert!(world.read_claim("train/1/data/train.txt").ends_with("line 199999\n"));
}
