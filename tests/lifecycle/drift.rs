//! What someone changed by hand in the resources of stacks: it is found, distinguished from what the cluster changes by itself, and never
//! invented.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::schema_judge::expect_exact;
use crate::support::element;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::in_parallel;
use crate::support::outcome::Outcome;
use crate::support::world::World;

const POOL: &str = "minimal-pool-cpu";
const DETECTING: [&str; 3] = [
    "cloudformation:DetectStackDrift",
    "cloudformation:DescribeStackDriftDetectionStatus",
    "cloudformation:DescribeStackResourceDrifts",
];

/// A whole cluster whose pool may grow.
fn whole() -> World {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| text.replace("m5.large}", "m5.large, count: 1, maxCount: 3}"));
    assert!(world.workspace.read("cluster.yaml").contains("maxCount: 3"));
    world.up([]).expect_code(0);
    world
}

/// The id of a resource of a stack.
fn physical_id(world: &World, stack: &str, logical_id: &str) -> String {
    let form = [
        ("Action", "DescribeStackResource"),
        ("Version", "2010-05-15"),
        ("StackName", stack),
        ("LogicalResourceId", logical_id),
    ];
    let answer = world.aws().post("cloudformation", &world.aws().region, &form);
    element(&answer, "PhysicalResourceId").unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Opens a port of a security group.
fn open_port(world: &World, group: &str, port: &str, source: (&str, &str), description: Option<&str>) {
    let (kind, source) = source;
    let mut form = vec![
        ("GroupId".to_owned(), group.to_owned()),
        ("IpPermissions.1.IpProtocol".to_owned(), "tcp".to_owned()),
        ("IpPermissions.1.FromPort".to_owned(), port.to_owned()),
        ("IpPermissions.1.ToPort".to_owned(), port.to_owned()),
        (format!("IpPermissions.1.{kind}"), source.to_owned()),
    ];
    if let Some(text) = description {
        form.push(("IpPermissions.1.IpRanges.1.Description".to_owned(), text.to_owned()));
    }
    let form: Vec<(&str, &str)> = form.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let answer = world.ec2("AuthorizeSecurityGroupIngress", &form);
    assert!(answer.contains("<return>true</return>"), "{answer}");
}

const RANGE: &str = "IpRanges.1.CidrIp";
const GROUP: &str = "Groups.1.GroupId";

fn auto_scaling(world: &World, action: &str, more: &[(&str, &str)]) {
    let form = [("Action", action), ("Version", "2011-01-01")];
    let answer = world.aws().post("autoscaling", &world.aws().region, &[form.as_slice(), more].concat());
    assert!(!answer.contains("<Error>"), "{answer}");
}

fn document(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stdout))
}

fn stack<'a>(document: &'a Value, name: &str) -> &'a Value {
    let stacks = document["stacks"].as_array().unwrap();
    stacks.iter().find(|stack| stack["stack"] == name).unwrap_or_else(|| panic!("{document:#}"))
}

#[test]
fn an_untouched_cluster_has_not_drifted() {
    let world = World::of_golden("minimal");
    let absent = world.run(["drift"]).expect_code(3);
    assert_eq!(absent.stdout, "minimal: there is no such cluster; `infra up` creates it\n");
    let mut documents = vec![world.run(["drift", "--output", "json"]).expect_code(3).stdout];
    world.up([]).expect_code(0);
    world.proxy.clear();
    let outcome = world.run(["drift"]).expect_code(0);
    assert_eq!(
        outcome.stdout,
        "minimal-network: no drift\n  \
           not checked: 21 resources (AWS::EC2::Route, AWS::EC2::SecurityGroupIngress, AWS::EC2::SubnetRouteTableAssociation, \
         AWS::EC2::VPCEndpoint, AWS::EC2::VPCGatewayAttachment)\n\
         minimal-control-plane: no drift\n  \
           not checked: 7 resources (AWS::EC2::EIPAssociation, AWS::EC2::LaunchTemplate, AWS::ElasticLoadBalancingV2::TargetGroup, \
         AWS::Route53::RecordSet)\n\
         minimal-pool-cpu: no drift\n  \
           not checked: 1 resource (AWS::EC2::LaunchTemplate)\n\
         \n\
         minimal: no drift (26 in sync, 29 not checked)\n"
    );
    outcome
        .expect_stderr("detecting drift, which takes a few minutes")
        .expect_stderr("minimal-network: no drift");
    let changing =
        world.proxy.operations().into_iter().filter(|name| !crate::support::reading::is_reading(name));
    assert_eq!(changing.collect::<Vec<_>>(), [DETECTING[0]]);

    for operation in DETECTING {
        world.proxy.fault(operation, Fault::Throttled, Times::First(3));
        world.proxy.fault(operation, Fault::CutAfterForwarding, Times::Nth(5));
    }
    let json = world.run(["drift", "--output", "json"]).expect_code(0);
    let read = document(&json);
    assert_eq!(
        (&read["exists"], &read["drifted"], &read["complete"]),
        (&json!(true), &json!(false), &json!(true))
    );
    assert_eq!(
        stack(&read, POOL)["notChecked"][0],
        json!({"logicalId": "NodeLaunchTemplate", "type": "AWS::EC2::LaunchTemplate", "reason": null})
    );
    documents.push(json.stdout);
    expect_exact(&BTreeMap::from([("drift", documents)]), &[]);

    for operation in DETECTING {
        world.proxy.heal();
        world.proxy.fault(operation, Fault::AccessDenied, Times::Always);
        let denied = world.run(["drift"]).expect_code(1).expect_stderr(operation);
        assert_eq!(denied.stdout, "", "nothing is known");
    }
}

#[test]
fn clusters_of_every_kind_have_not_drifted_after_up() {
    in_parallel(["ha-gpu-efs", "private", "adopted"], |name| {
        let world = World::of_golden(name);
        world.up([]).expect_code(0);
        world.run(["drift"]).expect_code(0).expect_stdout(": no drift (");
    });
}

#[test]
fn what_was_changed_by_hand_is_drift_and_what_the_cluster_changes_is_not() {
    let world = whole();
    let nodes = physical_id(&world, "minimal-network", "NodesGroup");
    // What the autoscaler, and the cloud controller manager for Services of both kinds of load balancers, do.
    let group = physical_id(&world, POOL, "Nodes");
    auto_scaling(&world, "SetDesiredCapacity", &[("AutoScalingGroupName", &group), ("DesiredCapacity", "2")]);
    open_port(&world, &nodes, "30080", (RANGE, "0.0.0.0/0"), Some("kubernetes.io/rule/nlb/client=a1b2"));
    let vpc = world.tagged("DescribeVpcs", "vpcId");
    let owned = format!("kubernetes.io/cluster/{}", world.cluster());
    let of_service = world.make_group(&vpc, "k8s-elb-a1", None);
    world
        .ec2("CreateTags", &[("ResourceId.1", &of_service), ("Tag.1.Key", &owned), ("Tag.1.Value", "owned")]);
    open_port(&world, &nodes, "30081", (GROUP, &of_service), None);
    let designed = world.run(["drift"]).expect_code(0);
    let designed = designed.expect_stdout(
        "minimal-pool-cpu: no drift\n  \
           changed by design: pool cpu, 1 × m5.large in us-west-2a (Nodes, AWS::AutoScaling::AutoScalingGroup)\n    \
             DesiredCapacity: 1 → 2 (the size of a pool changes with its load; `infra up` keeps it)\n",
    );
    let designed = designed.expect_stdout(
        "  changed by design: security group of nodes of all pools (NodesGroup, AWS::EC2::SecurityGroup)\n    SecurityGroupIngress.4: added {",
    );
    designed.expect_stdout("minimal: no drift (24 in sync, 3 changed by design, 29 not checked)\n");

    // What no user should do.
    open_port(&world, &nodes, "22", (RANGE, "0.0.0.0/0"), None);
    let foreign = world.make_group(&vpc, "bastion", None);
    open_port(&world, &nodes, "2222", (GROUP, &foreign), None);
    let controllers = physical_id(&world, "minimal-control-plane", "Controllers");
    auto_scaling(
        &world,
        "UpdateAutoScalingGroup",
        &[("AutoScalingGroupName", &controllers), ("MaxSize", "4"), ("DesiredCapacity", "3")],
    );
    let drifted = world.run(["drift"]).expect_code(3);
    let expected = format!(
        "minimal-network: drift\n  \
           security group of nodes of all pools (NodesGroup, AWS::EC2::SecurityGroup): {nodes}\n    \
             SecurityGroupIngress.6: added {{\"CidrIp\":\"0.0.0.0/0\",\"FromPort\":22,\"IpProtocol\":\"tcp\",\"ToPort\":22}}\n    \
             SecurityGroupIngress.7: added {{\"FromPort\":2222,\"IpProtocol\":\"tcp\",\"SourceSecurityGroupId\":\"{foreign}\",\"ToPort\":2222}}\n  \
           changed by design: security group of nodes of all pools (NodesGroup, AWS::EC2::SecurityGroup)\n    \
             SecurityGroupIngress.4: added "
    );
    assert!(drifted.stdout.starts_with(&expected), "{}", drifted.stdout);
    let drifted = drifted.expect_stdout(&format!(
        "minimal-control-plane: drift\n  \
           controllers, 1 × t3.medium in us-west-2a (Controllers, AWS::AutoScaling::AutoScalingGroup): {controllers}\n    \
             MaxSize: 1 → 4\n    \
             DesiredCapacity: 1 → 3\n"
    ));
    let drifted = drifted
        .expect_stdout("minimal: drift in 2 resources (23 in sync, 3 changed by design, 29 not checked)\n");
    drifted.expect_stderr("help: change it back by hand: `infra up` compares templates");

    let json = world.run(["drift", "--output", "json"]).expect_code(3);
    let read = document(&json);
    let network = stack(&read, "minimal-network");
    assert_eq!(
        network["drifted"],
        json!([{
            "logicalId": "NodesGroup", "physicalId": nodes, "type": "AWS::EC2::SecurityGroup",
            "description": "security group of nodes of all pools", "change": "modified",
            "properties": [
                {"path": "SecurityGroupIngress.6", "expected": null,
                 "actual": {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}},
                {"path": "SecurityGroupIngress.7", "expected": null,
                 "actual": {"IpProtocol": "tcp", "FromPort": 2222, "ToPort": 2222, "SourceSecurityGroupId": foreign}},
            ],
        }])
    );
    let causes: Vec<&Value> =
        network["byDesign"].as_array().unwrap().iter().map(|change| &change["cause"]).collect();
    assert_eq!(causes, ["service", "service"]);
    assert_eq!(
        stack(&read, POOL)["byDesign"],
        json!([{
            "logicalId": "Nodes", "physicalId": group, "type": "AWS::AutoScaling::AutoScalingGroup",
            "description": "pool cpu, 1 × m5.large in us-west-2a", "cause": "pool-size",
            "path": "DesiredCapacity", "expected": "1", "actual": "2",
        }])
    );
    expect_exact(&BTreeMap::from([("drift", vec![json.stdout])]), &[]);
}

#[test]
fn what_is_gone_and_what_cannot_be_checked_is_named() {
    let world = whole();
    let group = physical_id(&world, POOL, "Nodes");
    // CloudFormation does not know why, or is not allowed to look.
    world.control(json!({"fail_drift": {
        "EtcdVolume0": "User: arn:aws:iam::1:user/o is not authorized to perform: ec2:DescribeVolumes",
        "Vpc": "Internal Failure",
    }}));
    let failed = world.run(["drift"]).expect_code(1);
    let failed = failed.expect_stdout("minimal-network: not everything could be checked\n  ! Vpc (AWS::EC2::VPC) could not be checked: Internal Failure\n");
    let failed = failed.expect_stdout("minimal: no drift found, but not everything could be checked (24 in sync, 29 not checked, 2 failed to be checked)\n");
    failed
        .expect_stderr("error: not everything could be checked in minimal-network, minimal-control-plane")
        .expect_stderr("`infra policy` prints");

    // A stack that someone works on cannot be checked, the others can.
    world.control(json!({"force_status": {POOL: "UPDATE_IN_PROGRESS"}}));
    let busy = world.run(["drift"]).expect_code(1);
    let busy = busy.expect_stdout("minimal-control-plane: no drift\n  not checked: 7 resources");
    let busy = busy.expect_stdout(
        "minimal-pool-cpu: cannot be checked while an operation is in progress (UPDATE_IN_PROGRESS)\n",
    );
    busy.expect_stderr("error: not everything could be checked in minimal-pool-cpu");
    let read = document(&world.run(["drift", "--output", "json"]).expect_code(1));
    assert_eq!((&read["drifted"], &read["complete"]), (&json!(false), &json!(false)));

    world.control(json!({"force_status": {POOL: "ROLLBACK_COMPLETE"}}));
    world
        .run(["drift"])
        .expect_code(1)
        .expect_stdout("minimal-pool-cpu: cannot be checked in ROLLBACK_COMPLETE: only complete stacks can");

    // What is gone is drift, whatever could not be checked.
    world.control(
        json!({"force_status": {POOL: "UPDATE_ROLLBACK_FAILED"}, "fail_drift": {"Vpc": "Internal Failure"}}),
    );
    auto_scaling(
        &world,
        "DeleteAutoScalingGroup",
        &[("AutoScalingGroupName", &group), ("ForceDelete", "true")],
    );
    let gone = world.run(["drift"]).expect_code(3).expect_stdout(&format!(
        "minimal-pool-cpu: drift\n  \
           DELETED: pool cpu, 1 × m5.large in us-west-2a (Nodes, AWS::AutoScaling::AutoScalingGroup): {group}\n"
    ));
    gone.expect_stderr("warning: not everything could be checked in minimal-network")
        .expect_stderr("help: change it back by hand");
}

#[test]
fn a_detection_of_someone_else_is_waited_for_and_a_foreign_stack_is_left_alone() {
    let world = World::of_golden("minimal");
    let template = json!({"Resources": {"Theirs": {"Type": "AWS::SNS::Topic"}}}).to_string();
    let answer = world.aws().post(
        "cloudformation",
        &world.aws().region,
        &[
            ("Action", "CreateStack"),
            ("Version", "2010-05-15"),
            ("StackName", "minimal-pool-network"),
            ("TemplateBody", &template),
            ("Tags.member.1.Key", "infra:cluster"),
            ("Tags.member.1.Value", "minimal-pool"),
        ],
    );
    assert!(answer.contains("<StackId>"), "{answer}");
    world.up([]).expect_code(0);
    world.control(json!({"drift_delay": 600}));
    let mut first = world.infra(["drift"]).spawn();
    first.wait_for_stderr("minimal-pool-network is not a stack of this cluster, and is not checked: it is of cluster minimal-pool");
    first.wait_for_stderr("waiting for minimal-control-plane, minimal-network, minimal-pool-cpu");
    world.proxy.wait_for("cloudformation:DescribeStackDriftDetectionStatus", 3);
    let mut second = world.infra(["drift"]).spawn();
    second.wait_for_stderr(
        "minimal-network: another drift detection is in progress; waiting for its end to begin our own",
    );
    first.interrupt();
    first.wait().expect_code(130).expect_stderr("interrupted; nothing was changed");
    let late = world.run(["drift", "--timeout", "1s"]).expect_code(5);
    assert_eq!(late.stdout, "");
    late.expect_stderr(
        "the time limit was reached; minimal-control-plane, minimal-network, minimal-pool-cpu continue in AWS",
    );
    world.control(json!({}));
    let outcome =
        second.wait().expect_code(0).expect_stdout("minimal: no drift (26 in sync, 29 not checked)");
    assert!(!outcome.stdout.contains("minimal-pool-network"), "{}", outcome.stdout);
}
