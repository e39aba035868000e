//! The TensorBoard of a job at an address of this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use super::{JobWorld, TRAIN};
use crate::support::invocation::Running;
use crate::support::job_cluster::controller::Fate;

const PORT: u16 = 6006;
const ROLE: &str = "tensorboard";

fn with_board() -> JobWorld {
    let world = JobWorld::new(&format!("{TRAIN}tensorboard: true\n"));
    world.cluster.decide(|role, _, _| if role == ROLE { Fate::Wait } else { Fate::Run("gpu-1") });
    world.cluster.run_no_programs();
    let submitted = world.run(["submit", "--detach"]).expect_code(0);
    submitted.expect_stderr("`infra job tensorboard train` shows its TensorBoard");
    world
}

fn ready(is_ready: bool) -> Value {
    let status = if is_ready { "True" } else { "False" };
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status}]})
}

/// A server that answers each request with what was asked for, and stays while the test does.
fn start_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut line = String::new();
                let mut stream = BufReader::new(stream);
                while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
                    let answer = format!("you asked for {line}");
                    if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    address
}

/// The address that was printed.
#[track_caller]
fn address_of(board: &mut Running) -> String {
    board.wait_for_stdout("/\n");
    let text = board.stdout();
    text.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned()
}

#[track_caller]
fn ask(stream: &mut BufReader<TcpStream>, text: &str) -> String {
    stream.get_mut().write_all(format!("{text}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_line(&mut answer);
    answer
}

fn connect(address: &str) -> BufReader<TcpStream> {
    BufReader::new(TcpStream::connect(address).unwrap())
}

#[test]
fn it_is_waited_for_and_seen_until_the_user_leaves() {
    let world = with_board();
    let mut board = world.infra(["tensorboard"]).spawn();
    board.wait_for_stderr("waiting for the TensorBoard of job 'train': its pod is being started");
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
    let status = json!({"phase": "Pending", "containerStatuses": [{"name": ROLE, "state": waiting}]});
    world.cluster.set_status(ROLE, 0, status);
    board.wait_for_stderr("waiting for the TensorBoard of job 'train': ImagePullBackOff: no such image");
    world.cluster.serve_port(PORT, start_server());
    world.cluster.set_status(ROLE, 0, ready(false));
    board.wait_for_stderr("waiting for the TensorBoard of job 'train': it runs, and does not answer yet");
    world.cluster.set_status(ROLE, 0, ready(true));
    let address = address_of(&mut board);
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let (mut one, mut other) = (connect(&address), connect(&address));
    assert_eq!(ask(&mut one, "scalars"), "you asked for scalars\n");
    assert_eq!(ask(&mut other, "graphs"), "you asked for graphs\n");
    assert_eq!(ask(&mut one, "images"), "you asked for images\n");
    // A connection that breaks is one connection.
    world.cluster.break_logs();
    let mut rest = String::new();
    let _ = one.read_to_string(&mut rest);
    board.wait_for_stderr("warning: a connection failed: ");
    assert_eq!(ask(&mut connect(&address), "again"), "you asked for again\n");
    // So is an API that is away for a while.
    world.cluster.set_unreachable(true);
    board.wait_for_stderr("; retrying");
    world.cluster.set_unreachable(false);
    board.wait_for_stderr("the Kubernetes API answers again");
    assert_eq!(ask(&mut connect(&address), "still"), "you asked for still\n");
    board.interrupt();
    let left = board.wait().expect_code(130);
    assert_eq!(left.stdout.lines().count(), 1, "{}", left.stdout);
}

#[test]
fn another_pod_in_its_place_is_found() {
    let world = with_board();
    world.cluster.serve_port(PORT, start_server());
    world.cluster.set_status(ROLE, 0, ready(true));
    let mut board = world.infra(["tensorboard", "train"]).spawn();
    let address = address_of(&mut board);
    world.cluster.finish(ROLE, 0, 1);
    board.wait_for_stderr("waiting for the TensorBoard of job 'train': ");
    // It is accepted now, and answered when there is a pod.
    let mut early = connect(&address);
    world.cluster.pod(ROLE, 0);
    world.cluster.set_status(ROLE, 0, ready(true));
    assert_eq!(ask(&mut early, "more"), "you asked for more\n");
    board.wait_for_stderr("the TensorBoard answers again");
    // It ends by itself, a day after its job.
    world.cluster.finish(ROLE, 0, 0);
    let ended = board.wait().expect_code(0);
    ended.expect_stderr("the TensorBoard of job 'train' has ended");
}

#[test]
fn one_that_does_not_listen_is_reported_and_may_come() {
    let world = with_board();
    world.cluster.set_status(ROLE, 0, ready(true));
    let mut board = world.infra(["tensorboard"]).spawn();
    let address = address_of(&mut board);
    assert_eq!(ask(&mut connect(&address), "anything"), "");
    board.wait_for_stderr("failed to connect to localhost:6006: connection refused");
    world.cluster.serve_port(PORT, start_server());
    assert_eq!(ask(&mut connect(&address), "now"), "you asked for now\n");
    world.run(["delete", "--yes"]).expect_code(0);
    board.wait().expect_code(0).expect_stderr("the TensorBoard of job 'train' was deleted");
}

#[test]
fn a_port_can_be_named_and_must_be_free() {
    let world = with_board();
    world.cluster.set_status(ROLE, 0, ready(true));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = world.run(["tensorboard", "--port", &port]).expect_code(1);
    refused
        .expect_stderr(&format!("port {port} of this machine cannot be used: Address already in use"))
        .expect_stderr("name another with `--port`, or leave it out");
    for wrong in ["0", "65536", "http"] {
        world.run(["tensorboard", "--port", wrong]).expect_code(2).expect_stderr("--port <PORT>");
    }
    drop(taken);
    let mut board = world.infra(["tensorboard", "--port", &port]).spawn();
    assert_eq!(address_of(&mut board), format!("127.0.0.1:{port}"));
}

#[test]
fn a_job_without_one_is_told_how_to_get_one() {
    let world = JobWorld::new(TRAIN);
    world.run(["tensorboard"]).expect_code(1).expect_stderr("there is no job 'train' in namespace default");
    world.run(["submit", "--detach"]).expect_code(0);
    let none = world.run(["tensorboard"]).expect_code(1);
    assert_eq!(
        none.stderr,
        "error: job 'train' has no TensorBoard\n\
         help: write `tensorboard: true` into the job file, then run `infra job submit --replace`; a TensorBoard ends a day after its job\n"
    );
}

#[test]
fn one_that_failed_says_why() {
    let world = with_board();
    let failed = json!({"exitCode": 137, "reason": "OOMKilled"});
    world.cluster.set_status(
        ROLE,
        0,
        json!({"phase": "Running", "containerStatuses": [{"name": ROLE, "state": {"terminated": failed}}]}),
    );
    world.cluster.end_job(
        "train-tensorboard",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    );
    let seen = world.run(["tensorboard"]).expect_code(1);
    seen.expect_stderr("the TensorBoard of job 'train' failed: ").expect_stderr("the job is not affected");
}

#[test]
fn who_may_not_reach_ports_learns_it_first() {
    let world = with_board();
    world.cluster.set_status(ROLE, 0, ready(true));
    let elsewhere = super::kubeconfigs::Elsewhere::new(&world);
    let kubeconfig = world.workspace.infra(["kubeconfig"]).run().expect_code(0).stdout;
    let without: Vec<&str> =
        kubeconfig.lines().filter(|line| !line.trim_start().starts_with("client-")).collect();
    elsewhere.write("config", &format!("{}\n    token: some-token\n", without.join("\n")));
    world.cluster.put_user_token("some-token", "ada");
    let rule = json!({"apiGroups": ["", "batch"], "verbs": ["get", "list"], "resources": ["pods", "jobs", "events", "pods/portforward"]});
    world.cluster.put("clusterroles", json!({"metadata": {"name": "some"}, "rules": [rule]}));
    world.cluster.put(
        "clusterrolebindings",
        json!({"metadata": {"name": "some"}, "subjects": [{"kind": "User", "name": "ada"}],
               "roleRef": {"kind": "ClusterRole", "name": "some"}}),
    );
    let refused =
        elsewhere.infra(["job", "tensorboard", "train", "--kubeconfig", "config"]).run().expect_code(1);
    assert_eq!(refused.stdout, "");
    refused.expect_stderr("user 'ada' may not create pods/portforward in namespace default (403 Forbidden)");
}
