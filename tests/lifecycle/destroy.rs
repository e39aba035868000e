//! Destroying clusters: everything of theirs is deleted, data only if its name is confirmed, and foreign resources are named.

use serde_json::{Value, json};

use crate::support::element;
use crate::support::foreign_resources::BALANCERS;
use crate::support::reading::is_reading;
use crate::support::world::World;

/// A golden cluster is created and deleted; afterwards there is what was there before, and the files.
fn live_and_die(cluster: &str, members: usize, makes_files: bool) {
    let world = World::of_golden(cluster);
    let mut before = world.census();
    world.up([]).expect_code(0);
    assert_ne!(world.census(), before);
    let outcome = world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("is deleted");
    if makes_files {
        *before.get_mut("file systems").unwrap() += 1;
        before.insert("mount targets".to_owned(), 0);
        let _ = outcome.expect_stderr("uses them again");
    }
    assert_eq!(world.census(), before);
    assert_eq!(world.snapshots(), members, "etcd's disks are kept as snapshots");
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("is left to delete");
    world.run(["status"]).expect_code(3).expect_stdout("there is no such cluster");
}

#[test]
fn minimal() {
    live_and_die("minimal", 1, false);
}

#[test]
fn ha_gpu_efs() {
    live_and_die("ha-gpu-efs", 3, true);
}

#[test]
fn private() {
    live_and_die("private", 3, false);
}

#[test]
fn adopted() {
    live_and_die("adopted", 3, false);
}

#[test]
fn paddle_tutorial() {
    live_and_die("paddle-tutorial", 1, true);
}

#[test]
fn tensorflow_tutorial() {
    live_and_die("tensorflow-tutorial", 1, true);
}

#[test]
fn data_is_deleted_only_after_its_name_is_confirmed() {
    let world = World::of_golden("paddle-tutorial");
    world.up([]).expect_code(0);
    let name = world.cluster();
    let before = world.census();
    world.proxy.clear();
    world.run(["destroy"]).expect_code(1).expect_stderr("`--yes` answers yes");
    world
        .run(["destroy", "--delete-data", "--yes"])
        .expect_code(1)
        .expect_stderr("`--confirm NAME` gives the answer");
    world
        .run(["destroy", "--delete-data", "--confirm", "other"])
        .expect_code(1)
        .expect_stderr("the cluster is");
    let plan = world.run(["destroy", "--plan-only", "--output", "json"]).expect_code(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    let has = |list: &str, key: &str, value: &str| {
        plan[list].as_array().unwrap().iter().any(|item| item[key] == value)
    };
    assert!(has("keep", "kind", "file-system"), "{plan:#}");
    assert!(has("delete", "id", &format!("{name}-network")), "{plan:#}");
    assert!(world.proxy.operations().iter().all(|operation| is_reading(operation)), "nothing was changed");
    assert_eq!(world.census(), before);

    world
        .run(["destroy", "--delete-data", "--confirm", &name])
        .expect_code(0)
        .expect_stderr("deleted file system");
    assert_eq!(world.census()["file systems"], 0);
    assert_eq!(world.snapshots(), 0);
}

#[test]
fn the_plan_lists_deletions_in_the_order_they_happen() {
    let world = World::of_golden("paddle-tutorial");
    world.make_zone("example.com", false);
    world.up([]).expect_code(0);
    let plan = world.run(["destroy", "--plan-only", "--output", "json"]).expect_code(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    let name = world.cluster();
    let deleted = plan["delete"].as_array().unwrap().iter().map(|item| {
        let (kind, id) = (item["kind"].as_str().unwrap(), item["id"].as_str().unwrap());
        if kind == "stack" { id.strip_prefix(&format!("{name}-")).unwrap() } else { kind }
    });
    assert_eq!(
        deleted.collect::<Vec<_>>(),
        [
            "pool-workers",
            "public-record",
            "control-plane",
            "private-records",
            "storage",
            "uploaded-assets",
            "network"
        ]
    );
}

#[test]
fn a_kept_file_system_can_be_deleted_later() {
    let world = World::of_golden("paddle-tutorial");
    world.up([]).expect_code(0);
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!((world.census()["file systems"], world.snapshots()), (1, 1));
    let name = world.cluster();
    world.run(["destroy", "--delete-data", "--confirm", &name]).expect_code(0);
    assert_eq!((world.census()["file systems"], world.snapshots()), (0, 0));
}

#[test]
fn destroy_needs_nothing_but_the_name_of_the_cluster() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    std::fs::remove_file(world.workspace.path("cluster.yaml")).unwrap();
    std::fs::remove_dir_all(world.workspace.credentials()).unwrap();
    world.infra(["destroy", "--yes"]).run().expect_code(2).expect_stderr("cluster.yaml");
    world
        .infra(["destroy", "--yes", "--cluster-name", "minimal", "--region", "us-west-2"])
        .run()
        .expect_code(0);
    std::fs::write(world.workspace.path("cluster.yaml"), "region: us-west-2\n").unwrap();
    assert_eq!(world.census(), before);
}

#[test]
fn resources_that_kubernetes_created_in_the_network_are_deleted() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    let owned = "kubernetes.io/cluster/minimal";
    world.make_balancer("a1b2c3", &[(owned, "owned"), ("kubernetes.io/service-name", "default/web")]);
    world.make_group_of_kubernetes();
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    plan.expect_stdout("of Service default/web").expect_stdout("k8s-elb-a1b2c3, created by Kubernetes");
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(world.census(), before);
}

#[test]
fn services_are_deleted_through_the_api_first() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.api.set_services(vec![
        json!({"metadata": {"namespace": "default", "name": "web"}, "spec": {"type": "LoadBalancer"}}),
        json!({"metadata": {"namespace": "default", "name": "kubernetes"}, "spec": {"type": "ClusterIP"}}),
    ]);
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("deleted Service default/web");
    let requests = world.api.requests();
    assert_eq!(requests.iter().filter(|request| request.starts_with("DELETE")).count(), 1, "{requests:?}");
}

#[test]
fn destroy_works_without_the_kubernetes_api() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    world.api.set_unreachable(true);
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("deleted by tag instead");
    assert_eq!(world.census(), before);
}

#[test]
fn foreign_resources_are_kept_and_named() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.make_balancer("theirs", &[("team", "other")]);
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    plan.expect_stdout("theirs").expect_stdout("has no tag of this cluster");
    let outcome = world.run(["destroy", "--yes"]).expect_code(7);
    outcome
        .expect_stderr("stack minimal-network could not be deleted")
        .expect_stderr("load balancer theirs")
        .expect_stderr("then run `infra destroy` again");
    let left = world.census();
    assert_eq!(left["load balancers"], 1);
    assert_eq!(left["autoscaling groups"], 0);
    // Once it is gone, the rest is deleted.
    let list = world.aws().post(
        "elasticloadbalancing",
        "us-west-2",
        &[("Action", "DescribeLoadBalancers"), ("Version", BALANCERS)],
    );
    let arn = element(&list, "LoadBalancerArn").unwrap().to_owned();
    let form = [("Action", "DeleteLoadBalancer"), ("Version", BALANCERS), ("LoadBalancerArn", arn.as_str())];
    world.aws().post("elasticloadbalancing", "us-west-2", &form);
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("is deleted");
}

#[test]
fn a_record_is_deleted_only_if_it_points_at_this_cluster() {
    let world = World::of_golden("minimal");
    let zone = world.make_zone("example.com", false);
    world.up([]).expect_code(0);
    assert!(world.records(&zone).contains("minimal.example.com"));
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("deleted the record of minimal.example.com");
    assert!(!world.records(&zone).contains("minimal.example.com"));

    let other = World::of_golden("minimal");
    let zone = other.make_zone("example.com", false);
    other.up([]).expect_code(0);
    // Another user pointed the name elsewhere meanwhile.
    other.delete_records(&zone, "minimal.example.com");
    other.put_record(&zone, "minimal.example.com", "A", "192.0.2.7");
    other.run(["destroy", "--yes"]).expect_code(0).expect_stdout("which is not this cluster");
    assert!(other.records(&zone).contains("192.0.2.7"));
}

#[test]
fn foreign_objects_below_the_same_prefix_are_kept() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let aws = world.aws();
    let put = |key: &str| {
        let answer = aws.send("s3", "us-west-2", "PUT", &format!("/{}/{key}", world.bucket()), "x");
        assert_eq!(answer.status(), 200, "{}", answer.text());
    };
    put("clusters/minimal2/controller/1.ign");
    put("clusters/notes.txt");
    put("clusters/minimal/snapshots/2026-11-16.db");
    world.run(["destroy", "--yes"]).expect_code(0);
    let listed = aws.send("s3", "us-west-2", "GET", &format!("/{}?list-type=2", world.bucket()), "").text();
    let keys: Vec<&str> = listed.split("<Key>").skip(1).map(|part| part.split('<').next().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "clusters/minimal/snapshots/2026-11-16.db",
            "clusters/minimal2/controller/1.ign",
            "clusters/notes.txt"
        ]
    );
}

#[test]
fn foreign_records_in_the_private_hosted_zone_do_not_block_its_deletion() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    let zones = world.aws().send("route53", "us-west-2", "GET", "/2013-04-01/hostedzone", "").text();
    let zone = element(&zones, "Id").unwrap().rsplit('/').next().unwrap().to_owned();
    world.put_record(&zone, "board.minimal.infra.internal", "A", "10.0.0.9");
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(world.census(), before);
}

#[test]
fn destroy_can_begin_from_any_state() {
    // Half of a cluster: the pool's stack failed, and the rest was never created.
    let world = World::alone("minimal");
    let before = world.census();
    world.control(json!({"fail_create": {"Controllers": "no capacity"}}));
    world.up([]).expect_code(6);
    world.control(json!({}));
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(world.census(), before);

    for status in [
        "ROLLBACK_FAILED",
        "UPDATE_ROLLBACK_FAILED",
        "DELETE_FAILED",
        "UPDATE_ROLLBACK_COMPLETE",
        "CREATE_FAILED",
    ] {
        world.up([]).expect_code(0);
        world.control(json!({"force_status": {"minimal-pool-cpu": status, "minimal-control-plane": status}}));
        world.run(["destroy", "--yes"]).expect_code(0);
        world.control(json!({}));
        assert_eq!(world.census(), before, "{status}");
    }
}

#[test]
fn a_failed_deletion_is_explained_and_the_next_run_resumes_it() {
    let world = World::alone("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    world.control(json!({"fail_delete": {"PrivateZone": "it is busy"}}));
    let outcome = world.run(["destroy", "--yes"]).expect_code(7);
    outcome
        .expect_stderr("stack minimal-network could not be deleted")
        .expect_stderr("PrivateZone")
        .expect_stderr("it is busy");
    world.control(json!({}));
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(world.census(), before);
}

#[test]
fn an_interrupted_destroy_is_resumed_by_the_next_run() {
    let world = World::alone("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    world.control(json!({"hold": ["minimal-pool-cpu"]}));
    let mut running = world.infra(["destroy", "--yes"]).spawn();
    running.wait_for_stderr("delete begins");
    running.interrupt();
    running.wait().expect_code(5).expect_stderr("run the same command again");
    world.control(json!({}));
    world.run(["destroy", "--yes"]).expect_code(0);
    assert_eq!(world.census(), before);
}
