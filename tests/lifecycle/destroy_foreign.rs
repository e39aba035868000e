//! Foreign resources in a cluster's network: what Kubernetes created for the cluster is deleted, everything else is kept, is named with its
//! owner, and blocks only what it really holds.

use crate::support::foreign_resources::CLASSIC_BALANCERS;
use crate::support::outcome::Outcome;
use crate::support::world::World;

fn minimal() -> World {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world
}

/// A destroy that a foreign resource blocks: the network's stack is left as AWS left it, everything else is deleted.
#[track_caller]
fn expect_blocked(world: &World, arguments: &[&str]) -> Outcome {
    let outcome = world.run(["destroy", "--yes"].into_iter().chain(arguments.iter().copied())).expect_code(7);
    let stacks: Vec<(String, String)> = world.stacks().into_iter().collect();
    // Nothing was left out of its deletion: that would lose what it still holds.
    assert_eq!(stacks, [("minimal-network".to_owned(), "DELETE_FAILED".to_owned())]);
    assert_eq!(world.census()["autoscaling groups"], 0);
    outcome
        .expect_stderr("stack minimal-network could not be deleted")
        .expect_stderr("DependencyViolation")
        .expect_stderr("then run `infra destroy` again")
}

/// Nothing blocks the destroy any more.
#[track_caller]
fn expect_deleted_now(world: &World) {
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("minimal is deleted");
    assert_eq!(world.stacks().len(), 0);
}

#[test]
fn classic_load_balancers_of_services_are_deleted_and_foreign_ones_are_kept() {
    let world = minimal();
    let subnet = world.tagged("DescribeSubnets", "subnetId");
    let owned = "kubernetes.io/cluster/minimal";
    world.make_classic_balancer(
        "a1b2c3",
        &subnet,
        &[(owned, "owned"), ("kubernetes.io/service-name", "default/web")],
    );
    world.make_classic_balancer("legacy", &subnet, &[("team", "other")]);
    world.make_classic_balancer("neighbour", &subnet, &[("kubernetes.io/cluster/minimal2", "owned")]);
    // What a cluster may only use does not belong to it.
    world.make_classic_balancer("common", &subnet, &[(owned, "shared")]);
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    let (goes, foreign) = plan.stdout.split_once("Foreign resources in the network of minimal").unwrap();
    assert!(goes.contains("a1b2c3") && goes.contains("of Service default/web"), "{}", plan.stdout);
    for name in ["legacy", "neighbour", "common"] {
        assert!(foreign.contains(name) && !goes.contains(name), "{name}: {}", plan.stdout);
    }

    let outcome = expect_blocked(&world, &[]).expect_stderr("deleted load balancer a1b2c3");
    assert_eq!(world.classic_balancers(), ["legacy", "neighbour", "common"]);
    for name in ["legacy", "neighbour", "common"] {
        assert!(outcome.stderr.contains(&format!("blocked by: load balancer {name}")), "{}", outcome.stderr);
        world.balancers(CLASSIC_BALANCERS, "DeleteLoadBalancer", &[("LoadBalancerName", name)]);
    }
    expect_deleted_now(&world);
}

#[test]
fn foreign_mount_targets_are_deleted_only_with_the_flag() {
    let world = minimal();
    let before = world.tagged("DescribeSubnets", "subnetId");
    let theirs = world.make_file_system();
    let mount = world.make_mount_target(&theirs, &before, &[]);
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    assert!(
        plan.stdout.split_once("Foreign resources in the network of minimal").unwrap().1.contains(&mount),
        "{}",
        plan.stdout
    );
    expect_blocked(&world, &[])
        .expect_stderr(&format!("blocked by: mount target {mount} of {theirs} in {before}"))
        .expect_stderr("`--delete-foreign-mount-targets` deletes it");
    assert_eq!(world.mount_targets(&theirs), [mount.as_str()]);

    let plan = world.run(["destroy", "--plan-only", "--delete-foreign-mount-targets"]).expect_code(0);
    assert!(!plan.stdout.contains("Foreign resources in the network of minimal"), "{}", plan.stdout);
    plan.expect_stdout(&mount);
    let outcome = world.run(["destroy", "--yes", "--delete-foreign-mount-targets"]).expect_code(0);
    outcome.expect_stderr(&format!("deleted mount target {mount} of {theirs}"));
    assert_eq!(world.mount_targets(&theirs), [""; 0]);
    assert_eq!(world.file_systems(), [theirs], "their files stay whatever is asked for");
}

#[test]
fn foreign_network_interfaces_are_named_with_their_owner() {
    let world = minimal();
    let subnet = world.tagged("DescribeSubnets", "subnetId");
    let ours = world.make_interface(&subnet, "", &[("infra:cluster", "minimal")]);
    let neighbours = world.make_interface(&subnet, "etcd", &[("infra:cluster", "minimal2")]);
    let function = world.make_interface(&subnet, "AWS Lambda VPC ENI-report-0a1b2c3d", &[]);
    let nobodys = world.make_interface(&subnet, "", &[]);
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    let (goes, foreign) = plan.stdout.split_once("Foreign resources in the network of minimal").unwrap();
    assert!(goes.contains(&ours), "{}", plan.stdout);
    assert_eq!(foreign.matches("eni-").count(), 3, "machines and load balancers have theirs: {foreign}");

    expect_blocked(&world, &[])
        .expect_stderr(&format!("deleted network interface {ours}"))
        .expect_stderr(&format!("blocked by: {neighbours} in {subnet}: \"etcd\""))
        .expect_stderr(&format!("blocked by: {function} in {subnet}: Lambda function report"))
        .expect_stderr(&format!("blocked by: {nobodys} in {subnet}: an unknown owner"));
    assert_eq!(world.interfaces(), [neighbours.as_str(), &function, &nobodys]);
    for id in [&neighbours, &function, &nobodys] {
        world.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", id)]);
    }
    expect_deleted_now(&world);
}

#[test]
fn an_interruption_ends_the_deletion_of_what_kubernetes_created() {
    let world = minimal();
    let group = world.make_group_of_kubernetes();
    let subnet = world.tagged("DescribeSubnets", "subnetId");
    // Another user uses the security group, so that it cannot be deleted.
    let user = [("SubnetId", subnet.as_str()), ("SecurityGroupId.1", group.as_str())];
    let user = world.made("CreateNetworkInterface", &user, "networkInterfaceId");
    let mut running = world.infra(["destroy", "--yes"]).spawn();
    running.wait_for_stderr("deleting what Kubernetes created in the network");
    running.wait_for_stderr(&group);
    running.interrupt();
    let outcome = running.wait().expect_code(5);
    outcome.expect_stderr("the deletion of what Kubernetes created in the network");
    let left: Vec<(String, String)> = world.stacks().into_iter().collect();
    assert_eq!(left, [("minimal-network".to_owned(), "CREATE_COMPLETE".to_owned())]);
    let outcome = world.run(["destroy", "--yes", "--timeout", "1s"]).expect_code(5);
    outcome.expect_stderr("the time limit was reached");
    assert_eq!(world.stacks()["minimal-network"], "CREATE_COMPLETE");
    world.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &user)]);
    expect_deleted_now(&world);
}

#[test]
fn a_foreign_security_group_with_a_rule_for_ours_is_named() {
    let world = minimal();
    let (vpc, ours) =
        (world.tagged("DescribeVpcs", "vpcId"), world.tagged("DescribeSecurityGroups", "groupId"));
    let theirs = world.make_group(&vpc, "database", Some(&ours));
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    plan.expect_stdout(&theirs).expect_stdout(&format!("database, its rules name {ours}"));
    expect_blocked(&world, &[])
        .expect_stderr(&format!("{ours} has a dependent object"))
        .expect_stderr(&format!("blocked by: security group {theirs}: database, its rules name {ours}"));
    assert!(world.ec2("DescribeSecurityGroups", &[("GroupId.1", &theirs)]).contains(&ours), "it was changed");
    world.ec2("DeleteSecurityGroup", &[("GroupId", &theirs)]);
    expect_deleted_now(&world);
}

#[test]
fn foreign_resources_in_an_adopted_network_block_nothing() {
    let world = World::of_golden("adopted");
    let text = world.workspace.read("cluster.yaml");
    let word = |prefix: &str| {
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
        words.into_iter().filter(|word| word.starts_with(prefix)).map(str::to_owned).collect::<Vec<_>>()
    };
    let (vpc, subnets, system) = (word("vpc-").remove(0), word("subnet-"), word("fs-").remove(0));
    // The file system had a mount target in one of the availability zones, and the stack creates the other.
    let own_group = world.make_group(&vpc, "files", None);
    let mount = world.make_mount_target(&system, &subnets[2], &[&own_group]);
    let mut before = world.census();
    world.up([]).expect_code(0);
    assert_eq!(world.mount_targets(&system).len(), 2);
    world.make_classic_balancer("theirs", &subnets[0], &[("kubernetes.io/cluster/other", "owned")]);
    let theirs = world.make_interface(&subnets[2], "etcd", &[("infra:cluster", "other")]);
    // That of the load balancer too.
    *before.get_mut("interfaces").unwrap() += 2;
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    assert!(
        !plan.stdout.contains("Foreign resources"),
        "they block nothing that is deleted: {}",
        plan.stdout
    );

    // Only a user of a security group of the cluster blocks it.
    let nodes = world.tagged("DescribeSecurityGroups", "groupId");
    let guest = world.make_group(&vpc, "guest", Some(&nodes));
    let outcome = world.run(["destroy", "--yes", "--delete-foreign-mount-targets"]).expect_code(7);
    outcome.expect_stderr(&format!("blocked by: security group {guest}: guest, its rules name {nodes}"));
    world.ec2("DeleteSecurityGroup", &[("GroupId", &guest)]);
    world.run(["destroy", "--yes", "--delete-foreign-mount-targets"]).expect_code(0);
    assert_eq!(world.census(), before);
    assert_eq!(world.mount_targets(&system), [mount], "it was there before the cluster");
    assert_eq!(world.classic_balancers(), ["theirs"]);
    assert!(world.interfaces().contains(&theirs));
}
