//! Every kind of resource fails once: while it is created, and while it is changed. What is reported, what is finished, what is skipped, and
//! that the next run fixes it and leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::in_parallel;
use crate::support::outcome::Outcome;
use crate::support::world::World;

/// Each kind of resource, and what the first of its kind is in the words of cluster.yaml.
const KINDS: [(&str, &str); 25] = [
    ("AWS::AutoScaling::AutoScalingGroup", "etcd member 0, t3.medium in us-west-2a"),
    ("AWS::EC2::EIP", "etcd member 0"),
    ("AWS::EC2::EIPAssociation", "etcd member 0"),
    ("AWS::EC2::InternetGateway", "the VPC's internet gateway"),
    ("AWS::EC2::LaunchTemplate", "controllers, 1 × t3.medium in us-west-2a"),
    ("AWS::EC2::NetworkInterface", "etcd member 0"),
    ("AWS::EC2::Route", "routes of the public subnets"),
    ("AWS::EC2::RouteTable", "routes of the public subnets"),
    ("AWS::EC2::SecurityGroup", "security group of controllers"),
    ("AWS::EC2::SecurityGroupIngress", "the way from controllers to controllers, port 10250"),
    ("AWS::EC2::Subnet", "public subnet in us-west-2a"),
    ("AWS::EC2::SubnetRouteTableAssociation", "routes of the public subnets"),
    ("AWS::EC2::VPC", "VPC 10.0.0.0/16"),
    ("AWS::EC2::VPCEndpoint", "the VPC's way to S3"),
    ("AWS::EC2::VPCGatewayAttachment", "the VPC's internet gateway"),
    ("AWS::EC2::Volume", "etcd member 0, volume of 20 GiB in us-west-2a"),
    ("AWS::EFS::FileSystem", "the shared file system"),
    ("AWS::EFS::MountTarget", "mount target in us-west-2a"),
    ("AWS::ElasticLoadBalancingV2::Listener", "the API's internal load balancer"),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "the API's internal load balancer"),
    ("AWS::ElasticLoadBalancingV2::TargetGroup", "the API's internal load balancer"),
    ("AWS::IAM::InstanceProfile", "the controllers' role"),
    ("AWS::IAM::Role", "the controllers' role"),
    ("AWS::Route53::HostedZone", "private hosted zone paddle-cluster.infra.internal"),
    ("AWS::Route53::RecordSet", "etcd member 0"),
];

/// Kinds with nothing that cluster.yaml could change while the cluster lives.
const UNCHANGEABLE: [&str; 7] = [
    "AWS::EC2::EIPAssociation",
    "AWS::EC2::Route",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::EFS::MountTarget",
    "AWS::IAM::InstanceProfile",
    "AWS::Route53::RecordSet",
];

/// The kinds of resources in each stack of a golden cluster, by the name of the stack's file.
fn kinds_by_stack(cluster: &str) -> BTreeMap<String, BTreeSet<String>> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters").join(cluster);
    let files = fs::read_dir(golden.join("expected/stacks")).unwrap().map(|entry| entry.unwrap().path());
    let stacks =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).map(|path| {
            let template: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let resources = template["Resources"].as_object().unwrap().values();
            let kinds = resources.map(|resource| resource["Type"].as_str().unwrap().to_owned()).collect();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), kinds)
        });
    stacks.collect()
}

/// What happens to each stack of a new cluster when a kind of resource cannot be created; none for a stack that was not begun.
fn expected_statuses(kind: &str) -> BTreeMap<String, Option<&'static str>> {
    let kinds = kinds_by_stack("paddle-tutorial");
    let finished = |stack: &str| !kinds[stack].contains(kind);
    let statuses = kinds.keys().map(|stack| {
        let needs: &[&str] = match stack.as_str() {
            "network" => &[],
            "storage" | "control-plane" => &["network"],
            _ => &["network", "storage", "control-plane"],
        };
        let status = match (needs.iter().all(|need| finished(need)), finished(stack)) {
            (false, _) => None,
            (true, true) => Some("CREATE_COMPLETE"),
            (true, false) => Some("ROLLBACK_COMPLETE"),
        };
        (stack.clone(), status)
    });
    statuses.collect()
}

/// How many things of each sort an account holds.
fn inventory(world: &World) -> Vec<(&'static str, usize)> {
    let aws = world.aws();
    let ec2 = |action: &'static str, element: &str| {
        let answer = aws.post("ec2", &aws.region, &[("Action", action), ("Version", "2016-11-15")]);
        (action, answer.matches(&format!("<{element}>")).count())
    };
    let query = |service: &str, version: &str, action: &'static str, element: &str| {
        let answer = aws.post(service, &aws.region, &[("Action", action), ("Version", version)]);
        (action, answer.matches(&format!("<{element}>")).count())
    };
    let get = |what: &'static str, service: &str, path: &str, part: &str| {
        (what, aws.send(service, &aws.region, "GET", path, "").text().matches(part).count())
    };
    vec![
        ec2("DescribeVpcs", "vpcId"),
        ec2("DescribeSubnets", "subnetId"),
        ec2("DescribeSecurityGroups", "groupDescription"),
        ec2("DescribeRouteTables", "routeTableId"),
        ec2("DescribeInternetGateways", "internetGatewayId"),
        ec2("DescribeVpcEndpoints", "vpcEndpointId"),
        ec2("DescribeVolumes", "availabilityZone"),
        ec2("DescribeNetworkInterfaces", "networkInterfaceId"),
        ec2("DescribeAddresses", "allocationId"),
        ec2("DescribeLaunchTemplates", "launchTemplateId"),
        query("autoscaling", "2011-01-01", "DescribeAutoScalingGroups", "AutoScalingGroupARN"),
        query("elasticloadbalancing", "2015-12-01", "DescribeLoadBalancers", "LoadBalancerArn"),
        query("elasticloadbalancing", "2015-12-01", "DescribeTargetGroups", "TargetGroupArn"),
        query("iam", "2010-05-08", "ListRoles", "RoleName"),
        query("iam", "2010-05-08", "ListInstanceProfiles", "InstanceProfileName"),
        get("file systems", "elasticfilesystem", "/2015-02-01/file-systems", "\"FileSystemId\""),
        get("hosted zones", "route53", "/2013-04-01/hostedzone", "<HostedZone>"),
    ]
}

/// What failed and what the user is told about it, and nothing about what was only cancelled with it.
#[track_caller]
fn expect_failure(outcome: Outcome, reason: &str, description: &str) {
    let outcome = outcome.expect_code(6).expect_stderr(reason);
    let told = format!(" failed (ROLLBACK_COMPLETE): {description}");
    let error = outcome.stderr.lines().find(|line| line.contains(&told));
    assert!(error.is_some_and(|line| line.ends_with(reason)), "'{told}' is not in:\n{}", outcome.stderr);
    assert!(!outcome.stderr.contains("cancelled"), "{}", outcome.stderr);
}

#[test]
fn the_tested_resource_types_are_those_of_a_full_cluster() {
    let golden: BTreeSet<String> = kinds_by_stack("ha-gpu-efs").into_values().flatten().collect();
    let listed: BTreeSet<String> = KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    assert_eq!(listed, golden);
    let smaller: BTreeSet<String> = kinds_by_stack("paddle-tutorial").into_values().flatten().collect();
    assert_eq!(smaller, golden, "the smaller cluster is used for it here");
}

#[test]
fn a_failed_creation_is_named_and_done_by_the_next_run() {
    let undisturbed = World::of_golden("paddle-tutorial");
    undisturbed.up([]).expect_code(0);
    let whole = inventory(&undisturbed);
    assert!(whole.iter().all(|(_, count)| *count > 0), "{whole:?}");
    in_parallel(KINDS, |(kind, description)| {
        let world = World::of_golden("paddle-tutorial");
        let reason = format!("{kind} is missing from this test");
        world.control(json!({"fail_create": {kind: reason}}));
        let failed = world.up([]);
        for (stack, status) in expected_statuses(kind) {
            let stack = format!("paddle-cluster-{stack}");
            assert_eq!(world.aws().stack_status(&stack).as_deref(), status, "{stack} without {kind}");
            if status.is_none() {
                failed.clone().expect_stderr(&format!("{stack}: skipped, because paddle-cluster-"));
            }
        }
        expect_failure(failed, &reason, description);

        world.control(json!({}));
        let fixed = world.up([]).expect_code(0);
        let why =
            fixed.stderr.lines().find(|line| line.contains("an earlier attempt failed and is deleted now"));
        assert!(why.is_some_and(|line| line.contains(&reason)), "{}", fixed.stderr);
        assert_eq!(inventory(&world), whole, "something of the failed attempt is left, or missing: {kind}");
    });
}

/// A change of cluster.yaml that touches every kind that can be changed; each number gives another.
fn edit_everything(world: &World, number: usize) {
    world.workspace.edit(|text| {
        let kept = |line: &&str| !["sshAllowedCIDRs:", "tags:"].iter().any(|key| line.starts_with(key));
        let lines = text.lines().filter(kept).map(|line| match line.split(':').next().unwrap() {
            "etcd" => format!("etcd: {{count: 1, volumeGiB: {}}}", 20 + number),
            "storage" => {
                let lifecycle = ["30d", "60d"][number % 2];
                format!("storage: {{efs: {{mountPath: /efs, lifecycle: {lifecycle}}}}}")
            }
            _ => line.to_owned(),
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        format!("{lines}\nsshAllowedCIDRs: [192.0.{number}.0/24]\ntags: {{team: number-{number}}}\n")
    });
}

#[test]
fn one_edit_of_cluster_yaml_changes_every_updatable_resource_type() {
    let world = World::of_golden("paddle-tutorial");
    world.up([]).expect_code(0);
    edit_everything(&world, 1);
    let changed = world.up(["--yes", "--output", "json"]).expect_code(0);
    let events = changed.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let touched: BTreeSet<String> = events
        .filter(|event| event["type"] == "resource")
        .map(|event| event["kind"].as_str().unwrap().to_owned())
        .collect();
    let expected = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| !UNCHANGEABLE.contains(kind));
    assert_eq!(touched, expected.map(str::to_owned).collect());
}

#[test]
fn a_failed_update_is_named_rolled_back_and_done_by_the_next_run() {
    let changeable = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| !UNCHANGEABLE.contains(kind));
    let changeable: Vec<&str> = changeable.collect();
    in_parallel(changeable.chunks(changeable.len().div_ceil(4)), |kinds| {
        let world = World::of_golden("paddle-tutorial");
        world.up([]).expect_code(0);
        for (number, kind) in (1..).zip(kinds) {
            edit_everything(&world, number);
            fail_to_change(&world, kind);
        }
    });
}

fn fail_to_change(world: &World, kind: &str) {
    let reason = format!("{kind} stays as it is today");
    // A rule for other addresses is another rule.
    let fault = if kind == "AWS::EC2::SecurityGroupIngress" { "fail_create" } else { "fail_update" };
    world.control(json!({fault: {kind: reason}}));
    let failed = world.up(["--yes"]).expect_code(6).expect_stderr(&reason);
    assert!(!failed.stderr.contains("cancelled"), "{}", failed.stderr);
    let error = failed.stderr.lines().find(|line| line.starts_with("error: stack ")).unwrap();
    assert!(error.contains("failed (UPDATE_ROLLBACK_COMPLETE): "), "{error}");
    let stack = error.split(' ').nth(2).unwrap();
    assert_eq!(world.aws().stack_status(stack).as_deref(), Some("UPDATE_ROLLBACK_COMPLETE"));

    world.control(json!({}));
    world.up(["--yes"]).expect_code(0);
    assert_eq!(world.aws().stack_status(stack).as_deref(), Some("UPDATE_COMPLETE"), "{kind}");
}

const VCPUS: &str = "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the \
                     specified instance type belongs to. Launching EC2 instance failed.";

/// What fails, in a cluster whose pool has machines of a type, why, and what the user is told to do.
const HINTS: [(&str, &str, &str, &str); 13] = [
    (
        "Nodes",
        "m5.xlarge",
        "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a).",
        "add instanceTypes or availabilityZones to the pool",
    ),
    ("Nodes", "m5.xlarge", VCPUS, "raise the quota L-1216C47A (on-demand standard machines"),
    ("Nodes", "g5.xlarge", VCPUS, "raise the quota L-DB2E81BA (on-demand G and VT machines"),
    ("Nodes", "p3dn.24xlarge", VCPUS, "raise the quota L-417A185B (on-demand P machines"),
    (
        "Nodes",
        "g5.xlarge, spot: true",
        "Max spot instance count exceeded. Launching EC2 instance failed.",
        "raise the quota L-3819A6DF (spot G and VT machines",
    ),
    (
        "Vpc",
        "m5.xlarge",
        "The maximum number of VPCs has been reached. (Service: Ec2, Status Code: 400)",
        "raise the quota L-F678F1CE",
    ),
    (
        "Vpc",
        "m5.xlarge",
        "User: arn:aws:iam::111122223333:user/ada is not authorized to perform: ec2:CreateVpc on resource: *",
        "allow ec2:CreateVpc",
    ),
    (
        "ControllerProfile",
        "m5.xlarge",
        "User: arn:aws:iam::111122223333:user/ada is not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:role/a",
        "iam:PassRole",
    ),
    (
        "PublicLoadBalancer",
        "m5.xlarge",
        "User: arn:aws:iam::111122223333:user/ada is not authorized to perform: iam:CreateServiceLinkedRole on resource: \
         arn:aws:iam::111122223333:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing",
        "`aws iam create-service-linked-role --aws-service-name elasticloadbalancing.amazonaws.com`",
    ),
    (
        "ControllerRole",
        "m5.xlarge",
        "Resource of type 'AWS::IAM::Role' with identifier 'controllers' already exists.",
        "delete it, or choose another clusterName",
    ),
    (
        "FileSystem",
        "m5.xlarge",
        "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab is disabled.",
        "enable the key in kmsKeyArn",
    ),
    (
        "MountTarget0",
        "m5.xlarge",
        "mount target already exists in this AZ (Service: AmazonElasticFileSystem; Error Code: MountTargetConflict)",
        "createMountTargets",
    ),
    ("FileSystem", "m5.xlarge", "FileSystemLimitExceeded", "raise the quota L-848C634D"),
];

#[test]
fn a_known_failure_comes_with_a_hint() {
    in_parallel(HINTS, |(resource, machines, reason, advice)| {
        let world = World::of_golden("paddle-tutorial");
        if machines != "m5.xlarge" {
            world.workspace.edit(|text| text.replace("m5.xlarge", machines));
        }
        world.control(json!({"fail_create": {resource: reason}}));
        let failed = world.up([]).expect_code(6).expect_stderr(reason);
        let help = failed.stderr.lines().find(|line| line.starts_with("help: ")).unwrap_or_default();
        assert!(help.contains(advice), "'{advice}' is not in '{help}':\n{}", failed.stderr);
    });
}

#[test]
fn failures_are_reported_as_events() {
    let world = World::of_golden("paddle-tutorial");
    let reason = "The maximum number of addresses has been reached.";
    world.control(json!({"fail_create": {"EtcdAddress0": reason}}));
    let failed = world.up(["--output", "json"]).expect_code(6);
    let events: Vec<Value> = failed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        let time = event["time"].as_str().unwrap_or_default();
        assert!(time.contains('T') && time.ends_with('Z') && event["type"].is_string(), "{event}");
    }
    let of_type = |name: &str| events.iter().filter(|event| event["type"] == name).collect::<Vec<_>>();
    let [report] = of_type("stack-failed")[..] else { panic!("{events:#?}") };
    assert_eq!(report["stack"], "paddle-cluster-control-plane");
    assert_eq!(report["status"], "ROLLBACK_COMPLETE");
    assert_eq!(report["reason"], reason);
    let resource = json!({
        "path": "EtcdAddress0", "type": "AWS::EC2::EIP", "description": "etcd member 0, t3.medium in us-west-2a",
    });
    assert_eq!(report["resource"], resource);
    assert_eq!(report["hint"]["kind"], "limit");
    assert!(report["hint"]["text"].as_str().unwrap().contains("L-0263D0A3"), "{report}");
    let [skipped] = of_type("stack-skipped")[..] else { panic!("{events:#?}") };
    assert_eq!(skipped["stack"], "paddle-cluster-pool-workers");
    assert_eq!(skipped["because"], "paddle-cluster-control-plane");
    let ends = of_type("stack-ended");
    let good: Vec<&str> = ends
        .iter()
        .filter(|event| event["good"] == true)
        .map(|event| event["stack"].as_str().unwrap())
        .collect();
    assert_eq!(good, ["paddle-cluster-network", "paddle-cluster-storage"]);
}
