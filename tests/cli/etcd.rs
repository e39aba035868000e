//! A real etcd with an etcd member's certificate: who is let in, and who is not.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Outcome, Workspace, tool};

/// A running etcd, killed when the test ends.
struct Server {
    child: Child,
    client_url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(workspace: &Workspace) -> Server {
    let client_url = format!("https://127.0.0.1:{}", free_port());
    let peer_url = format!("https://127.0.0.1:{}", free_port());
    let file = |name: &str| workspace.credential(name).to_string_lossy().into_owned();
    let child = tool("etcd/usr/bin/etcd")
        .args(["--name=etcd-0", "--logger=zap"])
        .arg(format!("--data-dir={}", workspace.path("data").display()))
        .args([format!("--listen-client-urls={client_url}"), format!("--advertise-client-urls={client_url}")])
        .args([format!("--listen-peer-urls={peer_url}"), format!("--initial-advertise-peer-urls={peer_url}")])
        .arg(format!("--initial-cluster=etcd-0={peer_url}"))
        .args([
            format!("--cert-file={}", file("etcd-0.pem")),
            format!("--key-file={}", file("etcd-0-key.pem")),
        ])
        .args([format!("--trusted-ca-file={}", file("etcd-ca.pem")), "--client-cert-auth=true".to_owned()])
        .args([
            format!("--peer-cert-file={}", file("etcd-0.pem")),
            format!("--peer-key-file={}", file("etcd-0-key.pem")),
        ])
        .args([
            format!("--peer-trusted-ca-file={}", file("etcd-ca.pem")),
            "--peer-client-cert-auth=true".to_owned(),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Server { child, client_url }
}

/// Writes a key as a client with the given certificate, or with none.
fn put(server: &Server, authority: &Path, client: Option<(&Path, &Path)>) -> Outcome {
    let mut command = tool("etcd/usr/bin/etcdctl");
    command.env("ETCDCTL_API", "3").args(["--dial-timeout=5s", "--command-timeout=5s"]);
    command.arg(format!("--endpoints={}", server.client_url)).arg("--cacert").arg(authority);
    if let Some((certificate, key)) = client {
        command.arg("--cert").arg(certificate).arg("--key").arg(key);
    }
    Outcome::of(command.args(["put", "who", "me"]))
}

#[test]
fn only_the_api_servers_certificate_opens_etcd() {
    let workspace = Workspace::with_credentials();
    let foreign = Workspace::with_credentials();
    let mut server = start(&workspace);
    let authority = workspace.credential("etcd-ca.pem");
    let try_at = |server: &Server, owner: &Workspace, name: &str| {
        let (certificate, key) =
            (owner.credential(&format!("{name}.pem")), owner.credential(&format!("{name}-key.pem")));
        put(server, &authority, Some((&certificate, &key)))
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let run = try_at(&server, &workspace, "etcd-client");
        if run.code == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "etcd did not come up: {run:?}");
        if server.child.try_wait().unwrap().is_some() {
            // Another program took one of its ports first.
            server = start(&workspace);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let try_as = |owner: &Workspace, name: &str| try_at(&server, owner, name);
    for name in ["worker", "admin", "apiserver-kubelet-client", "front-proxy-client"] {
        let run = try_as(&workspace, name);
        assert_ne!(run.code, 0, "{name} was let in");
    }
    assert_ne!(try_as(&foreign, "etcd-client").code, 0, "another cluster's client was let in");
    assert_ne!(put(&server, &authority, None).code, 0, "a client without a certificate was accepted");
    let other = workspace.credential("ca.pem");
    let (certificate, key) =
        (workspace.credential("etcd-client.pem"), workspace.credential("etcd-client-key.pem"));
    assert_ne!(put(&server, &other, Some((&certificate, &key))).code, 0, "the server passed for one of ca's");
    // A busy machine may need longer for an answer than a client waits.
    let survives = || try_as(&workspace, "etcd-client").code == 0;
    assert!((0..10).any(|_| survives()), "the server did not survive the refusals");
}
