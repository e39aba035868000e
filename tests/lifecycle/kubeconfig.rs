//! `infra kubeconfig --direct`, with a real kubectl that finds the API server through the load balancer's name alone.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::forward_proxy::ForwardProxy;
use crate::support::outcome::Outcome;
use crate::support::reading::is_reading;
use crate::support::test_tool::test_tool;
use crate::support::world::World;

fn kubectl(world: &World, file: &str, proxy: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(test_tool("venv/bin/kubectl"));
    command.env("HOME", world.workspace.path("")).env("HTTPS_PROXY", proxy).env_remove("NO_PROXY");
    command.env_remove("no_proxy").arg("--kubeconfig").arg(world.workspace.path(file));
    Outcome::of(command.args(arguments))
}

/// The first cluster of a kubeconfig, as kubectl reads it.
fn cluster_of(world: &World, file: &str) -> Value {
    let view = kubectl(world, file, "", &["config", "view", "--raw", "-o", "json"]).expect_code(0);
    serde_json::from_str::<Value>(&view.stdout).unwrap()["clusters"][0]["cluster"].clone()
}

#[test]
fn kubectl_reaches_the_api_by_its_load_balancer_before_the_public_name_resolves() {
    let world = World::of_golden("minimal");
    world
        .run(["kubeconfig", "--direct"])
        .expect_code(1)
        .expect_stderr("there is no cluster minimal in this account and region")
        .expect_stderr("`infra up` creates it");
    // Without a hosted zone no record is created.
    world.up([]).expect_code(0);

    world.proxy.clear();
    let printed = world.run(["kubeconfig", "--direct"]).expect_code(0);
    assert_eq!(printed.stderr, "");
    assert!(world.proxy.calls().iter().all(|call| is_reading(&call.operation)), "{:?}", world.proxy.calls());
    std::fs::write(world.workspace.path("direct"), &printed.stdout).unwrap();
    let cluster = cluster_of(&world, "direct");
    assert_eq!(cluster["tls-server-name"], "minimal.example.com");
    let server = cluster["server"].as_str().unwrap();
    let name = server.strip_prefix("https://").unwrap();
    assert!(name.contains(".elb."), "{name}");

    let proxy = ForwardProxy::tunnelling_to(world.api.address());
    let question = ["get", "--raw", "/readyz"];
    kubectl(&world, "direct", &proxy.url(), &question).expect_code(0);
    assert_eq!(proxy.asked(), [format!("CONNECT {name}:443 HTTP/1.1")]);
    // The certificate is for the public name: without that line kubectl does not trust the load balancer's name.
    let nameless: String = printed
        .stdout
        .lines()
        .filter(|line| !line.contains("tls-server-name"))
        .fold(String::new(), |text, line| text + line + "\n");
    std::fs::write(world.workspace.path("nameless"), nameless).unwrap();
    kubectl(&world, "nameless", &proxy.url(), &question)
        .expect_code(1)
        .expect_stderr("certificate is valid for");

    world
        .run(["kubeconfig", "--direct", "--merge", "merged"])
        .expect_code(0)
        .expect_stderr("when minimal.example.com resolves, `infra kubeconfig --merge` replaces it");
    assert_eq!(cluster_of(&world, "merged"), cluster);
    world.run(["kubeconfig", "--merge", "merged"]).expect_code(0);
    let public = cluster_of(&world, "merged");
    assert_eq!(public["server"], "https://minimal.example.com");
    assert_eq!(public.get("tls-server-name"), None);
    world.run(["kubeconfig", "--direct", "--server", "https://127.0.0.1"]).expect_code(2);
}

#[test]
fn an_internal_load_balancer_is_named_as_one_and_only_once_it_exists() {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| format!("{text}api: {{public: false}}\n"));
    world.control(json!({"fail_create": {"Controllers": "no capacity"}}));
    world.up([]).expect_code(6);
    world
        .run(["kubeconfig", "--direct"])
        .expect_code(1)
        .expect_stderr("the API of minimal has no load balancer yet")
        .expect_stderr("`infra status` shows the stacks");
    world.control(json!({}));
    world.up([]).expect_code(0);
    let printed =
        world.run(["kubeconfig", "--direct"]).expect_code(0).expect_stderr("the load balancer is internal");
    assert!(printed.stdout.contains("\n    tls-server-name: minimal.example.com\n"), "{}", printed.stdout);
}
