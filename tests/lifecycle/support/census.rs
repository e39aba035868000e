//! What an account holds, counted: two accounts with the same counts hold one of everything, or both hold two.

use std::collections::BTreeMap;

use serde_json::Value;

use super::world::World;

/// How many there are of each kind.
pub type Census = BTreeMap<String, usize>;

/// Questions in forms: service, action, version, and what stands once in the answer for each.
const QUESTIONS: [(&str, &str, &str, &str); 11] = [
    ("autoscaling", "DescribeAutoScalingGroups", "2011-01-01", "<AutoScalingGroupARN>"),
    ("ec2", "DescribeInstances", "2016-11-15", "<name>running</name>"),
    ("ec2", "DescribeLaunchTemplates", "2016-11-15", "<launchTemplateId>"),
    ("ec2", "DescribeSecurityGroups", "2016-11-15", "<groupDescription>"),
    ("ec2", "DescribeSubnets", "2016-11-15", "<subnetId>"),
    ("ec2", "DescribeVolumes", "2016-11-15", "<createTime>"),
    ("ec2", "DescribeVpcs", "2016-11-15", "<vpcId>"),
    ("elasticloadbalancing", "DescribeLoadBalancers", "2015-12-01", "<LoadBalancerArn>"),
    ("elasticloadbalancing", "DescribeTargetGroups", "2015-12-01", "<TargetGroupArn>"),
    ("iam", "ListInstanceProfiles", "2010-05-08", "<InstanceProfileName>"),
    ("iam", "ListRoles", "2010-05-08", "<RoleName>"),
];

impl World {
    /// What this world's account holds now.
    pub fn census(&self) -> Census {
        let aws = self.aws();
        let mut census = Census::new();
        for (service, action, version, mark) in QUESTIONS {
            let answer = aws.post(service, &aws.region, &[("Action", action), ("Version", version)]);
            census.insert(action.to_owned(), answer.matches(mark).count());
        }
        for (stack, status) in self.stacks() {
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
        let path = format!("/{}?list-type=2", self.bucket());
        let objects = aws.send("s3", &aws.region, "GET", &path, "").text();
        census.insert("objects".to_owned(), objects.matches("<Key>").count());
        census
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
