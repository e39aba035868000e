//! Destroys from unusual states, and what programs read of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::wait_until;
use crate::support::world::World;

/// Deletes a stack as a user would in the console.
#[track_caller]
fn delete_by_hand(world: &World, stack: &str) {
    let aws = world.aws();
    let ask = |action: &str, more: &[(&str, &str)]| {
        let form = [("Action", action), ("Version", "2010-05-15"), ("StackName", stack)];
        aws.post("cloudformation", &aws.region, &[form.as_slice(), more].concat())
    };
    ask("UpdateTerminationProtection", &[("EnableTerminationProtection", "false")]);
    ask("DeleteStack", &[]);
    let is_gone = || world.stacks().get(stack).is_none_or(|status| status == "DELETE_COMPLETE");
    wait_until(&format!("{stack} is deleted"), is_gone);
}

#[test]
fn stacks_that_were_deleted_by_hand_do_not_stop_a_destroy() {
    let world = World::of_golden("minimal");
    let before = world.census();
    for gone in [&["minimal-pool-cpu"][..], &["minimal-pool-cpu", "minimal-control-plane"]] {
        world.up([]).expect_code(0);
        for stack in gone {
            delete_by_hand(&world, stack);
        }
        world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("minimal is deleted");
        assert_eq!(world.census(), before, "without {gone:?}");
        world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("nothing of minimal is left");
    }
}

#[test]
fn a_mount_target_of_our_own_files_blocks_nothing() {
    let world = World::of_golden("paddle-tutorial");
    world.up([]).expect_code(0);
    let name = world.cluster();
    delete_by_hand(&world, &format!("{name}-storage"));
    let systems = world.file_systems();
    let mount = world.make_mount_target(&systems[0], &world.tagged("DescribeSubnets", "subnetId"), &[]);
    world.run(["destroy", "--plan-only"]).expect_code(0).expect_stdout(&mount);
    let outcome = world.run(["destroy", "--yes"]).expect_code(0);
    outcome.expect_stderr(&format!("deleted mount target {mount} of {}", systems[0]));
    assert_eq!(world.file_systems(), systems);
}

#[test]
fn a_pool_that_is_no_longer_in_cluster_yaml_is_deleted() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace("name: cpu", "name: renamed"));
    world.run(["destroy", "--plan-only"]).expect_code(0).expect_stdout("minimal-pool-cpu");
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(world.census(), before);
}

#[test]
fn objects_are_found_at_the_s3_uri_of_a_deleted_stack() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    for stack in ["minimal-pool-cpu", "minimal-control-plane", "minimal-network"] {
        delete_by_hand(&world, stack);
    }
    assert!(world.census()["objects"] > 0);
    let outcome = world.run(["destroy", "--yes"]).expect_code(0);
    outcome.expect_stderr("uploaded assets from s3://");
    assert_eq!(world.census(), before);
}

#[test]
fn objects_are_found_at_the_s3_uri_of_the_user() {
    let world = World::of_golden("minimal");
    let before = world.census();
    // Of a cluster whose stacks AWS has forgotten.
    let key = format!("/{}/clusters/minimal/controller/{}.ign", world.bucket(), "0a".repeat(64));
    assert_eq!(world.aws().send("s3", "us-west-2", "PUT", &key, "x").status(), 200);
    let outcome = world.run(["destroy", "--yes"]).expect_code(0);
    outcome.expect_stderr("the S3 URI of minimal's uploads is not known; `--s3-uri s3://BUCKET/PREFIX`");
    assert_eq!(world.census()["objects"], before["objects"] + 1);
    let place = format!("s3://{}/clusters", world.bucket());
    let outcome = world.run(["destroy", "--yes", "--s3-uri", &place]).expect_code(0);
    outcome.expect_stderr("uploaded assets from s3://");
    assert_eq!(world.census(), before);
    world
        .run(["destroy", "--yes", "--s3-uri", &place])
        .expect_code(0)
        .expect_stderr("nothing of minimal is left");
}

#[test]
fn destroy_works_with_unreadable_credentials() {
    let world = World::of_golden("minimal");
    let before = world.census();
    let key = world.workspace.credentials().join("admin-key.pem");
    let good = std::fs::read(&key).unwrap();
    for broken in [Some("scratched"), None] {
        world.up([]).expect_code(0);
        match broken {
            Some(text) => std::fs::write(&key, text).unwrap(),
            None => std::fs::remove_file(&key).unwrap(),
        }
        let outcome = world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("minimal is deleted");
        outcome.expect_stderr("warning: skipping the Kubernetes API: ");
        assert_eq!(world.census(), before);
        std::fs::write(&key, &good).unwrap();
    }
}

#[test]
fn while_a_pool_exists_nothing_that_it_needs_is_deleted() {
    let world = World::of_golden("minimal");
    let before = world.census();
    let zone = world.make_zone("example.com", false);
    world.workspace.edit(|text| format!("{text}encryptDisksWithKmsKey: true\n"));
    world.up([]).expect_code(0);
    world.api.set_unreachable(true);
    let owned = "kubernetes.io/cluster/minimal";
    world.make_balancer("a1b2c3", &[(owned, "owned"), ("kubernetes.io/service-name", "default/web")]);
    let whole = world.census();
    world.control(json!({"fail_delete": {"minimal-pool-cpu/Nodes": "it is busy"}}));
    let outcome = world.run(["destroy", "--yes"]).expect_code(7).expect_stderr("it is busy");
    assert!(!outcome.stderr.contains("deleting what Kubernetes created"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("objects below"), "{}", outcome.stderr);
    assert!(world.records(&zone).contains("minimal.example.com"));
    for kind in ["objects", "grants", "load balancers", "autoscaling groups"] {
        assert_eq!(world.census()[kind], whole[kind], "{kind}");
    }
    world.control(json!({}));
    world.run(["destroy", "--yes"]).expect_code(0);
    assert!(!world.records(&zone).contains("minimal.example.com"));
    for kind in ["objects", "grants", "load balancers", "autoscaling groups"] {
        assert_eq!(world.census()[kind], before[kind], "{kind}");
    }
}

/// Every line, each of which is an event.
fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn events_are_one_per_line_and_the_last_reports_the_end() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let plan = world.run(["destroy", "--plan-only", "--output", "json"]).expect_code(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    for list in ["delete", "keep", "foreign"] {
        let items = plan[list].as_array().unwrap();
        assert!(
            items
                .iter()
                .all(|item| item["kind"].is_string() && item["id"].is_string() && item["why"].is_string())
        );
    }
    assert_eq!(plan["foreign"], Value::Array(Vec::new()), "{plan:#}");

    let subnet = world.tagged("DescribeSubnets", "subnetId");
    let theirs = world.make_interface(&subnet, "AWS Lambda VPC ENI-report-1", &[]);
    let outcome = world.run(["destroy", "--yes", "--output", "json"]).expect_code(7);
    let held = events(&outcome.stdout);
    assert!(held.iter().all(|event| event["time"].is_string() && event["type"].is_string()));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &held {
        *kinds.entry(event["type"].as_str().unwrap()).or_default() += 1;
    }
    assert!(kinds["stage"] >= 4 && kinds["stack-began"] >= 3 && kinds["resource"] > 20, "{kinds:?}");
    let last = held.last().unwrap();
    assert_eq!((&last["type"], &last["complete"]), (&"destroyed".into(), &false.into()), "{last:#}");
    assert_eq!(last["cluster"], "minimal");
    assert_eq!(last["stuck"][0]["stack"], "minimal-network");
    let reasons = last["stuck"][0]["resources"].as_array().unwrap();
    assert!(
        reasons.iter().any(|left| left["id"] == subnet.as_str()
            && left["reason"].as_str().unwrap().contains("DependencyViolation")),
        "{last:#}"
    );
    assert_eq!(last["blockers"][0], format!("{theirs} in {subnet}: Lambda function report"));

    world.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &theirs)]);
    let outcome = world.run(["destroy", "--yes", "--output", "json"]).expect_code(0);
    let last = events(&outcome.stdout).pop().unwrap();
    assert_eq!((&last["type"], &last["complete"]), (&"destroyed".into(), &true.into()), "{last:#}");
    assert!(last["kept"].as_array().unwrap().iter().any(|item| item["kind"] == "disk-snapshot"), "{last:#}");

    // Nothing to do is an end like any other.
    let outcome = world.run(["destroy", "--yes", "--output", "json"]).expect_code(0);
    let only = events(&outcome.stdout);
    assert_eq!((only.len(), &only[0]["complete"]), (1, &true.into()), "{only:#?}");
}
