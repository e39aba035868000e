//! What may not change while a cluster lives, found by a comparison with the live stacks before anything is changed.

use std::collections::BTreeSet;

use super::comparison::ResourceAction;
use super::credential_refusal::refuse_credentials;
use super::{Plan, StackAction};
use crate::aws::PlannedChange;
use crate::blueprint::{Blueprint, StackPart, fixed_facts};
use crate::config::FileSystemSource;
use crate::config::values::KubernetesVersion;
use crate::credentials::Credentials;
use crate::deploy::event::Refusal;
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::{ForeignStack, LiveCluster};

/// Resource types whose loss loses data, or addresses that others rely on.
const PROTECTED_TYPES: [(&str, &str); 6] = [
    ("AWS::EC2::Volume", "volume"),
    ("AWS::EFS::FileSystem", "file system"),
    ("AWS::EFS::MountTarget", "mount target"),
    ("AWS::EC2::Subnet", "subnet"),
    ("AWS::EC2::SecurityGroup", "security group"),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "load balancer"),
];

/// Every refusal, in a stable order.
#[must_use]
pub(crate) fn find_refusals(
    blueprint: &Blueprint,
    credentials: &Credentials,
    desired: &[DesiredStack],
    live: &LiveCluster,
    plan: &Plan,
    allowed: &BTreeSet<String>,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let is_wanted = |name: &str| desired.iter().any(|stack| stack.name == name);
    // A stack of another cluster only conflicts with a stack of the same name.
    let in_the_way =
        live.foreign.iter().filter(|foreign| foreign.cluster.is_none() || is_wanted(&foreign.name));
    for ForeignStack { name, .. } in in_the_way {
        refusals.push(Refusal::new(
            format!("there is a stack '{name}' that infra did not create"),
            "give the cluster another clusterName, or delete that stack if nobody needs it",
        ));
    }
    refuse_fixed_facts(blueprint, live, &mut refusals);
    refusals.extend(refuse_credentials(credentials, live));
    refuse_version_jump(blueprint, live, &mut refusals);
    refuse_other_file_system(blueprint, live, &mut refusals);
    refuse_losses(plan, allowed, &mut refusals);
    refusals
}

fn refuse_fixed_facts(blueprint: &Blueprint, live: &LiveCluster, refusals: &mut Vec<Refusal>) {
    let Some(network) = live.stacks.get(&StackPart::Network) else { return };
    for (key, wanted) in fixed_facts(&blueprint.cluster) {
        let Some(found) = network.template()["Metadata"]["Infra"][key].as_str() else { continue };
        if found != wanted {
            refusals.push(Refusal::new(
                format!("{key} cannot change from '{found}' to '{wanted}' while the cluster lives"),
                help_for_fixed_value(key, found),
            ));
        }
    }
}

fn help_for_fixed_value(key: &str, found: &str) -> String {
    let back = format!("put '{found}' back into cluster.yaml");
    match key {
        "etcd.count" | "availabilityZones" => {
            format!("{back}; for another etcd, create a second cluster and restore it from a snapshot")
        }
        "kmsKeyArn" => format!("{back}; another key would replace the file system by an empty one"),
        "externalDNSName" => format!("{back}; api.additionalNames gives the API server a second name"),
        _ => format!("{back}, or create a second cluster and move to it"),
    }
}

fn refuse_version_jump(blueprint: &Blueprint, live: &LiveCluster, refusals: &mut Vec<Refusal>) {
    let Some(stack) = live.stacks.get(&StackPart::ControlPlane) else { return };
    let found = stack.template()["Metadata"]["Infra"]["kubernetes.version"].as_str();
    let Some(found) = found.and_then(|text| text.parse::<KubernetesVersion>().ok()) else { return };
    let wanted = blueprint.cluster.kubernetes.version;
    if wanted < found {
        refusals.push(Refusal::new(
            format!("Kubernetes cannot go back from {found} to {wanted}"),
            format!("put {found} back into cluster.yaml; an older API server may not read what the newer one stored"),
        ));
    } else if wanted.minor > found.minor + 1 {
        refusals.push(Refusal::new(
            format!("Kubernetes cannot go from {found} to {wanted} at once"),
            format!("go through every minor version: next is v1.{}", found.minor + 1),
        ));
    }
}

fn refuse_other_file_system(blueprint: &Blueprint, live: &LiveCluster, refusals: &mut Vec<Refusal>) {
    let Some(stack) = live.stacks.get(&StackPart::Storage) else { return };
    if stack.template().is_null() {
        return;
    }
    let was_created = stack.template()["Resources"].get("FileSystem").is_some();
    let found = stack.stack.outputs.get("FileSystemId").map_or("", String::as_str);
    let source = blueprint.cluster.file_system.as_ref().map(|file_system| &file_system.source);
    let what = match source {
        None => format!("the cluster's file system {found} is no longer in cluster.yaml"),
        Some(FileSystemSource::Created { .. }) if !was_created => {
            format!("the cluster uses {found}, which existed before; cluster.yaml asks for a new file system")
        }
        Some(FileSystemSource::Adopted { id, .. }) if was_created || id.to_string() != found => {
            format!("the cluster uses {found}; cluster.yaml asks for {id}")
        }
        Some(_) => return,
    };
    let instead = if was_created {
        "put `storage: {efs: {}}` back as it was; data moves by copying it to a second cluster's file system"
            .to_owned()
    } else {
        format!("put `storage: {{efs: {{fileSystemId: {found}}}}}` back into cluster.yaml")
    };
    refusals.push(Refusal::new(what, instead));
}

fn refuse_losses(plan: &Plan, allowed: &BTreeSet<String>, refusals: &mut Vec<Refusal>) {
    for stack in plan.stacks.iter().filter(|stack| stack.action == StackAction::Update) {
        for change in &stack.resources {
            let verb = match change.action {
                ResourceAction::Replace => "replace",
                ResourceAction::Delete => "remove",
                ResourceAction::Create | ResourceAction::Change => continue,
            };
            refusals.extend(refuse_loss(&stack.stack, &change.logical_id, &change.kind, verb, allowed));
        }
    }
}

/// The refusals of what CloudFormation says that a change set would replace or delete.
#[must_use]
pub(crate) fn refuse_planned_losses(
    stack: &str,
    changes: &[PlannedChange],
    allowed: &BTreeSet<String>,
) -> Vec<Refusal> {
    let lossy = changes.iter().filter_map(|change| {
        let verb = match (change.action.as_str(), change.replacement.as_deref()) {
            ("Remove", _) => "remove",
            ("Modify", Some("True")) => "replace",
            _ => return None,
        };
        refuse_loss(stack, &change.logical_id, &change.kind, verb, allowed)
    });
    lossy.collect()
}

fn refuse_loss(stack: &str, id: &str, kind: &str, verb: &str, allowed: &BTreeSet<String>) -> Option<Refusal> {
    let (_, noun) = PROTECTED_TYPES.iter().find(|(protected, _)| *protected == kind)?;
    if allowed.contains(id) {
        return None;
    }
    Some(Refusal::new(
        format!("this would {verb} the {noun} {id} of {stack}"),
        format!(
            "undo the change in cluster.yaml, or allow the loss of the {noun} with `--allow-replace {id}`"
        ),
    ))
}
