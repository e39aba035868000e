//! What preflight finds in networks, file systems and reservations that were there before the cluster.

use serde_json::{Value, json};

use crate::preflight::{expect, expect_if, is_fixed_by, ready};
use crate::support::element;
use crate::support::world::World;

/// Ids in cluster.yaml, in the order of the text.
fn ids(world: &World, prefix: &str) -> Vec<String> {
    let text = world.workspace.read("cluster.yaml");
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.starts_with(prefix)).map(str::to_owned).collect()
}

/// The route table of a subnet.
fn table_of(world: &World, subnet: &str) -> String {
    let tables = world.ec2("DescribeRouteTables", &[]);
    let before = tables.split_once(subnet).unwrap().0;
    let after = before.rsplit_once("<routeTableId>").unwrap().1;
    after.split('<').next().unwrap().to_owned()
}

fn make(world: &World, path: &str, body: &Value, id: &str) -> String {
    let aws = world.aws();
    let path = format!("/2015-02-01/{path}");
    let answer = aws.send("elasticfilesystem", &aws.region, "POST", &path, &body.to_string());
    let made: Value = serde_json::from_str(&answer.text()).unwrap();
    made[id].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

fn make_file_system(world: &World, body: &Value) -> String {
    make(world, "file-systems", body, "FileSystemId")
}

#[test]
fn an_adopted_vpc_must_have_the_range_and_dns_resolution() {
    let world = ready(World::of_golden("adopted"));
    let vpc = ids(&world, "vpc-").remove(0);
    expect_if(
        &world,
        &vpc,
        "vpc-00000000000000000",
        &["refused: network: there is no VPC vpc-00000000000000000 in eu-west-1"],
    );
    let found = expect_if(
        &world,
        "vpcCIDR: 10.40.0.0/16",
        "vpcCIDR: 10.41.0.0/16",
        &[&format!("refused: network: the range of VPC {vpc} is 10.40.0.0/16, but vpcCIDR is 10.41.0.0/16")],
    );
    is_fixed_by(&found, "set network.vpcCIDR: 10.40.0.0/16");

    let switch = |value: &str| {
        for attribute in ["EnableDnsSupport.Value", "EnableDnsHostnames.Value"] {
            world.ec2("ModifyVpcAttribute", &[("VpcId", &vpc), (attribute, value)]);
        }
    };
    switch("false");
    let found = expect(
        &world,
        &[
            &format!("refused: network: enableDnsSupport is off in VPC {vpc}"),
            &format!("refused: network: enableDnsHostnames is off in VPC {vpc}"),
        ],
    );
    is_fixed_by(&found, &format!("aws ec2 modify-vpc-attribute --vpc-id {vpc} --enable-dns-hostnames"));
    switch("true");

    let refused =
        format!("refused: network: the DHCP options of VPC {vpc} do not hand out Amazon's resolver");
    for (server, expected) in
        [("10.40.0.53", Some(&refused)), ("10.40.0.2", None), ("AmazonProvidedDNS", None)]
    {
        let options =
            [("DhcpConfiguration.1.Key", "domain-name-servers"), ("DhcpConfiguration.1.Value.1", server)];
        let options = world.made("CreateDhcpOptions", &options, "dhcpOptionsId");
        world.ec2("AssociateDhcpOptions", &[("VpcId", &vpc), ("DhcpOptionsId", &options)]);
        expect(&world, &expected.map(String::as_str).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn adopted_subnets_must_have_the_availability_zone_and_routes_of_cluster_yaml() {
    let world = ready(World::of_golden("adopted"));
    let vpc = ids(&world, "vpc-").remove(0);
    let subnets = ids(&world, "subnet-");
    let [public, _, private, _] = subnets.as_slice() else { panic!("{subnets:?}") };
    expect_if(
        &world,
        private,
        "subnet-00000000000000000",
        &["refused: network: there is no subnet subnet-00000000000000000"],
    );
    let far = [("VpcId", vpc.as_str()), ("CidrBlock", "10.40.9.0/24"), ("AvailabilityZone", "eu-west-1c")];
    let far = world.made("CreateSubnet", &far, "subnetId");
    let gateway = world.made("CreateInternetGateway", &[], "internetGatewayId");
    world.ec2("AttachInternetGateway", &[("VpcId", &vpc), ("InternetGatewayId", &gateway)]);
    let route = |subnet: &str, gateway: Option<&str>| {
        let table = world.made("CreateRouteTable", &[("VpcId", &vpc)], "routeTableId");
        let everywhere = ("DestinationCidrBlock", "0.0.0.0/0");
        if let Some(gateway) = gateway {
            world.ec2("CreateRoute", &[("RouteTableId", &table), everywhere, ("GatewayId", gateway)]);
        }
        world.ec2("AssociateRouteTable", &[("RouteTableId", &table), ("SubnetId", subnet)]);
    };
    route(&far, Some(&gateway));
    let found = expect_if(
        &world,
        public,
        &far,
        &[&format!("refused: network: the subnet {far} is in eu-west-1c, not in eu-west-1a")],
    );
    is_fixed_by(&found, "set its availabilityZone: eu-west-1c");

    let other_vpc = world.make_vpc("10.50.0.0/16");
    let foreign =
        [("VpcId", other_vpc.as_str()), ("CidrBlock", "10.50.0.0/24"), ("AvailabilityZone", "eu-west-1a")];
    let foreign = world.made("CreateSubnet", &foreign, "subnetId");
    expect_if(
        &world,
        public,
        &foreign,
        &[&format!("refused: network: the subnet {foreign} belongs to {other_vpc}, not to {vpc}")],
    );

    let (of_public, of_private) = (table_of(&world, public), table_of(&world, private));
    let without_route = |table: &str| {
        world.ec2("DeleteRoute", &[("RouteTableId", table), ("DestinationCidrBlock", "0.0.0.0/0")]);
    };
    without_route(&of_private);
    let nowhere = format!("network: the private subnet {private} has no default route");
    expect(&world, &[&format!("refused: {nowhere}")]);
    // With mirrors that may be intended.
    expect_if(
        &world,
        "pools:",
        "mirrors: {registry.k8s.io: 'https://mirror.example.com/k8s'}\npools:",
        &[&format!("warning: {nowhere}")],
    );
    world.ec2(
        "CreateRoute",
        &[("RouteTableId", &of_private), ("DestinationCidrBlock", "0.0.0.0/0"), ("GatewayId", &gateway)],
    );
    without_route(&of_public);
    let found = expect(
        &world,
        &[
            &format!(
                "refused: network: the default route of the public subnet {public} points at nothing, not at an internet gateway"
            ),
            &format!(
                "refused: network: the default route of the private subnet {private} points at an internet gateway"
            ),
        ],
    );
    is_fixed_by(&found, "set public: true if this is intended");
}

#[test]
fn an_adopted_file_system_must_be_mountable() {
    let world = ready(World::of_golden("adopted"));
    let id = ids(&world, "fs-").remove(0);
    let subnets = ids(&world, "subnet-");
    expect_if(
        &world,
        &id,
        "fs-00000000000000000",
        &["refused: file system: there is no file system fs-00000000000000000"],
    );
    let without = format!("refused: file system: the file system {id} has no mount target in eu-west-1a");
    let found = expect_if(&world, "createMountTargets: true", "createMountTargets: false", &[&without]);
    is_fixed_by(&found, "set createMountTargets: true");

    let plain = make_file_system(&world, &json!({"CreationToken": "plain"}));
    let unencrypted = format!("warning: file system: the file system {plain} is not encrypted");
    expect_if(&world, &id, &plain, &[&unencrypted]);
    let narrow = json!({"CreationToken": "narrow", "Encrypted": true, "AvailabilityZoneName": "eu-west-1a"});
    let narrow = make_file_system(&world, &narrow);
    let expected = format!(
        "refused: file system: the file system {narrow} is in one availability zone, but the cluster is also in eu-west-1b"
    );
    expect_if(&world, &id, &narrow, &[&expected]);

    let other_vpc = world.make_vpc("10.50.0.0/16");
    let foreign =
        [("VpcId", other_vpc.as_str()), ("CidrBlock", "10.50.0.0/24"), ("AvailabilityZone", "eu-west-1a")];
    let foreign = world.made("CreateSubnet", &foreign, "subnetId");
    let elsewhere = make_file_system(&world, &json!({"CreationToken": "elsewhere", "Encrypted": true}));
    let target = |file_system: &str, subnet: &str, group: &str| {
        let body = json!({"FileSystemId": file_system, "SubnetId": subnet, "SecurityGroups": [group]});
        make(&world, "mount-targets", &body, "MountTargetId")
    };
    let group = |vpc: &str| {
        let settings = [("VpcId", vpc), ("GroupName", "files"), ("GroupDescription", "files")];
        world.made("CreateSecurityGroup", &settings, "groupId")
    };
    target(&elsewhere, &foreign, &group(&other_vpc));
    let expected = format!(
        "refused: file system: the mount targets of file system {elsewhere} are in another VPC: {other_vpc}"
    );
    expect_if(&world, &id, &elsewhere, &[&expected]);

    let group = group(&ids(&world, "vpc-")[0]);
    let mounted = target(&id, &subnets[2], &group);
    let closed = format!(
        "warning: file system: no security group of mount target {mounted} in eu-west-1a allows 10.40.0.0/16 on port 2049 \
         ({group})"
    );
    let fix = format!(
        "aws ec2 authorize-security-group-ingress --group-id {group} --protocol tcp --port 2049 --cidr 10.40.0.0/16"
    );
    is_fixed_by(&expect(&world, &[&closed]), &fix);
    let allow = |source: (&str, &str)| {
        let rule = [("GroupId", group.as_str()), ("IpPermissions.1.IpProtocol", "tcp")];
        let ports = [("IpPermissions.1.FromPort", "2049"), ("IpPermissions.1.ToPort", "2049"), source];
        let answer = world.ec2("AuthorizeSecurityGroupIngress", &[rule.as_slice(), &ports].concat());
        assert_eq!(element(&answer, "return"), Some("true"), "{answer}");
    };
    allow(("IpPermissions.1.Groups.1.GroupId", &group));
    let by_name = format!(
        "warning: file system: mount target {mounted} in eu-west-1a accepts connections from certain security groups only ({group})"
    );
    expect(&world, &[&by_name]);
    allow(("IpPermissions.1.IpRanges.1.CidrIp", "10.40.0.0/16"));
    expect(&world, &[]);
}

#[test]
fn a_kept_file_system_is_mentioned() {
    let world = ready(World::of_golden("ha-gpu-efs"));
    let tags = |cluster: &str| json!([{"Key": "infra:cluster", "Value": cluster}]);
    make_file_system(&world, &json!({"CreationToken": "other", "Encrypted": true, "Tags": tags("other")}));
    expect(&world, &[]);
    let kept = json!({"CreationToken": "kept", "Encrypted": true, "Tags": tags("research")});
    let kept = make_file_system(&world, &kept);
    let expected =
        format!("warning: file system: there is a file system of an earlier cluster research: {kept}");
    let found = expect(&world, &[&expected]);
    is_fixed_by(&found, &format!("storage.efs.fileSystemId: {kept} with createMountTargets: true"));
}

#[test]
fn a_capacity_reservation_must_fit_its_pool() {
    let world = ready(World::of_golden("private"));
    let id = ids(&world, "cr-").remove(0);
    expect_if(
        &world,
        &id,
        "cr-00000000000000000",
        &["refused: capacity reservations: there is no capacity reservation cr-00000000000000000"],
    );
    let expected = format!(
        "refused: capacity reservations: the capacity reservation {id} is for g6e.12xlarge, but the pool uses g5.12xlarge"
    );
    let found = expect_if(&world, "instanceType: g6e.12xlarge", "instanceType: g5.12xlarge", &[&expected]);
    is_fixed_by(&found, "set instanceType: g6e.12xlarge");
    let expected = format!(
        "refused: capacity reservations: the capacity reservation {id} is in us-west-2b, but the pool is not"
    );
    let found = expect_if(
        &world,
        "availabilityZones: [us-west-2b]\n  placementGroup",
        "availabilityZones: [us-west-2a]\n  placementGroup",
        &[&expected],
    );
    is_fixed_by(&found, "set the pool's availabilityZones: [us-west-2b]");
    let expected = format!(
        "warning: capacity reservations: the capacity reservation {id} has 4 of 4 machines free, but the pool needs 5"
    );
    expect_if(
        &world,
        "instanceType: g6e.12xlarge\n  count: 2",
        "instanceType: g6e.12xlarge\n  count: 5",
        &[&expected],
    );
}
