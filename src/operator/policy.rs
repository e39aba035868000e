//! The least that an operator must be allowed: our own calls, and what CloudFormation does with the caller's rights.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::aws::{ACTIONS, Action, Scope};
use crate::check::handler_permissions;
use crate::config::Cluster;
use crate::config::values::S3Uri;

/// What IAM allows in a managed policy, white space aside.
const LARGEST_POLICY: usize = 6144;

/// Services whose actions AWS lists for types of ours, for features that no stack of ours uses.
const UNUSED_SERVICES: [&str; 6] =
    ["cognito-idp", "managed-fleets", "ssm", "vpc-lattice", "vpce", "cloudwatch"];

/// Services that know no region.
const GLOBAL_SERVICES: [&str; 3] = ["iam", "route53", "sts"];

/// Actions that come along with one of ours: encrypted objects, and objects in a bucket that keeps no versions.
const IMPLIED_ACTIONS: [Action; 3] = [
    Action { name: "kms:Decrypt", scope: Scope::Key },
    Action { name: "kms:GenerateDataKey", scope: Scope::Key },
    Action { name: "s3:DeleteObject", scope: Scope::Objects },
];

/// A managed policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The name of the policy.
    pub name: String,
    /// The policy document.
    pub document: Value,
}

/// The policies that together let an operator create, inspect and delete a cluster.
#[must_use]
pub(crate) fn operator_policies(cluster: &Cluster, place: &S3Uri) -> Vec<Policy> {
    let arns = ClusterArns::new(cluster, place);
    let mut statements = own_statements(&arns);
    statements.extend(stack_statements(&arns));
    pack_statements(statements)
        .into_iter()
        .enumerate()
        .map(|(index, statements)| Policy {
            name: format!("infra-{}-{}", cluster.name, index + 1),
            document: json!({"Version": "2012-10-17", "Statement": statements}),
        })
        .collect()
}

/// The ARNs of the cluster's resources.
struct ClusterArns {
    region: String,
    stacks: Vec<String>,
    bucket: String,
    objects: String,
    key: String,
    service_roles: String,
    groups: String,
    roles: String,
    profiles: String,
}

impl ClusterArns {
    fn new(cluster: &Cluster, place: &S3Uri) -> Self {
        let (partition, region, name) = (cluster.region.partition(), &cluster.region, &cluster.name);
        Self {
            region: region.to_string(),
            stacks: vec![
                format!("arn:{partition}:cloudformation:{region}:*:stack/{name}-*/*"),
                format!("arn:{partition}:cloudformation:{region}:*:changeSet/infra-*/*"),
            ],
            bucket: format!("arn:{partition}:s3:::{}", place.bucket()),
            objects: format!("arn:{partition}:s3:::{}/{}{name}/*", place.bucket(), place.key_prefix()),
            key: cluster.kms_key.to_string(),
            service_roles: format!("arn:{partition}:iam::*:role/aws-service-role/*"),
            groups: format!(
                "arn:{partition}:autoscaling:{region}:*:autoScalingGroup:*:autoScalingGroupName/{name}-*"
            ),
            roles: format!("arn:{partition}:iam::*:role/{name}-*"),
            profiles: format!("arn:{partition}:iam::*:instance-profile/{name}-*"),
        }
    }

    fn resource(&self, scope: Scope) -> Value {
        match scope {
            Scope::Everything => json!("*"),
            Scope::Stacks => json!(self.stacks),
            Scope::Bucket => json!(self.bucket),
            Scope::Objects => json!(self.objects),
            Scope::Key => json!(self.key),
            Scope::ServiceRoles => json!(self.service_roles),
            Scope::Groups => json!(self.groups),
        }
    }
}

fn service_of(action: &str) -> &str {
    action.split(':').next().unwrap_or_default()
}

/// Our own calls, each as narrow as AWS allows.
fn own_statements(arns: &ClusterArns) -> Vec<Value> {
    let mut by_scope: BTreeMap<(Scope, bool), BTreeSet<&str>> = BTreeMap::new();
    for action in ACTIONS.iter().chain(&IMPLIED_ACTIONS) {
        let global = GLOBAL_SERVICES.contains(&service_of(action.name));
        by_scope.entry((action.scope, global)).or_default().insert(action.name);
    }
    let statement = |((scope, global), actions): ((Scope, bool), BTreeSet<&str>)| {
        let mut statement = json!({"Effect": "Allow", "Action": actions, "Resource": arns.resource(scope)});
        if scope == Scope::Everything && !global {
            statement["Condition"] = json!({"StringEquals": {"aws:RequestedRegion": arns.region}});
        }
        statement
    };
    by_scope.into_iter().map(statement).collect()
}

/// What CloudFormation does in the caller's name, allowed only to CloudFormation.
fn stack_statements(arns: &ClusterArns) -> Vec<Value> {
    let via = json!({"ForAnyValue:StringEquals": {"aws:CalledVia": ["cloudformation.amazonaws.com"]}});
    let mut roles = BTreeSet::new();
    let mut key = BTreeSet::new();
    let mut others = BTreeSet::new();
    for action in handler_permissions() {
        let service = service_of(action);
        if UNUSED_SERVICES.contains(&service)
            || matches!(action, "iam:PassRole" | "iam:CreateServiceLinkedRole")
        {
            continue;
        }
        match service {
            "iam" => roles.insert(action),
            "kms" => key.insert(action),
            _ => others.insert(action),
        };
    }
    vec![
        json!({"Effect": "Allow", "Action": "iam:PassRole", "Resource": arns.roles,
            "Condition": {"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}}}),
        json!({"Effect": "Allow", "Action": "iam:CreateServiceLinkedRole", "Resource": arns.service_roles,
            "Condition": {"StringEquals": {"iam:AWSServiceName": [
                "autoscaling.amazonaws.com", "elasticfilesystem.amazonaws.com", "elasticloadbalancing.amazonaws.com",
                "spot.amazonaws.com"]}}}),
        json!({"Effect": "Allow", "Action": roles, "Resource": [arns.roles, arns.profiles], "Condition": via}),
        json!({"Effect": "Allow", "Action": key, "Resource": arns.key, "Condition": via}),
        json!({"Effect": "Allow", "Action": others, "Resource": "*", "Condition": via}),
    ]
}

/// Statements into as few policies as hold them; a statement that is too long alone is cut in two.
fn pack_statements(statements: Vec<Value>) -> Vec<Vec<Value>> {
    let empty = json!({"Version": "2012-10-17", "Statement": []}).to_string().len();
    let mut waiting: Vec<Value> = statements.into_iter().rev().collect();
    let mut policies: Vec<Vec<Value>> = vec![Vec::new()];
    let mut size = empty;
    while let Some(mut statement) = waiting.pop() {
        let length = statement.to_string().len() + 1;
        if size + length <= LARGEST_POLICY {
            size += length;
            if let Some(policy) = policies.last_mut() {
                policy.push(statement);
            }
            continue;
        }
        let room = LARGEST_POLICY.saturating_sub(size);
        if let Some(rest) = split_statement(&mut statement, room) {
            waiting.push(rest);
            waiting.push(statement);
        } else {
            policies.push(Vec::new());
            size = empty;
            waiting.push(statement);
        }
    }
    policies
}

/// Leaves as many actions in a statement as have room; gives the rest. None if not even one has.
fn split_statement(statement: &mut Value, room: usize) -> Option<Value> {
    let actions = statement["Action"].as_array()?.clone();
    let mut rest = statement.clone();
    for kept in (1..actions.len()).rev() {
        statement["Action"] = actions[..kept].into();
        if statement.to_string().len() < room {
            rest["Action"] = actions[kept..].into();
            return Some(rest);
        }
    }
    statement["Action"] = actions.into();
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{LARGEST_POLICY, operator_policies};
    use crate::aws::ACTIONS;
    use crate::config;

    #[test]
    fn policies_fit_and_hold_every_action_of_ours() -> Result<(), Box<dyn std::error::Error>> {
        let text = "{clusterName: paddle, externalDNSName: a.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1'}";
        let cluster = config::validate(Path::new("cluster.yaml"), text)?.value;
        let policies = operator_policies(&cluster, &"s3://bucket/prefix".parse()?);
        let mut allowed = BTreeSet::new();
        for policy in &policies {
            assert!(policy.document.to_string().len() <= LARGEST_POLICY, "{}", policy.name);
            for statement in policy.document["Statement"].as_array().into_iter().flatten() {
                // What is allowed to CloudFormation only does not help our own calls.
                if statement["Condition"].get("ForAnyValue:StringEquals").is_none() {
                    allowed.extend(
                        statement["Action"].as_array().into_iter().flatten().map(ToString::to_string),
                    );
                }
            }
        }
        for action in ACTIONS {
            assert!(allowed.contains(&format!("\"{}\"", action.name)), "{}", action.name);
        }
        assert!(policies.len() <= 4, "{} policies", policies.len());
        Ok(())
    }
}
