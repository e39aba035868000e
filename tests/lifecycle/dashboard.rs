//! `infra dashboard`: Prometheus of a cluster at an address of this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use crate::support::invocation::{Invocation, Running};
use crate::support::job_cluster::JobCluster;
use crate::support::workspace::Workspace;

const PORT: u16 = 9090;

struct Watched {
    workspace: Workspace,
    cluster: JobCluster,
}

impl Watched {
    /// A cluster whose cluster.yaml asks for monitoring.
    fn new() -> Self {
        Self::of_golden("adopted")
    }

    fn of_golden(name: &str) -> Self {
        let workspace = Workspace::of_golden(name);
        let cluster = JobCluster::start(&workspace.credentials());
        Self { workspace, cluster }
    }

    fn infra<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let all: Vec<&str> = std::iter::once("dashboard").chain(arguments).collect();
        self.workspace.infra(all).env("INFRA_API_SERVER", &self.cluster.address())
    }

    fn put_pod(&self, name: &str, node: &str, status: Value) {
        let metadata = json!({"name": name, "namespace": "kube-system", "labels": {"k8s-app": "prometheus"}});
        self.cluster.put("pods", json!({"metadata": metadata, "spec": {"nodeName": node}, "status": status}));
    }

    fn set_status(&self, name: &str, status: Value) {
        self.cluster.change("pods", "kube-system", name, json!({"status": status}));
    }
}

fn running(is_ready: bool) -> Value {
    let status = if is_ready { "True" } else { "False" };
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status}], "containerStatuses": []})
}

fn unpulled() -> Value {
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
    json!({"phase": "Pending", "containerStatuses": [{"name": "prometheus", "state": waiting}]})
}

/// A server that answers each line, and stays while the test does.
fn start_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
                    if stream.get_mut().write_all(format!("measured: {line}").as_bytes()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    address
}

#[track_caller]
fn address_of(dashboard: &mut Running) -> String {
    dashboard.wait_for_stdout("/\n");
    dashboard.stdout().trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned()
}

#[track_caller]
fn ask(address: &str, text: &str) -> String {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    stream.get_mut().write_all(format!("{text}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_line(&mut answer);
    answer
}

#[test]
fn it_is_waited_for_and_seen_until_the_user_leaves() {
    let watched = Watched::new();
    watched.put_pod("prometheus-a", "controller-1", unpulled());
    let mut dashboard = watched.infra([]).spawn();
    dashboard.wait_for_stderr("waiting for Prometheus: ImagePullBackOff: no such image");
    watched.cluster.serve_port(PORT, start_server());
    watched.set_status("prometheus-a", running(true));
    let address = address_of(&mut dashboard);
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    dashboard.wait_for_stderr(&format!("alerts: http://{address}/alerts"));
    dashboard.wait_for_stderr("forwarding to Prometheus of cluster guest on controller-1; Ctrl-C ends it");
    assert_eq!(ask(&address, "up"), "measured: up\n");
    watched.cluster.set_unreachable(true);
    dashboard.wait_for_stderr("; retrying");
    watched.cluster.set_unreachable(false);
    dashboard.wait_for_stderr("the Kubernetes API answers again");
    assert_eq!(ask(&address, "again"), "measured: again\n");
    dashboard.interrupt();
    let left = dashboard.wait().expect_code(130);
    assert_eq!(left.stdout.lines().count(), 1, "{}", left.stdout);
}

#[test]
fn another_controller_takes_over() {
    let watched = Watched::new();
    watched.cluster.serve_port(PORT, start_server());
    watched.put_pod("prometheus-a", "controller-1", running(true));
    watched.put_pod("prometheus-b", "controller-2", running(true));
    let mut dashboard = watched.infra([]).spawn();
    let address = address_of(&mut dashboard);
    dashboard.wait_for_stderr("on controller-1; Ctrl-C ends it");
    watched.cluster.take("pods", "kube-system", "prometheus-a");
    dashboard.wait_for_stderr("on controller-2; Ctrl-C ends it");
    assert_eq!(ask(&address, "up"), "measured: up\n");
    dashboard.interrupt();
    dashboard.wait().expect_code(130);
    // One can be chosen, and must exist.
    watched.put_pod("prometheus-a", "controller-1", running(true));
    let mut chosen = watched.infra(["--node", "controller-2"]).spawn();
    chosen.wait_for_stderr("on controller-2; Ctrl-C ends it");
    let refused = watched.infra(["--node", "worker-1"]).run().expect_code(1);
    assert_eq!(
        refused.stderr,
        "error: there is no Prometheus on node 'worker-1'\nhelp: it runs on controllers: controller-1, controller-2\n"
    );
}

#[test]
fn a_prometheus_that_does_not_run_is_reported_with_the_reason() {
    let watched = Watched::new();
    watched.put_pod("prometheus-a", "controller-1", unpulled());
    let failed = watched.infra([]).run().expect_code(1);
    assert_eq!(
        failed.stderr,
        "waiting for Prometheus: ImagePullBackOff: no such image\n\
         error: Prometheus does not run: ImagePullBackOff: no such image\n\
         help: fix the cause; `kubectl describe pods -n kube-system -l k8s-app=prometheus` says more\n"
    );
    assert_eq!(failed.stdout, "");
}

#[test]
fn a_cluster_without_monitoring_says_how_to_get_it() {
    let watched = Watched::of_golden("minimal");
    let none = watched.infra([]).run().expect_code(1);
    assert_eq!(
        none.stderr,
        "error: cluster minimal has no monitoring\n\
         help: cluster.yaml has addons.monitoring: false; set it to true and run `infra up`, which replaces etcd members and controllers\n"
    );
    // Asked for, and not installed yet.
    let file = watched.workspace.path("cluster.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}addons: {{monitoring: true}}\n")).unwrap();
    watched.infra([]).run().expect_code(1).expect_stderr("cluster.yaml asks for it; run `infra up`");
}

#[test]
fn a_port_must_be_free() {
    let watched = Watched::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = watched.infra(["--port", &port]).run().expect_code(1);
    refused.expect_stderr(&format!("port {port} of this machine cannot be used: Address already in use"));
    watched.infra(["--port", "0"]).run().expect_code(2).expect_stderr("--port <PORT>");
}
