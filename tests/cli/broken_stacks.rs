//! Stack templates with one mistake each: our check names it before anything is written. The verdict of cfn-lint on the same mistake
//! is recorded beside it, so that the differences are known.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use infra::blueprint::{Blueprint, StackPart};
use infra::check::check_stack;
use infra::credentials::{CredentialStore, Credentials};
use infra::render::{AssetSources, Templates, render_assets};

use crate::golden::workspace;
use crate::support::{Outcome, Workspace, tool};

/// One mistake: in which template, what is replaced by what, what our check says, and whether cfn-lint finds it too.
type Mistake = (&'static str, &'static str, &'static str, &'static str, bool);

const NETWORK: &str = "network";
const STORAGE: &str = "storage";
const CONTROL_PLANE: &str = "control-plane";
const POOL: &str = "pool";

const MISTAKES: [Mistake; 44] = [
    (
        NETWORK,
        "CidrBlock: {{ network.vpc_cidr }}",
        "CidrBlok: {{ network.vpc_cidr }}",
        "Vpc.CidrBlok: there is no such property; did you mean CidrBlock?",
        true,
    ),
    (
        NETWORK,
        "Type: AWS::EC2::InternetGateway",
        "Type: AWS::EC2::InternetGatway",
        "'AWS::EC2::InternetGatway' is not a known resource type; did you mean AWS::EC2::InternetGateway?",
        true,
    ),
    (
        NETWORK,
        "VpcId: {Ref: Vpc}\n      InternetGatewayId",
        "VpcId: {Ref: Vcp}\n      InternetGatewayId",
        "it refers to 'Vcp', which is neither a resource nor a parameter",
        true,
    ),
    (
        NETWORK,
        "EnableDnsSupport: true",
        "EnableDnsSupport: perhaps",
        "Vpc.EnableDnsSupport: expected boolean, found a string",
        true,
    ),
    (
        NETWORK,
        "GatewayId: {Ref: InternetGateway}\n{%- for",
        "GatewayId: {Ref: InternetGateway}\n      RouteId: x\n{%- for",
        "PublicDefaultRoute.RouteId: there is no such property",
        true,
    ),
    (
        NETWORK,
        "DependsOn: GatewayAttachment\n    Properties:\n      RouteTableId",
        "DependsOn: Gateway\n    Properties:\n      RouteTableId",
        "it refers to 'Gateway', which is neither a resource nor a parameter",
        true,
    ),
    (NETWORK, "      IpProtocol: {{ rule.protocol }}\n", "", ": IpProtocol is missing", true),
    (
        NETWORK,
        "FromPort: {{ rule.port }}",
        "FromPort: 1",
        "the table of who may talk to whom does not have this rule",
        false,
    ),
    (
        NETWORK,
        "CidrIp: {{ rule.from_range }}",
        "CidrIp: 0.0.0.0/0",
        "the table of who may talk to whom does not have this rule",
        false,
    ),
    (
        NETWORK,
        "      SecurityGroupEgress:\n",
        "      SecurityGroupIngress:\n      - {IpProtocol: tcp, FromPort: 22, ToPort: 22, CidrIp: 0.0.0.0/0}\n      SecurityGroupEgress:\n",
        "rules belong in the table of who may talk to whom",
        false,
    ),
    (
        NETWORK,
        "{Fn::GetAtt: [{{ group.resource }}, GroupId]}",
        "{Fn::GetAtt: [{{ group.resource }}, Id2]}",
        "has no such attribute",
        true,
    ),
    (NETWORK, "VpcEndpointType: Gateway", "VpcEndpointType: Gate", "\"Gate\" is not one of", true),
    (NETWORK, "  PrivateZone:\n", "  Private-Zone:\n", "a logical id has letters and digits only", true),
    (
        NETWORK,
        "Outputs:\n  VpcId:",
        "Parameters:\n  Spare: {Type: String, Description: x}\nOutputs:\n  VpcId:",
        "Spare: nothing uses this parameter",
        true,
    ),
    (
        STORAGE,
        "    DeletionPolicy: RetainExceptOnCreate\n",
        "",
        "it holds data, but its DeletionPolicy would delete it",
        true,
    ),
    (
        STORAGE,
        "    UpdateReplacePolicy: Retain\n",
        "    UpdateReplacePolicy: Delete\n",
        "it holds data, but its UpdateReplacePolicy would delete it",
        false,
    ),
    (
        STORAGE,
        "ThroughputMode: {{ storage.throughput_mode }}",
        "ThroughputMode: [elastic]",
        "FileSystem.ThroughputMode: [\"elastic\"] is not one of bursting, elastic, provisioned",
        true,
    ),
    (
        STORAGE,
        "Encrypted: true",
        "Encrypted: true\n      FileSystemId: fs-1",
        "FileSystem.FileSystemId: AWS sets this property; a template cannot",
        true,
    ),
    (
        STORAGE,
        "SubnetId: {Ref: {{ target.subnet }}Id}",
        "SubnetId: {Ref: PublicSubnet0Id}",
        "is in the same subnet; EFS allows one mount target per availability zone",
        true,
    ),
    (
        STORAGE,
        "SecurityGroups: [{Ref: FileSystemGroupId}]",
        "SecurityGroups: {Ref2: FileSystemGroupId}",
        "MountTarget0.SecurityGroups: expected array, found an object",
        true,
    ),
    (STORAGE, "      Name: {{ efs_host }}\n", "", "FileSystemRecord: Name is missing", true),
    (
        STORAGE,
        "    Description: the private hosted zone, from the network stack\n",
        "",
        "PrivateZoneId: the parameter has no description",
        false,
    ),
    (
        CONTROL_PLANE,
        "Action: \"s3:GetObject\"",
        "Action: \"s3:*\"",
        "OwnConfiguration allows s3:*: name the actions that are needed",
        false,
    ),
    (
        CONTROL_PLANE,
        "Action: \"ec2:AttachVolume\"\n            Resource: {Fn::Sub: \"arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:instance/*\"}",
        "Action: \"ec2:AttachVolume\"\n            Resource: \"*\"",
        "AttachToOwnMachines may change every resource of the account",
        false,
    ),
    (
        CONTROL_PLANE,
        "SetLoadBalancerPoliciesOfListener\"\n            Resource: \"*\"\n            Condition:\n              StringEquals: {\"aws:ResourceTag/{{ kubernetes_cluster_tag }}\": owned}",
        "SetLoadBalancerPoliciesOfListener\"\n            Resource: \"*\"",
        "ChangeOwnLoadBalancers may change every resource of the account",
        false,
    ),
    (
        CONTROL_PLANE,
        "DeletionPolicy: Snapshot",
        "DeletionPolicy: Delete",
        "EtcdVolume0: it holds data, but its DeletionPolicy would delete it",
        false,
    ),
    (
        CONTROL_PLANE,
        "VolumeType: gp3\n      Encrypted: true",
        "VolumeTyp: gp3\n      Encrypted: true",
        "EtcdVolume0.VolumeTyp: there is no such property; did you mean VolumeType?",
        true,
    ),
    (
        CONTROL_PLANE,
        "HttpTokens: required, HttpPutResponseHopLimit: 1, HttpEndpoint: enabled}\n        BlockDeviceMappings:\n        - DeviceName: /dev/xvda\n          Ebs: {{ root_disk.etcd }}",
        "HttpTokenz: required}\n        BlockDeviceMappings:\n        - DeviceName: /dev/xvda\n          Ebs: {{ root_disk.etcd }}",
        "HttpTokenz: there is no such property; did you mean HttpTokens?",
        true,
    ),
    (
        CONTROL_PLANE,
        "      MinSize: \"1\"\n",
        "      MinSize: \"2\"\n",
        "EtcdMember0.MinSize: 2 is more than MaxSize 1",
        true,
    ),
    (CONTROL_PLANE, "      MaxSize: \"1\"\n", "", "EtcdMember0: MaxSize is missing", true),
    (
        CONTROL_PLANE,
        "LatestVersionNumber]}\n      Tags: {{ member.group_tags }}",
        "LatestVersion]}\n      Tags: {{ member.group_tags }}",
        "has no such attribute",
        true,
    ),
    (
        CONTROL_PLANE,
        "    DependsOn: {{ controllers.after }}\n",
        "    DependsOn: Nobody\n",
        "it refers to 'Nobody', which is neither a resource nor a parameter",
        true,
    ),
    (CONTROL_PLANE, "      Type: network\n", "      Type: netwerk\n", "\"netwerk\" is not one of", true),
    (
        CONTROL_PLANE,
        "Protocol: TCP\n      Port: 6443",
        "Protocol: TCP\n      Port: sixty",
        "InternalTargets.Port: expected integer, found a string",
        true,
    ),
    (
        CONTROL_PLANE,
        "LoadBalancerArn: {Ref: {{ balancer.name }}LoadBalancer}",
        "LoadBalancerArn: {Ref: {{ balancer.name }}Balancer}",
        "it refers to 'InternalBalancer', which is neither a resource nor a parameter",
        true,
    ),
    (
        CONTROL_PLANE,
        "  EtcdProfile{{ member.index }}:\n    Type: AWS::IAM::InstanceProfile\n",
        "  EtcdProfile{{ member.index }}:\n    Type: AWS::IAM::InstanceProfile\n    DependsOn: EtcdMember{{ member.index }}\n",
        "these depend on each other in a circle",
        true,
    ),
    (
        CONTROL_PLANE,
        "Roles: [{Ref: ControllerRole}]",
        "Roles: [{Ref: ControllerRole}, 3, []]",
        "ControllerProfile.Roles[2]: expected string, found an array",
        true,
    ),
    (
        POOL,
        "MinSize: \"{{ pool.min_count }}\"",
        "MinSize: \"99\"",
        "Nodes.MinSize: 99 is more than MaxSize",
        true,
    ),
    (
        POOL,
        "DesiredCapacity: {Ref: DesiredCapacity}",
        "DesiredCapacity: \"1\"",
        "DesiredCapacity: nothing uses this parameter",
        true,
    ),
    (
        POOL,
        "InstanceType: {{ pool.instance_type }}\n        IamInstanceProfile",
        "InstanceTyp: {{ pool.instance_type }}\n        IamInstanceProfile",
        "InstanceTyp: there is no such property; did you mean InstanceType?",
        true,
    ),
    (
        POOL,
        "UserData: {{ pool.user_data }}",
        "UserData: {Fn::Base64: \"{% for type in pool.instance_types %}{{ pool.user_data | length }}{% endfor %}@LONG@\"}",
        "EC2 allows 16384",
        false,
    ),
    (
        POOL,
        "Action: [\"ec2:DescribeInstances\", \"ec2:DescribeRegions\"]",
        "Action: [\"ec2:TerminateInstances\"]",
        "FindItself may change every resource of the account",
        false,
    ),
    (
        POOL,
        "IamInstanceProfile: {Arn: {Fn::GetAtt: [NodeProfile, Arn]}}",
        "IamInstanceProfile: {Arn: {Fn::GetAtt: [NodeProfil, Arn]}}",
        "it refers to 'NodeProfil.Arn', but there is no such resource",
        true,
    ),
    (POOL, "Resources:\n  NodeRole:", "Resources2:\n  NodeRole:", "Resources: there are none", true),
];

fn golden() -> (Workspace, Blueprint, Credentials) {
    let workspace = workspace(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/ha-gpu-efs"));
    let cluster = infra::config::load(&workspace.path("cluster.yaml")).unwrap().value;
    let blueprint = Blueprint::new(cluster).unwrap();
    let store = CredentialStore::open(&workspace.path("credentials"), || {}).unwrap();
    let credentials = Credentials::read(&store, &blueprint.identities).unwrap();
    (workspace, blueprint, credentials)
}

fn broken_template(stack: &str, old: &str, new: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("stacks/{stack}.yaml.tera"));
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(old), "{stack} has no longer: {old}");
    text.replacen(old, &new.replace("@LONG@", &"x".repeat(17_000)), 1)
}

#[test]
fn each_mistake_is_named_and_cfn_lint_is_compared() {
    let (_workspace, blueprint, credentials) = golden();
    let output = Workspace::new();
    let mut wrong = Vec::new();
    for (number, (stack, old, new, message, _)) in MISTAKES.iter().enumerate() {
        let overrides =
            BTreeMap::from([(format!("stacks/{stack}.yaml.tera"), broken_template(stack, old, new))]);
        let sources = AssetSources {
            blueprint: &blueprint,
            credentials: &credentials,
            templates: &Templates::new(&overrides).unwrap(),
            extra_manifests: &BTreeMap::new(),
            snippets: &BTreeMap::new(),
        };
        let assets = render_assets(&sources).unwrap_or_else(|error| panic!("{message}: {error}"));
        let part = match *stack {
            NETWORK => StackPart::Network,
            STORAGE => StackPart::Storage,
            CONTROL_PLANE => StackPart::ControlPlane,
            _ => StackPart::Pool("gpu".parse().unwrap()),
        };
        let template = assets.templates.iter().find(|template| template.part == part).unwrap();
        output.write(&format!("{number}.json"), &*template.file.bytes);
        let findings = check_stack(template, &blueprint.rules);
        let text: Vec<String> =
            findings.iter().map(|finding| format!("{}: {}", finding.position, finding.message)).collect();
        if !text.iter().any(|line| line.contains(message)) {
            wrong.push(format!("{message}\n  not in {text:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let linted = lint(&output);
    let differ: Vec<String> = MISTAKES
        .iter()
        .enumerate()
        .filter(|(number, (.., expected))| linted.contains(number) != *expected)
        .map(|(number, (_, _, _, message, expected))| {
            format!("{number} {message}: cfn-lint was expected to find it: {expected}")
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The numbers of the files that cfn-lint has an error or a warning for.
fn lint(output: &Workspace) -> Vec<usize> {
    let mut command = tool("venv/bin/cfn-lint");
    command.args(["--regions", "us-west-2", "--format", "json", "--"]);
    command.args((0..MISTAKES.len()).map(|number| output.path(&format!("{number}.json"))));
    let run = Outcome::of(&mut command);
    let findings: serde_json::Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let file = |finding: &serde_json::Value| {
        let name = finding["Filename"].as_str().unwrap();
        Path::new(name).file_stem().unwrap().to_str().unwrap().parse().unwrap()
    };
    findings.as_array().unwrap().iter().map(file).collect()
}

#[test]
fn a_broken_override_stops_render_before_anything_is_written() {
    let workspace = workspace(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/minimal"));
    fs::create_dir_all(workspace.path("templates/stacks")).unwrap();
    let text =
        broken_template(NETWORK, "CidrBlock: {{ network.vpc_cidr }}", "CidrBlok: {{ network.vpc_cidr }}");
    workspace.write("templates/stacks/network.yaml.tera", text);
    let run = workspace.infra(["render", "stack"]).expect_code(2);
    assert!(
        run.stderr.contains("stacks/network.json: Vpc.CidrBlok: there is no such property"),
        "{}",
        run.stderr
    );
    assert!(!workspace.path("stacks").exists() && !workspace.path("userdata").exists());
    workspace.write("templates/stacks/network.yaml.tera", "Resources: [\n");
    workspace.infra(["render", "stack"]).expect_code(2).expect_stderr("stacks/network.yaml");
}

#[test]
fn an_override_may_refer_to_a_security_group_in_any_form() {
    let workspace = workspace(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/minimal"));
    fs::create_dir_all(workspace.path("templates/stacks")).unwrap();
    for reference in ["{Fn::GetAtt: \"{{ rule.to }}.GroupId\"}", "{Ref: {{ rule.to }}}"] {
        let text = broken_template(NETWORK, "{Fn::GetAtt: [{{ rule.to }}, GroupId]}", reference);
        workspace.write("templates/stacks/network.yaml.tera", text);
        workspace.infra(["render", "stack"]).expect_code(0);
    }
}

#[test]
fn clusters_beyond_cloudformations_limits_are_refused_with_the_number() {
    let workspace = Workspace::with_cluster();
    let ranges: Vec<String> = (0..500).map(|n| format!("192.{}.{}.0/24", n / 250, n % 250)).collect();
    let text = format!("{}api: {{allowedCIDRs: [{}]}}\n", crate::support::MINIMAL, ranges.join(", "));
    workspace.write("cluster.yaml", text);
    let run = workspace.infra(["validate"]).expect_code(2);
    assert!(run.stdout.contains("stacks/network.json: Resources: there are 5"), "{}", run.stdout);
    assert!(run.stdout.contains("CloudFormation allows 500"), "{}", run.stdout);
}
