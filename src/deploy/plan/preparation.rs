//! What `plan` shows and `up` applies: the live stacks, the desired stacks and the difference; forbidden changes are refused.

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use super::refusal::find_refusals;
use crate::aws::Clients;
use crate::blueprint::{Blueprint, StackPart};
use crate::config::FileSystemSource;
use crate::config::values::PoolName;
use crate::deploy::error::DeployError;
use crate::deploy::inputs::Inputs;
use crate::deploy::inputs::asset_store::AssetStore;
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveCluster;

/// How much of a cluster is planned for, and what may be lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanOptions {
    /// Only this pool.
    pub pool: Option<PoolName>,
    /// Resources that may be replaced or deleted.
    pub allow_replace: BTreeSet<String>,
}

/// What `up` would apply.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The live cluster.
    pub live: LiveCluster,
    /// The desired stacks.
    pub desired: Vec<DesiredStack>,
    /// The difference between the two.
    pub plan: Plan,
    /// Where assets are.
    pub store: AssetStore,
    /// What was asked for.
    pub options: PlanOptions,
}

/// Compares cluster.yaml with the live cluster, and refuses forbidden changes. Nothing is changed.
pub(crate) async fn prepare_deployment(
    clients: &Clients,
    inputs: &Inputs<'_>,
    live: LiveCluster,
    options: PlanOptions,
) -> Result<Prepared, DeployError> {
    live.check_templates()?;
    let store = AssetStore::new(&inputs.blueprint.cluster, inputs.s3_uri.clone());
    let mount_targets = missing_mount_targets(clients, inputs.blueprint, &live).await?;
    let desired = DesiredStack::of_cluster(inputs, &mount_targets, &live);
    let whole = Plan::new(&desired, &live);
    let (blueprint, credentials) = (inputs.blueprint, inputs.credentials);
    let refusals = find_refusals(blueprint, credentials, &desired, &live, &whole, &options.allow_replace);
    if !refusals.is_empty() {
        return Err(DeployError::Refused(refusals));
    }
    let Some(pool) = &options.pool else {
        return Ok(Prepared { live, desired, plan: whole, store, options });
    };
    let part = StackPart::Pool(pool.clone());
    if !live.stacks.contains_key(&StackPart::ControlPlane) {
        return Err(DeployError::PoolBeforeCluster { pool: pool.clone() });
    }
    let desired = desired.into_iter().filter(|stack| stack.part == part).collect();
    Ok(Prepared { live, desired, plan: whole.only(|other| *other == part), store, options })
}

/// For mount targets at an existing file system: whether the cluster has to create each. What the live stack says is kept, since the
/// mount targets that it created exist by now.
async fn missing_mount_targets(
    clients: &Clients,
    blueprint: &Blueprint,
    live: &LiveCluster,
) -> Result<BTreeMap<usize, bool>, DeployError> {
    let source = blueprint.cluster.file_system.as_ref().map(|file_system| &file_system.source);
    let Some(FileSystemSource::Adopted { id, create_mount_targets: true }) = source else {
        return Ok(BTreeMap::new());
    };
    let targets = clients.mount_targets(&id.to_string()).await?;
    let missing = blueprint.cluster.availability_zones.iter().enumerate().map(|(index, zone)| {
        let name = format!("MountTarget{index}Missing");
        let kept = live.parameter(&StackPart::Storage, &name).map(|value| value == "true");
        (index, kept.unwrap_or_else(|| targets.iter().all(|target| target.zone != zone.to_string())))
    });
    Ok(missing.collect())
}
