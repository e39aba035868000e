//! What an account holds, counted: two accounts with the same counts hold one of everything, or both hold two.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::world::World;

/// How many there are of each kind.
pub type Census = BTreeMap<String, usize>;

/// Questions in forms: what is counted, service, action, and what the answer contains once for each.
const QUESTIONS: [(&str, &str, &str, &str); 23] = [
    ("autoscaling groups", "autoscaling", "DescribeAutoScalingGroups", "<AutoScalingGroupARN>"),
    ("addresses", "ec2", "DescribeAddresses", "<allocationId>"),
    ("addresses in use", "ec2", "DescribeAddresses", "<associationId>"),
    ("instances", "ec2", "DescribeInstances", "<name>running</name>"),
    ("internet gateways", "ec2", "DescribeInternetGateways", "<internetGatewayId>"),
    ("launch templates", "ec2", "DescribeLaunchTemplates", "<launchTemplateId>"),
    ("NAT gateways", "ec2", "DescribeNatGateways", "<state>available</state>"),
    ("interfaces", "ec2", "DescribeNetworkInterfaces", "<macAddress>"),
    ("placement groups", "ec2", "DescribePlacementGroups", "<strategy>"),
    ("route tables", "ec2", "DescribeRouteTables", "<routeSet>"),
    ("routes", "ec2", "DescribeRouteTables", "<destinationCidrBlock>"),
    ("route table associations", "ec2", "DescribeRouteTables", "<routeTableAssociationId>"),
    ("security groups", "ec2", "DescribeSecurityGroups", "<groupDescription>"),
    ("security group rules", "ec2", "DescribeSecurityGroups", "<ipProtocol>"),
    ("subnets", "ec2", "DescribeSubnets", "<subnetId>"),
    ("volumes", "ec2", "DescribeVolumes", "<createTime>"),
    ("VPC endpoints", "ec2", "DescribeVpcEndpoints", "<vpcEndpointId>"),
    ("VPCs", "ec2", "DescribeVpcs", "<vpcId>"),
    ("listeners", "elasticloadbalancing", "DescribeListeners", "<ListenerArn>"),
    ("load balancers", "elasticloadbalancing", "DescribeLoadBalancers", "<LoadBalancerArn>"),
    ("target groups", "elasticloadbalancing", "DescribeTargetGroups", "<TargetGroupArn>"),
    ("instance profiles", "iam", "ListInstanceProfiles", "<InstanceProfileName>"),
    ("roles", "iam", "ListRoles", "<RoleName>"),
];

/// The version of a service's forms.
fn version(service: &str) -> &'static str {
    match service {
        "autoscaling" => "2011-01-01",
        "ec2" => "2016-11-15",
        "elasticloadbalancing" => "2015-12-01",
        _ => "2010-05-08",
    }
}

impl World {
    /// What this world's account holds now.
    pub fn census(&self) -> Census {
        let aws = self.aws();
        let mut census = Census::new();
        let mut last = ("", String::new());
        for (what, service, action, mark) in QUESTIONS {
            if action != last.0 {
                let form = [("Action", action), ("Version", version(service))];
                last = (action, aws.post(service, &aws.region, &form));
            }
            assert!(
                last.1.contains(&format!("{action}Result")) || last.1.contains(&format!("{action}Response")),
                "{}",
                last.1
            );
            census.insert(what.to_owned(), last.1.matches(mark).count());
        }
        for (stack, status) in self.stacks() {
            let form = [("Action", "ListChangeSets"), ("Version", "2010-05-15"), ("StackName", &stack)];
            let change_sets = aws.post("cloudformation", &aws.region, &form);
            let open = change_sets.matches("<ExecutionStatus>AVAILABLE<").count();
            if open > 0 {
                census.insert(format!("{stack} open change sets"), open);
            }
            census.insert(format!("{stack} {}", status.replace("UPDATE", "CREATE")), 1);
        }
        let systems = self.list_of_file_systems("file-systems", "FileSystems");
        for system in &systems {
            let path = format!("mount-targets?FileSystemId={}", system["FileSystemId"].as_str().unwrap());
            *census.entry("mount targets".to_owned()).or_default() +=
                self.list_of_file_systems(&path, "MountTargets").len();
        }
        census.insert("file systems".to_owned(), systems.len());
        let zones = aws.send("route53", &aws.region, "GET", "/2013-04-01/hostedzone", "").text();
        census.insert("hosted zones".to_owned(), zones.matches("<HostedZone>").count());
        for zone in zones.split("<Id>/hostedzone/").skip(1) {
            let id = zone.split('<').next().unwrap();
            let count = self.records(id).matches("<ResourceRecordSet>").count();
            *census.entry("records".to_owned()).or_default() += count;
        }
        // A repeated upload is another version of the same object.
        let path = format!("/{}?versions", self.bucket());
        let versions = aws.send("s3", &aws.region, "GET", &path, "").text();
        let keys: BTreeSet<&str> =
            versions.split("<Key>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        census.insert("objects".to_owned(), keys.len());
        census.insert("grants".to_owned(), self.grants());
        census
    }

    /// How many snapshots of disks the account has: data, which outlives a cluster.
    pub fn snapshots(&self) -> usize {
        self.ec2("DescribeSnapshots", &[("Owner.1", "self")]).matches("<snapshotId>").count()
    }

    /// How many grants the cluster's key has.
    fn grants(&self) -> usize {
        let text = self.workspace.read("cluster.yaml");
        let key = text.lines().find_map(|line| line.strip_prefix("kmsKeyArn: "));
        let Some(key) = key else { return 0 };
        let aws = self.aws();
        let answer =
            aws.ask_json("kms", "TrentService.ListGrants", &serde_json::json!({"KeyId": key.trim()}));
        answer["Grants"].as_array().unwrap_or_else(|| panic!("{answer}")).len()
    }

    /// Every stack that is not deleted, with its status.
    pub fn stacks(&self) -> BTreeMap<String, String> {
        let aws = self.aws();
        let form = [("Action", "DescribeStacks"), ("Version", "2010-05-15")];
        let answer = aws.post("cloudformation", &aws.region, &form);
        let text = |stack: &str, name: &str| super::element(stack, name).unwrap_or_default().to_owned();
        let stacks = answer.split("<StackName>").skip(1);
        stacks
            .map(|stack| (stack.split('<').next().unwrap().to_owned(), text(stack, "StackStatus")))
            .collect()
    }

    pub fn list_of_file_systems(&self, path: &str, key: &str) -> Vec<Value> {
        let aws = self.aws();
        let path = format!("/2015-02-01/{path}");
        let answer = aws.send("elasticfilesystem", &aws.region, "GET", &path, "").text();
        let list: Value = serde_json::from_str(&answer).unwrap();
        list[key].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }
}
