//! `infra logs`: what a machine wrote to its console.

use crate::aws::{Clients, Instance};
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::well_known::POOL_PREFIX;

/// A machine and its console.
#[derive(Clone, Debug)]
pub(crate) struct NodeLog {
    /// The machine.
    pub instance: Instance,
    /// The console of the machine; none if EC2 has not collected it yet.
    pub text: Option<String>,
}

/// Reads the console of the machine that a word names: an instance id, a node's name, or a role like `etcd-0` or `pool-gpu`.
pub(crate) async fn read_log(
    clients: &Clients,
    cluster: &Cluster,
    word: &str,
) -> Result<NodeLog, DeployError> {
    let instances = clients.instances_of_cluster(cluster.name.as_str()).await?;
    let instance = choose_machine(&instances, word)?.clone();
    let text = clients.console_output(&instance.id).await?;
    Ok(NodeLog { text: text.filter(|text| !text.trim().is_empty()), instance })
}

fn choose_machine<'a>(instances: &'a [Instance], word: &str) -> Result<&'a Instance, DeployError> {
    let is_named = |instance: &&Instance| {
        let name = instance.name.as_deref().unwrap_or_default();
        instance.id == word
            || instance.private_address.as_deref() == Some(word)
            || (!name.is_empty() && (name == word || name.split('.').next() == Some(word)))
    };
    if let Some(found) = instances.iter().find(is_named) {
        return Ok(found);
    }
    let role = |instance: &&Instance| {
        instance
            .role
            .as_deref()
            .is_some_and(|role| role == word || role.strip_prefix(POOL_PREFIX) == Some(word))
    };
    let of_role: Vec<&Instance> = instances.iter().filter(role).collect();
    let living: Vec<&&Instance> = of_role.iter().filter(|instance| instance.state != "terminated").collect();
    match (of_role.as_slice(), living.as_slice()) {
        ([one], _) => Ok(one),
        (_, [one]) => Ok(one),
        ([], _) => {
            let machines = instances.iter().map(describe_machine).collect();
            Err(DeployError::NoSuchMachine { name: word.to_owned(), machines })
        }
        (many, _) => {
            let machines = many.iter().copied().map(describe_machine).collect();
            Err(DeployError::AmbiguousMachine { role: word.to_owned(), machines })
        }
    }
}

fn describe_machine(instance: &Instance) -> String {
    format!("{} ({}, {})", instance.id, instance.role.as_deref().unwrap_or("?"), instance.state)
}
