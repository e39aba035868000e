//! Rotations of keys on their way to the controllers: `up` deploys a step only if old and new controllers accept each other's keys, and drops
//! a key that encrypts only when no Secret needs it.

use serde_json::json;

use crate::support::outcome::Outcome;
use crate::support::reading::is_reading;
use crate::support::world::World;

const CONTROL_PLANE: &str = "minimal-control-plane";
const SECRETS: [(&str, &str); 3] = [("default", "wandb"), ("kube-system", "pull"), ("team-a", "gone")];

fn running_cluster() -> World {
    let world = World::alone("minimal");
    world.api.set_secrets(&SECRETS);
    world.up([]).expect_code(0);
    world
}

fn step(world: &World, flag: &str, key: &str) -> Outcome {
    world.workspace.infra(["render", "credentials", flag, key, "--yes"]).run().expect_code(0)
}

fn deploy(world: &World) -> Outcome {
    world.up(["--yes"])
}

#[track_caller]
fn expect_nothing_changed(world: &World) {
    let changing: Vec<String> =
        world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect();
    assert_eq!(changing, [""; 0]);
}

/// How often each Secret was stored again.
fn stored_again(world: &World) -> Vec<usize> {
    let requests = world.api.requests();
    let path =
        |(namespace, name): &(&str, &str)| format!("PATCH /api/v1/namespaces/{namespace}/secrets/{name}");
    SECRETS.iter().map(path).map(|path| requests.iter().filter(|request| **request == path).count()).collect()
}

#[test]
fn both_keys_are_rotated_in_two_steps_and_the_old_ones_dropped() {
    let world = running_cluster();
    let running = [
        ("Filter.1.Name", "tag:infra:role"),
        ("Filter.1.Value.1", "controller"),
        ("Filter.2.Name", "instance-state-name"),
        ("Filter.2.Value.1", "running"),
    ];
    let machine = || world.made("DescribeInstances", &running, "instanceId");
    let rotate = ["render", "credentials", "--rotate", "service-account", "--rotate", "secrets-encryption"];
    let mut machines = vec![machine()];
    world.workspace.infra(rotate).run().expect_code(0);
    let outcome = deploy(&world).expect_code(0);
    outcome.expect_stderr(
        "rotation of service-account, step 1 of 2 is deployed: continue with `infra render credentials --rotate service-account`",
    );
    machines.push(machine());
    assert_eq!(stored_again(&world), [0, 0, 0]);
    world.workspace.infra(rotate).run().expect_code(0);
    let outcome = deploy(&world).expect_code(0);
    outcome
        .expect_stderr("3 Secrets are encrypted with the current key")
        .expect_stderr("`infra render credentials --retire service-account` drops the previous key, in an hour at the earliest");
    machines.push(machine());
    assert_eq!(stored_again(&world), [1, 1, 1]);

    // Nothing more to do, and both keys are still there.
    world.proxy.clear();
    deploy(&world).expect_code(0).expect_stderr("no stack had to change");
    expect_nothing_changed(&world);

    for key in ["service-account", "secrets-encryption"] {
        step(&world, "--retire", key);
    }
    let before = stored_again(&world);
    let outcome = deploy(&world).expect_code(0);
    assert!(!outcome.stderr.contains("rotation of"), "{}", outcome.stderr);
    assert_eq!(stored_again(&world), before.iter().map(|count| count + 1).collect::<Vec<_>>());
    machines.push(machine());
    machines.sort();
    machines.dedup();
    assert_eq!(machines.len(), 4, "each step replaces the controllers");
    deploy(&world).expect_code(0).expect_stderr("no stack had to change");
}

#[test]
fn a_step_that_the_controllers_are_not_ready_for_is_refused() {
    let world = running_cluster();
    for (key, would) in [
        ("service-account", "they would refuse tokens that the new key signs"),
        ("secrets-encryption", "they could not read Secrets that the new key encrypts"),
    ] {
        step(&world, "--rotate", key);
        step(&world, "--rotate", key);
        world.proxy.clear();
        for command in ["up", "plan"] {
            let outcome = if command == "up" { deploy(&world) } else { world.run(["plan"]) };
            outcome
                .expect_code(1)
                .expect_stderr(&format!(
                    "step 1 of the rotation of {key} has not reached the controllers: {would}"
                ))
                .expect_stderr(&format!("write `{key}: current 1, next 2` into credentials/keys-in-use.txt"));
        }
        expect_nothing_changed(&world);
        // As the help says.
        let path = world.workspace.credentials().join("keys-in-use.txt");
        let text = std::fs::read_to_string(&path).unwrap();
        let back =
            text.replace(&format!("{key}: current 2, previous 1"), &format!("{key}: current 1, next 2"));
        assert_ne!(text, back);
        std::fs::write(&path, back).unwrap();
        deploy(&world).expect_code(0);

        // Step 2 and the end at once.
        step(&world, "--rotate", key);
        step(&world, "--retire", key);
        world.proxy.clear();
        deploy(&world)
            .expect_code(1)
            .expect_stderr(&format!("does not hold the keys this cluster runs on: {key} differ"))
            .expect_stderr(&format!("write `{key}: current 2, previous 1` into credentials/keys-in-use.txt"));
        expect_nothing_changed(&world);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(
            &path,
            text.replace(&format!("{key}: current 2"), &format!("{key}: current 2, previous 1")),
        )
        .unwrap();
        deploy(&world).expect_code(0);
    }
}

#[test]
fn a_user_with_the_keys_from_before_a_rotation_is_refused() {
    let world = running_cluster();
    let other = world.workspace.elsewhere(true);
    for _ in 0..2 {
        step(&world, "--rotate", "service-account");
        deploy(&world).expect_code(0);
    }
    world.proxy.clear();
    let outcome = world.infra_in(&other, ["up", "--yes"]).run().expect_code(1);
    outcome
        .expect_stderr("does not hold the keys this cluster runs on: service-account differ")
        .expect_stderr("from whoever created the cluster or rotated its keys last");
    expect_nothing_changed(&world);
}

#[test]
fn a_key_is_not_dropped_while_a_secret_may_need_it() {
    let world = running_cluster();
    for _ in 0..2 {
        step(&world, "--rotate", "secrets-encryption");
        deploy(&world).expect_code(0);
    }
    step(&world, "--retire", "secrets-encryption");
    world.api.guard_secret(Some("pull"));
    world.proxy.clear();
    deploy(&world)
        .expect_code(1)
        .expect_stderr(
            "Secrets could not be encrypted with the current key, so the previous one is not dropped",
        )
        .expect_stderr("/api/v1/namespaces/kube-system/secrets/pull")
        .expect_stderr("vault.example.com");
    expect_nothing_changed(&world);
    world.api.guard_secret(None);
    deploy(&world).expect_code(0);
}

#[test]
fn no_key_is_changed_while_the_controllers_are_being_replaced() {
    let world = running_cluster();
    step(&world, "--rotate", "secrets-encryption");
    deploy(&world).expect_code(0);
    step(&world, "--rotate", "secrets-encryption");
    world.control(json!({
        "force_status": {CONTROL_PLANE: "UPDATE_IN_PROGRESS"}, "finish_status": "UPDATE_COMPLETE", "finish_after": 600
    }));
    world.proxy.clear();
    deploy(&world)
        .expect_code(1)
        .expect_stderr("CloudFormation is still changing minimal-control-plane")
        .expect_stderr("wait until `infra status` reports that it is complete");
    expect_nothing_changed(&world);
    world.control(json!({"force_status": {CONTROL_PLANE: "UPDATE_COMPLETE"}}));
    deploy(&world).expect_code(0);
}

/// A step that failed is rolled back, and with it what the next step is compared with.
#[test]
fn after_a_step_that_was_rolled_back_the_next_one_is_refused() {
    let world = running_cluster();
    step(&world, "--rotate", "secrets-encryption");
    let template = format!("{CONTROL_PLANE}/ControllerLaunchTemplate");
    world.control(json!({"fail_update": {template: "not today"}}));
    deploy(&world).expect_code(6);
    world.control(json!({}));
    step(&world, "--rotate", "secrets-encryption");
    deploy(&world)
        .expect_code(1)
        .expect_stderr("step 1 of the rotation of secrets-encryption has not reached");
}
