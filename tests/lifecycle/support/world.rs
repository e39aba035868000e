//! Everything around one cluster: a directory, an account with what a cluster finds in one, faults on the way to it, an API server.

use std::sync::Arc;

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::aws::Aws;
use super::element;
use super::fault_proxy::FaultProxy;
use super::invocation::Invocation;
use super::kubernetes::KubernetesApi;
use super::ministack::MiniStack;
use super::outcome::Outcome;
use super::workspace::Workspace;

/// A cluster's world, before the cluster.
pub struct World {
    pub workspace: Workspace,
    pub proxy: FaultProxy,
    pub api: KubernetesApi,
    own: Option<Arc<MiniStack>>,
}

/// Minutes of a day.
pub const DAY: i64 = 24 * 60;

/// The end of a pool, as pages and golden clusters write it; the coming one takes its place, whatever the year.
pub const WRITTEN_END: &str = "2027-06-01T18:00:00Z";

/// The next end of a pool on that day.
pub fn coming_end() -> String {
    let now = OffsetDateTime::now_utc();
    let is_over = (u8::from(now.month()), now.day(), now.hour()) >= (6, 1, 18);
    format!("{}{}", now.year() + i32::from(is_over), &WRITTEN_END[4..])
}

/// When a capacity block begins and ends.
#[derive(Clone)]
pub struct TimeOfBlock {
    pub begins: String,
    pub ends: String,
    /// 40 minutes before the end.
    machines_until: String,
}

impl TimeOfBlock {
    /// In minutes from now.
    pub fn from_now(begins: i64, ends: i64) -> Self {
        let now = OffsetDateTime::now_utc();
        let text = |minutes: i64| {
            let moment = now + Duration::minutes(minutes);
            format!("{}T{:02}:{:02}:00.000Z", moment.date(), moment.hour(), moment.minute())
        };
        Self { begins: text(begins), ends: text(ends), machines_until: text(ends - 40) }
    }

    /// The minute of the begin as `infra` prints it.
    pub fn begin(&self) -> String {
        minute(&self.begins)
    }

    /// The minute from which on there are no machines, as `infra` prints it.
    pub fn end_of_machines(&self) -> String {
        minute(&self.machines_until)
    }

    /// The begin as a date of every year.
    pub fn begin_cron(&self) -> String {
        cron(&self.begins)
    }

    /// The end of the machines as a date of every year.
    pub fn end_cron(&self) -> String {
        cron(&self.machines_until)
    }
}

/// The minute of a moment as `infra` prints it.
pub fn minute(text: &str) -> String {
    format!("{} UTC", text[..16].replace('T', " "))
}

/// The cron of a moment like `2026-11-18T11:30:00.000Z`, in every year.
fn cron(moment: &str) -> String {
    let number = |from: usize| moment[from..from + 2].parse::<u32>().unwrap();
    format!("{} {} {} {} *", number(14), number(11), number(8), number(5))
}

impl World {
    /// With a stand-in for AWS that others use too, each in an account of their own.
    pub fn of_golden(name: &str) -> Self {
        Self::make(name, None)
    }

    /// With a stand-in of its own.
    pub fn alone(name: &str) -> Self {
        Self::make(name, Some(Arc::new(MiniStack::start())))
    }

    /// Another account of the same stand-in.
    pub fn neighbour(&self, name: &str) -> Self {
        Self::make(name, self.own.clone())
    }

    fn make(name: &str, own: Option<Arc<MiniStack>>) -> Self {
        let url = own.as_deref().map_or_else(|| MiniStack::shared().url(), MiniStack::url).to_owned();
        let workspace = Workspace::of_golden(name);
        let api = KubernetesApi::start(&workspace.credentials());
        let world = Self { proxy: FaultProxy::start(&url), workspace, api, own };
        let aws = world.aws();
        aws.create_bucket(&world.bucket());
        let text = world.workspace.read("cluster.yaml").replace(WRITTEN_END, &coming_end());
        world.workspace.write("cluster.yaml", &text);
        if text.contains("keyName: ") {
            world.ec2("CreateKeyPair", &[("KeyName", &world.workspace.setting("keyName"))]);
        }
        if let Some(line) = text.lines().find(|line| line.starts_with("s3URI: ")) {
            // Later runs find the S3 URI in the live stacks.
            world.workspace.edit(|text| text.replace(&format!("{line}\n"), ""));
        }
        world.make_reservation();
        world.make_network();
        let cluster = world.cluster();
        world.api.follow_machines(&url, world.workspace.account(), &aws.region, &cluster);
        let pools = [
            ("gpu", 1),
            ("train", 4),
            ("workers", 1),
            ("flatcar", 1),
            ("ubuntu", 1),
            ("h100", 8),
            ("a100", 8),
            ("block", 8),
        ];
        for (pool, count) in pools {
            world.api.gpus(pool, count);
        }
        world.api.claim("efs", "Bound");
        world
    }

    pub fn cluster(&self) -> String {
        self.workspace.setting("clusterName")
    }

    pub fn bucket(&self) -> String {
        format!("assets-{}", self.workspace.account())
    }

    pub fn aws(&self) -> Aws {
        let url = self.own.as_deref().map_or_else(|| MiniStack::shared().url(), MiniStack::url);
        self.workspace.aws(url)
    }

    /// Sets the faults of this world from now on.
    pub fn control(&self, settings: Value) {
        match &self.own {
            Some(own) => own.control(settings),
            None => MiniStack::shared().control_account(self.workspace.account(), settings),
        }
    }

    /// Sets the faults of this world's account alone; its neighbours have none of them.
    pub fn control_account(&self, settings: Value) {
        let server = self.own.as_deref().unwrap_or_else(|| MiniStack::shared());
        server.control_account(self.workspace.account(), settings);
    }

    /// A command on its way through the proxy.
    pub fn infra<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        self.infra_in(&self.workspace, arguments)
    }

    /// The same in another directory.
    pub fn infra_in<'a>(
        &self,
        workspace: &Workspace,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Invocation {
        workspace.infra(arguments).endpoint(&self.proxy.url()).kubernetes(&self.api)
    }

    pub fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.infra(arguments).run()
    }

    /// A command at a pseudo-terminal, and what is typed there; all that is seen is on stdout.
    pub fn at_terminal(&self, arguments: &[&str], terminal: &str, typed: &str) -> Outcome {
        let words = [arguments, &["--endpoint-url", &self.proxy.url()]].concat().join(" ");
        self.workspace.at_terminal(&words, terminal).kubernetes(&self.api).input(typed).run()
    }

    /// `infra up` into this world's bucket.
    pub fn up<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.up_invocation(more).run()
    }

    pub fn up_invocation<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Invocation {
        let place = format!("s3://{}/clusters", self.bucket());
        let more: Vec<&str> = more.into_iter().collect();
        self.infra(["up", "--s3-uri", &place].into_iter().chain(more.iter().copied()))
    }

    /// Creates a hosted zone in the account; returns its id.
    pub fn make_zone(&self, name: &str, private: bool) -> String {
        let aws = self.aws();
        let vpc = if private {
            format!(
                "<VPC><VPCRegion>{}</VPCRegion><VPCId>{}</VPCId></VPC>",
                aws.region,
                self.make_vpc("10.9.0.0/16")
            )
        } else {
            String::new()
        };
        let body = format!(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><Name>{name}</Name>{vpc}\
             <CallerReference>{name}-{private}</CallerReference></CreateHostedZoneRequest>"
        );
        let answer = aws.send("route53", &aws.region, "POST", "/2013-04-01/hostedzone", &body);
        element(&answer.text(), "Id").expect("a zone's id").rsplit('/').next().unwrap().to_owned()
    }

    /// The records of a hosted zone, as Route 53 shows them.
    pub fn records(&self, zone: &str) -> String {
        let aws = self.aws();
        let path = format!("/2013-04-01/hostedzone/{zone}/rrset");
        aws.send("route53", &aws.region, "GET", &path, "").text()
    }

    /// Deletes every record of a name, of any type.
    pub fn delete_records(&self, zone: &str, name: &str) {
        let aws = self.aws();
        let path = format!("/2013-04-01/hostedzone/{zone}/rrset");
        for record in self.records(zone).split("<ResourceRecordSet>").skip(1) {
            let record = record.split("</ResourceRecordSet>").next().unwrap();
            if !record.contains(&format!("<Name>{name}")) {
                continue;
            }
            let body = format!(
                "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch><Changes><Change>\
                 <Action>DELETE</Action><ResourceRecordSet>{record}</ResourceRecordSet></Change></Changes></ChangeBatch>\
                 </ChangeResourceRecordSetsRequest>"
            );
            let answer = aws.send("route53", &aws.region, "POST", &path, &body);
            assert_eq!(answer.status(), 200, "{}", answer.text());
        }
    }

    pub fn put_record(&self, zone: &str, name: &str, kind: &str, value: &str) {
        let aws = self.aws();
        let body = format!(
            "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch><Changes><Change>\
             <Action>CREATE</Action><ResourceRecordSet><Name>{name}</Name><Type>{kind}</Type><TTL>60</TTL><ResourceRecords>\
             <ResourceRecord><Value>{value}</Value></ResourceRecord></ResourceRecords></ResourceRecordSet></Change></Changes>\
             </ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        let path = format!("/2013-04-01/hostedzone/{zone}/rrset");
        let answer = aws.send("route53", &aws.region, "POST", &path, &body);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }

    pub fn ec2(&self, action: &str, more: &[(&str, &str)]) -> String {
        let aws = self.aws();
        let form: Vec<(&str, &str)> =
            [("Action", action), ("Version", EC2)].into_iter().chain(more.iter().copied()).collect();
        aws.post("ec2", &aws.region, &form)
    }

    pub fn made(&self, action: &str, more: &[(&str, &str)], id: &str) -> String {
        let answer = self.ec2(action, more);
        element(&answer, id).unwrap_or_else(|| panic!("{action}: {answer}")).to_owned()
    }

    pub fn make_vpc(&self, range: &str) -> String {
        self.made("CreateVpc", &[("CidrBlock", range)], "vpcId")
    }

    /// The capacity reservation that cluster.yaml names, under the id that it gets here; for a pool on the Deep Learning image a
    /// capacity block from tomorrow on.
    fn make_reservation(&self) {
        let text = self.workspace.read("cluster.yaml");
        let Some(written) = word_with(&text, "cr-") else { return };
        if text.contains("image: deep-learning") {
            let id = self.put_block("", &TimeOfBlock::from_now(DAY, 3 * DAY));
            return self.workspace.edit(|text| text.replace(&written, &id));
        }
        let id = self.made(
            "CreateCapacityReservation",
            &[
                ("InstanceType", "g6e.12xlarge"),
                ("InstancePlatform", "Linux/UNIX"),
                ("AvailabilityZone", "us-west-2b"),
                ("InstanceCount", "4"),
            ],
            "capacityReservationId",
        );
        self.workspace.edit(|text| text.replace(&written, &id));
    }

    /// Makes a capacity block of two machines, or gives the one with that id other times; returns its id.
    pub fn put_block(&self, id: &str, times: &TimeOfBlock) -> String {
        let (begins, ends) = (times.begins.as_str(), times.ends.as_str());
        let form = [
            ("CapacityReservationId", id),
            ("InstanceType", "p5.48xlarge"),
            ("AvailabilityZone", "us-west-2a"),
            ("InstanceCount", "2"),
            ("StartDate", begins),
            ("EndDate", ends),
        ];
        self.made("PutCapacityBlock", &form, "capacityReservationId")
    }

    /// The VPC and the file system that cluster.yaml adopts, under the ids that they get here.
    fn make_network(&self) {
        let text = self.workspace.read("cluster.yaml");
        let Some(vpc_written) = word_with(&text, "vpc-") else { return };
        let vpc = self.make_vpc("10.40.0.0/16");
        self.ec2("ModifyVpcAttribute", &[("VpcId", &vpc), ("EnableDnsSupport.Value", "true")]);
        self.ec2("ModifyVpcAttribute", &[("VpcId", &vpc), ("EnableDnsHostnames.Value", "true")]);
        let gateway = self.made("CreateInternetGateway", &[], "internetGatewayId");
        self.ec2("AttachInternetGateway", &[("VpcId", &vpc), ("InternetGatewayId", &gateway)]);
        let address = self.made("AllocateAddress", &[("Domain", "vpc")], "allocationId");
        let mut edits = vec![(vpc_written, vpc.clone())];
        let subnet_lines: Vec<&str> = text.lines().filter(|line| line.contains("id: subnet-")).collect();
        let mut nat = String::new();
        for (number, line) in subnet_lines.iter().enumerate() {
            let written = word_with(line, "subnet-").unwrap();
            let zone = word_with(line, "eu-west-1").unwrap();
            let range = format!("10.40.{number}.0/24");
            let subnet = self.made(
                "CreateSubnet",
                &[("VpcId", &vpc), ("CidrBlock", &range), ("AvailabilityZone", &zone)],
                "subnetId",
            );
            let table = self.made("CreateRouteTable", &[("VpcId", &vpc)], "routeTableId");
            self.ec2("AssociateRouteTable", &[("RouteTableId", &table), ("SubnetId", &subnet)]);
            let everywhere = ("DestinationCidrBlock", "0.0.0.0/0");
            if line.contains("public: true") {
                self.ec2("CreateRoute", &[("RouteTableId", &table), everywhere, ("GatewayId", &gateway)]);
                if nat.is_empty() {
                    nat = self.made(
                        "CreateNatGateway",
                        &[("SubnetId", &subnet), ("AllocationId", &address)],
                        "natGatewayId",
                    );
                }
            } else {
                self.ec2("CreateRoute", &[("RouteTableId", &table), everywhere, ("NatGatewayId", &nat)]);
            }
            edits.push((written, subnet));
        }
        if let Some(written) = word_with(&text, "fs-") {
            edits.push((written, self.make_file_system()));
        }
        self.workspace
            .edit(|text| edits.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to)));
    }

    /// A pod of a job on some node of a pool.
    pub fn run_job(&self, pool: &str) -> String {
        let node = self
            .api
            .nodes()
            .into_iter()
            .find(|node| node["metadata"]["labels"]["infra.internal/pool"] == pool)
            .unwrap();
        let node = node["metadata"]["name"].as_str().unwrap().to_owned();
        self.api.set_pods(vec![json!({
            "metadata": {"namespace": "default", "name": "train-0-abcde", "labels": {"batch.kubernetes.io/job-name": "train"}},
            "spec": {"nodeName": node},
            "status": {"phase": "Running"},
        })]);
        node
    }

    pub fn make_file_system(&self) -> String {
        let aws = self.aws();
        let body = json!({"CreationToken": self.workspace.account(), "Encrypted": true}).to_string();
        let answer = aws.send("elasticfilesystem", &aws.region, "POST", "/2015-02-01/file-systems", &body);
        let made: Value = serde_json::from_str(&answer.text()).unwrap();
        made["FileSystemId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }
}

const EC2: &str = "2016-11-15";

/// The first word that begins so.
fn word_with(text: &str, prefix: &str) -> Option<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.into_iter().find(|word| word.starts_with(prefix) && word.len() > prefix.len()).map(str::to_owned)
}
