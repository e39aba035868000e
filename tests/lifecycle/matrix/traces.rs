//! What a used cluster has outside its stacks: a backup of etcd, and what Kubernetes and users created in its network.

use crate::support::world::World;

/// One of each kind, so that a destroy has to delete all of it.
pub fn leave_traces(world: &World) {
    let aws = world.aws();
    let cluster = world.cluster();
    // As etcd's members do it.
    let backup = format!("/{}/clusters/{cluster}/snapshots/etcd/first.db", world.bucket());
    assert_eq!(aws.send("s3", &aws.region, "PUT", &backup, "backup").status(), 200);
    let zones = aws.send("route53", &aws.region, "GET", "/2013-04-01/hostedzone", "").text();
    let name = format!("{cluster}.infra.internal");
    let zone = zones.split("<HostedZone>").find(|zone| zone.contains(&name)).expect("a private zone");
    let zone = zone.split("<Id>/hostedzone/").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
    world.put_record(zone, &format!("wiki.{name}"), "A", "10.0.0.9");

    let owned = format!("kubernetes.io/cluster/{cluster}");
    world.make_balancer("a1b2c3", &[(&owned, "owned"), ("kubernetes.io/service-name", "default/web")]);
    let vpc = world.tagged("DescribeVpcs", "vpcId");
    let form = [
        ("Action", "CreateTargetGroup"),
        ("Version", "2015-12-01"),
        ("Name", "k8s-web"),
        ("Protocol", "TCP"),
        ("Port", "80"),
        ("VpcId", &vpc),
        ("Tags.member.1.Key", &owned),
        ("Tags.member.1.Value", "owned"),
    ];
    let answer = aws.post("elasticloadbalancing", &aws.region, &form);
    assert!(answer.contains("<TargetGroupArn>"), "{answer}");
    world.make_group_of_kubernetes();
    let ours = world.tagged("DescribeSecurityGroups", "groupId");
    let subnet = world.tagged("DescribeSubnets", "subnetId");
    world.made(
        "CreateNetworkInterface",
        &[
            ("SubnetId", &subnet),
            ("Description", "left by a pod"),
            ("SecurityGroupId.1", &ours),
            ("TagSpecification.1.ResourceType", "network-interface"),
            ("TagSpecification.1.Tag.1.Key", &owned),
            ("TagSpecification.1.Tag.1.Value", "owned"),
        ],
        "networkInterfaceId",
    );
}
