//! The audit at the end of a destroy: every leftover of a cluster is listed with the command that deletes it; deleted resources, those
//! that are kept on purpose and foreign ones are not.

use crate::support::element;
use crate::support::foreign_resources::BALANCERS;
use crate::support::world::World;

/// One of each kind that stacks create and that can be planted, with the cluster's tag: what the audit says of it, the command that
/// deletes it, and the call that does.
struct Planted {
    what: String,
    arn_end: String,
    remove: String,
    call: Vec<(String, String)>,
}

fn planted(what: &str, arn_end: &str, remove: &str, call: &[(&str, &str)]) -> Planted {
    let call = call.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Planted { what: what.to_owned(), arn_end: arn_end.to_owned(), remove: format!("aws {remove}"), call }
}

/// Of EC2, in a VPC of their own; in an order in which they can be deleted again.
fn plant_in_ec2(world: &World) -> Vec<Planted> {
    let vpc = world.make_vpc("10.77.0.0/16");
    let subnet = [("VpcId", vpc.as_str()), ("CidrBlock", "10.77.0.0/24"), ("AvailabilityZone", "us-west-2a")];
    let subnet = world.made("CreateSubnet", &subnet, "subnetId");
    let gateway = world.made("CreateInternetGateway", &[], "internetGatewayId");
    let table = world.made("CreateRouteTable", &[("VpcId", &vpc)], "routeTableId");
    let group = world.make_group(&vpc, "left", None);
    let interface = world.make_interface(&subnet, "", &[]);
    let address = world.made("AllocateAddress", &[("Domain", "vpc")], "allocationId");
    let used = world.made("AllocateAddress", &[("Domain", "vpc")], "allocationId");
    let nat = [("SubnetId", subnet.as_str()), ("AllocationId", used.as_str())];
    let nat = world.made("CreateNatGateway", &nat, "natGatewayId");
    let volume = [("AvailabilityZone", "us-west-2a"), ("Size", "8"), ("VolumeType", "gp3")];
    let volume = world.made("CreateVolume", &volume, "volumeId");
    let endpoint = [("VpcId", vpc.as_str()), ("ServiceName", "com.amazonaws.us-west-2.s3")];
    let endpoint = world.made("CreateVpcEndpoint", &endpoint, "vpcEndpointId");
    let template = [("LaunchTemplateName", "left"), ("LaunchTemplateData.InstanceType", "m5.large")];
    let template = world.made("CreateLaunchTemplate", &template, "launchTemplateId");
    let placement = [("GroupName", "left-together"), ("Strategy", "cluster")];
    let placement = world.made("CreatePlacementGroup", &placement, "groupId");
    let machine = [
        ("ImageId", "ami-00000000000000001"),
        ("InstanceType", "m5.large"),
        ("MinCount", "1"),
        ("MaxCount", "1"),
        ("SubnetId", subnet.as_str()),
    ];
    let machine = world.made("RunInstances", &machine, "instanceId");
    world.tag(&machine);
    for id in [&vpc, &subnet, &gateway, &table, &group, &interface, &address, &nat, &volume, &endpoint] {
        world.tag(id);
    }
    world.tag(&template);
    world.tag(&placement);
    let of = |kind: &str, id: &str, remove: &str, action: &str, parameter: &str| {
        let call = [("Action", action), (parameter, id)];
        let name = match kind {
            "instance" => "machine".to_owned(),
            "natgateway" => "NAT gateway".to_owned(),
            "elastic-ip" => "Elastic IP address".to_owned(),
            "vpc" => "VPC".to_owned(),
            "vpc-endpoint" => "VPC endpoint".to_owned(),
            other => other.replace('-', " "),
        };
        let remove = format!("ec2 {remove} {id} --region us-west-2");
        planted(&format!("{name} {id}"), &format!("{kind}/{id}"), &remove, &call)
    };
    vec![
        of("instance", &machine, "terminate-instances --instance-ids", "TerminateInstances", "InstanceId.1"),
        of(
            "network-interface",
            &interface,
            "delete-network-interface --network-interface-id",
            "DeleteNetworkInterface",
            "NetworkInterfaceId",
        ),
        of("natgateway", &nat, "delete-nat-gateway --nat-gateway-id", "DeleteNatGateway", "NatGatewayId"),
        of("elastic-ip", &address, "release-address --allocation-id", "ReleaseAddress", "AllocationId"),
        of(
            "vpc-endpoint",
            &endpoint,
            "delete-vpc-endpoints --vpc-endpoint-ids",
            "DeleteVpcEndpoints",
            "VpcEndpointId.1",
        ),
        of("subnet", &subnet, "delete-subnet --subnet-id", "DeleteSubnet", "SubnetId"),
        of("security-group", &group, "delete-security-group --group-id", "DeleteSecurityGroup", "GroupId"),
        of("route-table", &table, "delete-route-table --route-table-id", "DeleteRouteTable", "RouteTableId"),
        of("vpc", &vpc, "delete-vpc --vpc-id", "DeleteVpc", "VpcId"),
        of(
            "internet-gateway",
            &gateway,
            "delete-internet-gateway --internet-gateway-id",
            "DeleteInternetGateway",
            "InternetGatewayId",
        ),
        of("volume", &volume, "delete-volume --volume-id", "DeleteVolume", "VolumeId"),
        of(
            "launch-template",
            &template,
            "delete-launch-template --launch-template-id",
            "DeleteLaunchTemplate",
            "LaunchTemplateId",
        ),
        of(
            "placement-group",
            "left-together",
            "delete-placement-group --group-name",
            "DeletePlacementGroup",
            "GroupName",
        ),
    ]
}

/// Load balancers of both generations, a listener and its targets.
fn plant_balancers(world: &World, subnet: &str) -> Vec<Planted> {
    let tag = [("Tags.member.1.Key", "infra:cluster"), ("Tags.member.1.Value", "minimal")];
    let make = |action: &str, more: &[(&str, &str)], id: &str| {
        let answer = world.balancers(BALANCERS, action, &[more, &tag].concat());
        element(&answer, id).unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let balancer = make(
        "CreateLoadBalancer",
        &[("Name", "left"), ("Type", "network"), ("Subnets.member.1", subnet)],
        "LoadBalancerArn",
    );
    let targets = [("Name", "left"), ("Protocol", "TCP"), ("Port", "80"), ("VpcId", "vpc-1")];
    let targets = make("CreateTargetGroup", &targets, "TargetGroupArn");
    let listener = [
        ("LoadBalancerArn", balancer.as_str()),
        ("Protocol", "TCP"),
        ("Port", "80"),
        ("DefaultActions.member.1.Type", "forward"),
        ("DefaultActions.member.1.TargetGroupArn", targets.as_str()),
    ];
    let listener = make("CreateListener", &listener, "ListenerArn");
    world.make_classic_balancer("older", subnet, &[("kubernetes.io/cluster/minimal", "owned")]);
    let of = |what: &str, command: &str, version: &str, action: &str, parameter: &str, value: &str| {
        let remove = format!("{command} {value} --region us-west-2");
        planted(what, value, &remove, &[("Action", action), ("Version", version), (parameter, value)])
    };
    let delete = "delete-load-balancer --load-balancer";
    vec![
        of(
            &format!("listener {listener}"),
            "elbv2 delete-listener --listener-arn",
            BALANCERS,
            "DeleteListener",
            "ListenerArn",
            &listener,
        ),
        of(
            "load balancer left",
            &format!("elbv2 {delete}-arn"),
            BALANCERS,
            "DeleteLoadBalancer",
            "LoadBalancerArn",
            &balancer,
        ),
        of(
            "target group left",
            "elbv2 delete-target-group --target-group-arn",
            BALANCERS,
            "DeleteTargetGroup",
            "TargetGroupArn",
            &targets,
        ),
        of(
            "load balancer older",
            &format!("elb {delete}-name"),
            "2012-06-01",
            "DeleteLoadBalancer",
            "LoadBalancerName",
            "older",
        ),
    ]
}

/// What no tag finds.
fn plant_by_name(world: &World) -> (Planted, String) {
    let aws = world.aws();
    let answer = aws.post(
        "autoscaling",
        &aws.region,
        &[
            ("Action", "CreateAutoScalingGroup"),
            ("Version", "2011-01-01"),
            ("AutoScalingGroupName", "left"),
            ("MinSize", "0"),
            ("MaxSize", "0"),
            ("AvailabilityZones.member.1", "us-west-2a"),
            ("Tags.member.1.Key", "infra:cluster"),
            ("Tags.member.1.Value", "minimal"),
        ],
    );
    assert!(!answer.contains("Error"), "{answer}");
    let zone = world.make_zone("minimal.infra.internal", true);
    let call = [
        ("Action", "DeleteAutoScalingGroup"),
        ("Version", "2011-01-01"),
        ("AutoScalingGroupName", "left"),
        ("ForceDelete", "true"),
    ];
    let remove = "autoscaling delete-auto-scaling-group --force-delete --auto-scaling-group-name left --region us-west-2";
    (planted("Auto Scaling group left", "", remove, &call), zone)
}

#[test]
fn every_leftover_is_listed_with_the_command_that_deletes_it() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    world.run(["destroy", "--yes"]).expect_code(0);

    let in_ec2 = plant_in_ec2(&world);
    let subnet = world.tagged("DescribeSubnets", "subnetId");
    let balancers = plant_balancers(&world, &subnet);
    let (group, zone) = plant_by_name(&world);
    let outcome = world.run(["destroy", "--yes"]).expect_code(7);
    let all = in_ec2.iter().chain(&balancers).chain([&group]);
    for left in all {
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        let at =
            lines.iter().position(|line| line.strip_prefix("error: left over: ") == Some(left.what.as_str()));
        let at = at.unwrap_or_else(|| panic!("{} is not in:\n{}", left.what, outcome.stderr));
        assert_eq!(lines[at + 1].trim(), left.remove);
    }
    assert!(outcome.stderr.contains(&format!("  aws route53 delete-hosted-zone --id {zone}")));
    let count = in_ec2.len() + balancers.len() + 2;
    assert_eq!(outcome.stderr.matches("error: left over: ").count(), count, "{}", outcome.stderr);

    // With each deleted, nothing is left, although the tagging service may still list it.
    let aws = world.aws();
    let post = |service: &str, left: &Planted| {
        let form: Vec<(&str, &str)> =
            left.call.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let answer = aws.post(service, &aws.region, &form);
        assert!(!answer.contains("<Error>"), "{}: {answer}", left.what);
    };
    for left in &balancers {
        post("elasticloadbalancing", left);
    }
    for left in &in_ec2 {
        post("ec2", left);
    }
    post("autoscaling", &group);
    let path = format!("/2013-04-01/hostedzone/{zone}");
    assert_eq!(aws.send("route53", &aws.region, "DELETE", &path, "").status(), 200);
    let listed = world.listed_by_tag();
    for left in in_ec2.iter().chain(&balancers[..3]) {
        assert!(listed.iter().any(|arn| arn.ends_with(&left.arn_end)), "{} in {listed:#?}", left.what);
    }
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("nothing of minimal is left");
}

#[test]
fn a_leftover_is_found_at_the_end_of_a_whole_destroy_too() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let volume = [("AvailabilityZone", "us-west-2a"), ("Size", "8"), ("VolumeType", "gp3")];
    let volume = world.made("CreateVolume", &volume, "volumeId");
    world.tag(&volume);
    let remove = format!("aws ec2 delete-volume --volume-id {volume} --region us-west-2");
    let outcome = world.run(["destroy", "--yes"]).expect_code(7).expect_stderr(&remove);
    assert_eq!(outcome.stderr.matches("error: left over: ").count(), 1, "{}", outcome.stderr);
    assert_eq!(world.stacks().len(), 0);
    world.ec2("DeleteVolume", &[("VolumeId", &volume)]);
    world.run(["destroy", "--yes"]).expect_code(0);
}

#[test]
fn deleted_kept_and_foreign_resources_are_no_leftovers() {
    let world = World::of_golden("private");
    world.up([]).expect_code(0);
    // A cluster of the same name in another region, whose hosted zone is in the same account; another cluster's disk.
    let body = "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><Name>vault.infra.internal</Name>\
         <VPC><VPCRegion>eu-west-1</VPCRegion><VPCId>vpc-0123456789abcdef0</VPCId></VPC><CallerReference>other</CallerReference>\
         </CreateHostedZoneRequest>";
    let aws = world.aws();
    let answer = aws.send("route53", &aws.region, "POST", "/2013-04-01/hostedzone", body).text();
    assert!(answer.contains("vault.infra.internal"), "{answer}");
    let volume = [("AvailabilityZone", "us-west-2a"), ("Size", "8"), ("VolumeType", "gp3")];
    let volume = world.made("CreateVolume", &volume, "volumeId");
    world.ec2(
        "CreateTags",
        &[("ResourceId.1", &volume), ("Tag.1.Key", "infra:cluster"), ("Tag.1.Value", "vault2")],
    );
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    assert!(
        !plan.stdout.contains("Foreign resources in the network of vault"),
        "the NAT gateway is: {}",
        plan.stdout
    );
    let outcome = world.run(["destroy", "--yes"]).expect_code(0);
    assert!(!outcome.stderr.contains("left over: "), "{}", outcome.stderr);
    // The search by tag still lists all of this: terminated machines, deleted gateways, snapshots that are kept.
    let listed = world.listed_by_tag();
    for kind in [":instance/", ":natgateway/", ":snapshot/", ":loadbalancer/", ":placement-group/", ":vpc/"] {
        assert!(listed.iter().any(|arn| arn.contains(kind)), "{kind} in {listed:#?}");
    }
    let terminated = world.ec2("DescribeInstances", &[]);
    assert!(terminated.contains("<name>terminated</name>") && terminated.contains("infra:cluster"));
}
