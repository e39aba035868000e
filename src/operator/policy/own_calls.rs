//! What infra itself calls, each as narrow as AWS allows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::arns::{ClusterArns, RECORD_NAMES};
use super::statement::{allow_actions, allow_if};
use crate::aws::{ACTIONS, Action, Scope};
use crate::config::values::HostedZoneId;
use crate::well_known::CLUSTER_TAG;

/// Services that know no region, and the price list, which answers in another one than the cluster's.
const GLOBAL_SERVICES: [&str; 4] = ["iam", "pricing", "route53", "sts"];

/// Actions that come along with one of ours: drift of a stack, which AWS also judges by its resources; encrypted objects, objects in a
/// bucket that keeps no versions, and in one that does, where CloudFormation reads a template by its version. By which ARN the events of
/// a change set are judged is not documented.
const IMPLIED_ACTIONS: [Action; 6] = [
    Action { name: "cloudformation:DescribeEvents", scope: Scope::ChangeSets },
    Action { name: "cloudformation:DetectStackResourceDrift", scope: Scope::Stacks },
    Action { name: "kms:Decrypt", scope: Scope::Key },
    Action { name: "kms:GenerateDataKey", scope: Scope::Key },
    Action { name: "s3:DeleteObject", scope: Scope::Objects },
    Action { name: "s3:GetObjectVersion", scope: Scope::Objects },
];

pub(super) fn own_call_statements(arns: &ClusterArns<'_>) -> Vec<Value> {
    let mut by_scope: BTreeMap<(Scope, bool), BTreeSet<&str>> = BTreeMap::new();
    for action in ACTIONS.iter().chain(&IMPLIED_ACTIONS) {
        let service = action.name.split(':').next().unwrap_or_default();
        by_scope.entry((action.scope, GLOBAL_SERVICES.contains(&service))).or_default().insert(action.name);
    }
    let mut statements: Vec<Value> = by_scope
        .into_iter()
        .flat_map(|((scope, global), actions)| of_scope(arns, scope, global, &json!(actions)))
        .collect();
    // EFS deletes the interface of a mount target with the rights of whoever deletes the mount target.
    statements.push(allow_if(
        "ec2:DeleteNetworkInterface",
        arns.regional("ec2", "network-interface/*"),
        json!({"Bool": {"aws:ViaAWSService": "true"}}),
    ));
    statements
}

fn of_scope(arns: &ClusterArns<'_>, scope: Scope, global: bool, actions: &Value) -> Vec<Value> {
    let on = |resource: Value| allow_actions(actions.clone(), resource);
    let on_all_if = |condition| allow_if(actions.clone(), "*", condition);
    match scope {
        Scope::Everything if global => vec![on(json!("*"))],
        Scope::Everything => {
            let region = arns.cluster.region.as_str();
            vec![on_all_if(json!({"StringEquals": {"aws:RequestedRegion": region}}))]
        }
        Scope::Stacks => vec![on(json!(arns.stacks()))],
        Scope::ChangeSets => vec![on(json!(arns.change_sets()))],
        Scope::NewChangeSets => vec![allow_if(
            actions.clone(),
            arns.stacks(),
            json!({
                "StringEquals": {format!("aws:RequestTag/{CLUSTER_TAG}"): arns.cluster.name.as_str()},
                // An imported resource would be the stack's to change and to delete.
                "Null": {"cloudformation:ImportResourceTypes": "true"},
            }),
        )],
        Scope::Bucket => vec![on(json!(arns.bucket()))],
        Scope::Objects => vec![on(json!(arns.objects()))],
        Scope::Key => vec![on(json!(arns.key()))],
        Scope::NewKey => Vec::new(),
        Scope::Keys => vec![on(json!(arns.regional("kms", "key/*")))],
        Scope::DiskGrants => vec![allow_if(
            actions.clone(),
            arns.key(),
            json!({"StringLike": {"kms:GranteePrincipal": arns.auto_scaling_role()}}),
        )],
        Scope::ServiceRoles => vec![on(json!(arns.service_roles()))],
        Scope::Groups => vec![on(json!(arns.groups()))],
        Scope::OfStacks => vec![on_all_if(arns.of_stacks())],
        Scope::InNetwork => vec![
            on_all_if(arns.of_stacks()),
            on_all_if(arns.of_kubernetes()),
            on_all_if(arns.of_load_balancer_controller()),
        ],
        Scope::Records => hosted_zone_record_statements(arns, actions),
    }
}

/// The cluster's own records: the public one, and all of the private hosted zone, whose id is not known beforehand.
fn hosted_zone_record_statements(arns: &ClusterArns<'_>, actions: &Value) -> Vec<Value> {
    let dns = &arns.cluster.dns;
    let private = allow_if(actions.clone(), arns.hosted_zone(None), arns.private_records());
    let public = dns.manage.then(|| {
        let name = arns.cluster.external_dns_name.as_str();
        allow_if(
            actions.clone(),
            arns.hosted_zone(dns.hosted_zone.as_ref().map(HostedZoneId::as_str)),
            json!({"ForAllValues:StringEquals": {RECORD_NAMES: [name]}}),
        )
    });
    std::iter::once(private).chain(public).collect()
}
