//! Resources that other users and Kubernetes create: load balancers of both generations, mount targets, network interfaces, security
//! groups.

use serde_json::{Value, json};

use super::http::{Message, ask};
use super::world::World;
use super::{authorization, element};

pub const BALANCERS: &str = "2015-12-01";
pub const CLASSIC_BALANCERS: &str = "2012-06-01";

impl World {
    /// The id of something of the cluster, by its tag.
    #[track_caller]
    pub fn tagged(&self, action: &str, id: &str) -> String {
        let cluster = self.cluster();
        let filters = [("Filter.1.Name", "tag:infra:cluster"), ("Filter.1.Value.1", cluster.as_str())];
        let answer = self.ec2(action, &filters);
        element(&answer, id).unwrap_or_else(|| panic!("{action}: {answer}")).to_owned()
    }

    /// A call about load balancers; the version selects the generation.
    pub fn balancers(&self, version: &str, action: &str, more: &[(&str, &str)]) -> String {
        let aws = self.aws();
        let form: Vec<(&str, &str)> =
            [("Action", action), ("Version", version)].into_iter().chain(more.iter().copied()).collect();
        aws.post("elasticloadbalancing", &aws.region, &form)
    }

    /// A load balancer of the second generation in the cluster's network.
    #[track_caller]
    pub fn make_balancer(&self, name: &str, tags: &[(&str, &str)]) {
        let mut form = vec![
            ("Name".to_owned(), name.to_owned()),
            ("Type".to_owned(), "network".to_owned()),
            ("Subnets.member.1".to_owned(), self.tagged("DescribeSubnets", "subnetId")),
        ];
        form.extend(numbered("Tags.member", tags));
        let answer = self.balancers(BALANCERS, "CreateLoadBalancer", &borrowed(&form));
        assert!(answer.contains("<LoadBalancerArn>"), "{answer}");
    }

    /// A classic load balancer as the cloud controller manager creates it.
    #[track_caller]
    pub fn make_classic_balancer(&self, name: &str, subnet: &str, tags: &[(&str, &str)]) {
        let mut form = vec![
            ("LoadBalancerName".to_owned(), name.to_owned()),
            ("Subnets.member.1".to_owned(), subnet.to_owned()),
            ("Listeners.member.1.Protocol".to_owned(), "TCP".to_owned()),
        ];
        form.extend(numbered("Tags.member", tags));
        let answer = self.balancers(CLASSIC_BALANCERS, "CreateLoadBalancer", &borrowed(&form));
        assert!(answer.contains("<DNSName>"), "{answer}");
    }

    /// A security group as Kubernetes creates it for a load balancer, and a rule of ours that names it.
    #[track_caller]
    pub fn make_group_of_kubernetes(&self) -> String {
        let (vpc, owned) =
            (self.tagged("DescribeVpcs", "vpcId"), format!("kubernetes.io/cluster/{}", self.cluster()));
        let group = self.made(
            "CreateSecurityGroup",
            &[
                ("GroupName", "k8s-elb-a1b2c3"),
                ("GroupDescription", "x"),
                ("VpcId", &vpc),
                ("TagSpecification.1.ResourceType", "security-group"),
                ("TagSpecification.1.Tag.1.Key", &owned),
                ("TagSpecification.1.Tag.1.Value", "owned"),
            ],
            "groupId",
        );
        let ours = self.tagged("DescribeSecurityGroups", "groupId");
        self.ec2(
            "AuthorizeSecurityGroupIngress",
            &[
                ("GroupId", &ours),
                ("IpPermissions.1.IpProtocol", "tcp"),
                ("IpPermissions.1.FromPort", "30000"),
                ("IpPermissions.1.ToPort", "30000"),
                ("IpPermissions.1.Groups.1.GroupId", &group),
            ],
        );
        group
    }

    /// The names of all classic load balancers.
    pub fn classic_balancers(&self) -> Vec<String> {
        let answer = self.balancers(CLASSIC_BALANCERS, "DescribeLoadBalancers", &[]);
        let names = answer.split("<LoadBalancerName>").skip(1);
        names.map(|part| part.split('<').next().unwrap().to_owned()).collect()
    }

    /// An unused network interface.
    pub fn make_interface(&self, subnet: &str, description: &str, tags: &[(&str, &str)]) -> String {
        let mut form = vec![
            ("SubnetId".to_owned(), subnet.to_owned()),
            ("Description".to_owned(), description.to_owned()),
            ("TagSpecification.1.ResourceType".to_owned(), "network-interface".to_owned()),
        ];
        form.extend(numbered("TagSpecification.1.Tag", tags));
        self.made("CreateNetworkInterface", &borrowed(&form), "networkInterfaceId")
    }

    /// The ids of all network interfaces.
    pub fn interfaces(&self) -> Vec<String> {
        let answer = self.ec2("DescribeNetworkInterfaces", &[]);
        let ids = answer.split("<networkInterfaceId>").skip(1);
        ids.map(|part| part.split('<').next().unwrap().to_owned()).collect()
    }

    /// Creates a mount target; returns its id.
    #[track_caller]
    pub fn make_mount_target(&self, file_system: &str, subnet: &str, groups: &[&str]) -> String {
        let aws = self.aws();
        let body =
            json!({"FileSystemId": file_system, "SubnetId": subnet, "SecurityGroups": groups}).to_string();
        let answer = aws.send("elasticfilesystem", &aws.region, "POST", "/2015-02-01/mount-targets", &body);
        let made: Value = serde_json::from_str(&answer.text()).unwrap();
        made["MountTargetId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// The mount targets of a file system.
    pub fn mount_targets(&self, file_system: &str) -> Vec<String> {
        let path = format!("mount-targets?FileSystemId={file_system}");
        let targets = self.list_of_file_systems(&path, "MountTargets");
        targets.iter().map(|target| target["MountTargetId"].as_str().unwrap().to_owned()).collect()
    }

    /// The ids of all file systems.
    pub fn file_systems(&self) -> Vec<String> {
        let systems = self.list_of_file_systems("file-systems", "FileSystems");
        systems.iter().map(|system| system["FileSystemId"].as_str().unwrap().to_owned()).collect()
    }

    /// A security group, with a rule that lets another one in.
    pub fn make_group(&self, vpc: &str, name: &str, lets_in: Option<&str>) -> String {
        let form = [("GroupName", name), ("GroupDescription", "x"), ("VpcId", vpc)];
        let group = self.made("CreateSecurityGroup", &form, "groupId");
        if let Some(other) = lets_in {
            self.ec2(
                "AuthorizeSecurityGroupIngress",
                &[
                    ("GroupId", &group),
                    ("IpPermissions.1.IpProtocol", "tcp"),
                    ("IpPermissions.1.FromPort", "5432"),
                    ("IpPermissions.1.ToPort", "5432"),
                    ("IpPermissions.1.Groups.1.GroupId", other),
                ],
            );
        }
        group
    }

    /// Puts the cluster's tag on something of EC2.
    pub fn tag(&self, id: &str) {
        let cluster = self.cluster();
        self.ec2(
            "CreateTags",
            &[("ResourceId.1", id), ("Tag.1.Key", "infra:cluster"), ("Tag.1.Value", &cluster)],
        );
    }

    /// A call of a service that speaks JSON, as `kms` and its target `TrentService`.
    pub fn json_call(&self, service: &str, target: &str, operation: &str, body: &Value) -> Value {
        let aws = self.aws();
        let who = authorization(self.workspace.account(), &aws.region, service);
        let target = format!("{target}.{operation}");
        let headers = [
            ("Authorization", who.as_str()),
            ("Content-Type", "application/x-amz-json-1.1"),
            ("X-Amz-Target", target.as_str()),
        ];
        let request = Message::request("POST", "/", &headers, body.to_string().as_bytes());
        serde_json::from_str(&ask(aws.url(), request).unwrap().text()).unwrap()
    }

    /// What the tagging service lists of the cluster, even if it is deleted already.
    pub fn listed_by_tag(&self) -> Vec<String> {
        let filters = json!({"TagFilters": [{"Key": "infra:cluster", "Values": [self.cluster()]}], "ResourcesPerPage": 100});
        let mut found = Vec::new();
        let mut token = Value::String(String::new());
        loop {
            let mut body = filters.clone();
            body["PaginationToken"] = token.clone();
            let answer =
                self.json_call("tagging", "ResourceGroupsTaggingAPI_20170126", "GetResources", &body);
            let list = answer["ResourceTagMappingList"].as_array().unwrap_or_else(|| panic!("{answer}"));
            found.extend(list.iter().map(|entry| entry["ResourceARN"].as_str().unwrap().to_owned()));
            match answer["PaginationToken"].as_str() {
                Some(next) if !next.is_empty() => token = Value::String(next.to_owned()),
                _ => return found,
            }
        }
    }
}

/// Keys and values as forms number them.
fn numbered(prefix: &str, tags: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = tags.iter().enumerate().flat_map(|(index, (key, value))| {
        let place = format!("{prefix}.{}", index + 1);
        [(format!("{place}.Key"), (*key).to_owned()), (format!("{place}.Value"), (*value).to_owned())]
    });
    pairs.collect()
}

fn borrowed(form: &[(String, String)]) -> Vec<(&str, &str)> {
    form.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}
