//! `infra up` in two halves: what is there and what would change, and, once the user agrees, doing it.

pub(crate) mod disk_grant;
pub(crate) mod public_record;
pub(crate) mod readiness;
pub(crate) mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::DeployError;
use super::event::Event;
use super::inputs::credential_digests::CredentialDigests;
use super::inputs::settings::{ImageChoice, Settings};
use super::machines::az_rebalance::keep_machines_in_their_zones;
use super::machines::pool_launches::PoolLaunches;
use super::plan::Plan;
use super::plan::refusal::find_refusals;
use super::stack::bring_up::Terms;
use super::stack::concurrent_deletion::{expect_all_there, refuse_what_goes};
use super::stack::delete::delete_stack;
use super::stack::graph::{Outcome, bring_up_all};
use super::state::desired::{DesiredStack, PLACE_TAG};
use super::state::live::LiveCluster;
use super::work::Work;
use crate::aws::{Alias, BucketFacts, Cause, Clients};
use crate::blueprint::{Blueprint, Role, StackPart};
use crate::config::FileSystemSource;
use crate::config::values::S3Uri;
use crate::credentials::Credentials;
use crate::kube::{Address, ApiServer};
use crate::render::Asset;
use crate::waiting::WaitEnd;
use disk_grant::ensure_disk_grant;
use public_record::lead_name;
use readiness::{ExpectedNodes, Reached, wait_until_ready};
use upload::{boot_objects, upload_boot_objects};

/// What was rendered and what it was rendered from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// Keys and certificates.
    pub credentials: &'a Credentials,
    /// Everything rendered.
    pub assets: &'a [Asset],
    /// The team's own configs for each role.
    pub snippets: &'a BTreeMap<Role, Vec<Asset>>,
}

/// What a run is to do, and how far it may go.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Only this pool.
    pub pool: Option<String>,
    /// Resources that may be replaced or removed.
    pub allow_replace: BTreeSet<String>,
    /// Whether pools that cluster.yaml no longer names are removed.
    pub prune: bool,
    /// Whether a missing bucket is made.
    pub create_bucket: bool,
    /// Whether a record that leads elsewhere is taken over.
    pub adopt_record: bool,
    /// What is waited for.
    pub wait: WaitFor,
    /// Where the API server is, instead of behind its load balancer.
    pub api_address: Option<Address>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Nothing that can go on without us.
    None,
    /// The stacks.
    Stacks,
    /// The stacks and every node.
    Nodes,
}

/// What would be done.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What is there.
    pub live: LiveCluster,
    /// What shall be there.
    pub desired: Vec<DesiredStack>,
    /// The difference.
    pub plan: Plan,
}

/// Where the assets of a cluster are that nobody said the place of: where the live cluster's are.
#[must_use]
pub fn live_place(live: &LiveCluster) -> Option<S3Uri> {
    live.tag(&StackPart::Network, PLACE_TAG)?.parse().ok()
}

/// Compares cluster.yaml with what is there, and refuses what may not change. Nothing is changed.
pub async fn prepare(
    clients: &Clients,
    sources: Sources<'_>,
    live: LiveCluster,
    place: S3Uri,
    image: ImageChoice,
    options: &UpOptions,
) -> Result<Prepared, DeployError> {
    let settings = Settings {
        place,
        image,
        credentials: CredentialDigests::of(sources.credentials),
        missing_mount_targets: missing_mount_targets(clients, sources.blueprint, &live).await?,
    };
    let desired = DesiredStack::of_cluster(sources.blueprint, sources.assets, &settings, &live);
    let whole = Plan::new(&desired, &live);
    let refusals = find_refusals(sources.blueprint, &desired, &live, &whole, &options.allow_replace);
    if !refusals.is_empty() {
        return Err(DeployError::Refused(refusals));
    }
    let Some(pool) = &options.pool else { return Ok(Prepared { live, desired, plan: whole }) };
    let part = StackPart::Pool(pool.clone());
    if !live.stacks.contains_key(&StackPart::ControlPlane) {
        return Err(DeployError::Unusable {
            what: format!("pool {pool} cannot come up before the cluster"),
            help: "`infra up` without --pool brings all of it up".to_owned(),
        });
    }
    let desired = desired.into_iter().filter(|stack| stack.part == part).collect();
    Ok(Prepared { live, desired, plan: whole.only(|other| *other == part) })
}

/// For mount targets at a file system that was there: whether each is ours to make. What the live stack says stays as it is, since
/// its own mount targets are there by now.
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
    let missing = blueprint.cluster.zones.iter().enumerate().map(|(index, zone)| {
        let name = format!("MountTarget{index}Missing");
        let kept = live.parameter(&StackPart::Storage, &name).map(|value| value == "true");
        (index, kept.unwrap_or_else(|| targets.iter().all(|target| target.zone != zone.to_string())))
    });
    Ok(missing.collect())
}

/// Does what was prepared.
pub async fn apply(
    work: &Arc<Work>,
    sources: Sources<'_>,
    prepared: Prepared,
    options: &UpOptions,
) -> Result<(), DeployError> {
    let Prepared { live, desired, plan } = prepared;
    refuse_what_goes(&work.run.clients, &desired, &live).await?;
    if options.create_bucket {
        ensure_bucket(work).await?;
    }
    work.run.progress.stage("uploading machine configurations");
    let roles: Vec<Role> =
        sources.blueprint.roles.iter().filter(|role| is_wanted(role, options)).cloned().collect();
    let cluster = &sources.blueprint.cluster;
    let objects = boot_objects(cluster.name.as_str(), &roles, sources.assets, sources.snippets);
    let uploaded = upload_boot_objects(work, &objects).await?;
    work.run.progress.note(format!("{uploaded} of {} objects were new", objects.len()));
    ensure_disk_grant(work).await?;
    work.run.progress.stage("bringing stacks up");
    let terms = Terms { allowed: options.allow_replace.clone(), waits: options.wait != WaitFor::None };
    let names: Vec<String> = desired.iter().map(|stack| stack.name.clone()).collect();
    let upload_again = async |part: &StackPart| upload_what_went(work, &objects, part).await;
    let mut outcome = bring_up_all(work, desired, &live, &terms, upload_again).await;
    if let Some(failure) = outcome.failure.take() {
        lead_name_in_spite_of(&failure, work, &live, &outcome, options).await;
        return Err(failure);
    }
    let mut pruned = 0;
    if options.prune {
        for gone in plan.deletions().filter_map(|stack| live.stacks.get_key_value(&stack.part)) {
            if let Some(stuck) = delete_stack(&work.run, gone.0, &gone.1.stack).await? {
                return Err(stuck.into_error());
            }
            pruned += 1;
        }
    }
    keep_machines_in_their_zones(work).await?;
    if outcome.changed.is_empty() && pruned == 0 {
        work.run.progress.note("no stack had to change");
    }
    finish(work, sources, &live, &outcome, options, &names).await?;
    expect_all_there(&work.run.clients, &names).await
}

/// A destroy that began before this run made its first stack has taken what was uploaded for something left behind.
async fn upload_what_went(
    work: &Work,
    objects: &BTreeMap<String, &Asset>,
    part: &StackPart,
) -> Result<(), DeployError> {
    let is_of_part = |key: &String| match part {
        StackPart::Network | StackPart::Storage => false,
        StackPart::ControlPlane => !key.contains("/pool-"),
        StackPart::Pool(_) => key.contains(&format!("/{}/", part.file_name())),
    };
    let wanted = objects.iter().filter(|(key, _)| is_of_part(key)).map(|(key, asset)| (key.clone(), *asset));
    let uploaded = upload_boot_objects(work, &wanted.collect()).await?;
    if uploaded > 0 {
        work.run.progress.warn(format!(
            "somebody removed {uploaded} machine configurations meanwhile, as `infra destroy` does; they were uploaded again"
        ));
    }
    Ok(())
}

/// The name, and the nodes.
async fn finish(
    work: &Work,
    sources: Sources<'_>,
    live: &LiveCluster,
    outcome: &Outcome,
    options: &UpOptions,
    stacks: &[String],
) -> Result<(), DeployError> {
    let Some(target) = lead_public_name(work, live, outcome, options).await? else { return Ok(()) };
    if options.wait != WaitFor::Nodes {
        return Ok(());
    }
    let launches = PoolLaunches::after_changes(work, &outcome.changed);
    wait_for_cluster(work, sources, &target, launches, options, stacks).await
}

/// Waits until every node is Ready, after what `apply` did not wait for.
pub async fn wait_for_nodes(
    work: &Work,
    sources: Sources<'_>,
    live: &LiveCluster,
    options: &UpOptions,
) -> Result<(), DeployError> {
    let Some(target) = load_balancer(&live.outputs()) else { return Ok(()) };
    let is_meant = |part: &StackPart| match (part, &options.pool) {
        (StackPart::Pool(name), Some(pool)) => name == pool,
        _ => true,
    };
    let stacks = live.stacks.iter().filter(|(part, _)| is_meant(part));
    let stacks: Vec<String> = stacks.map(|(_, live)| live.stack.name.clone()).collect();
    wait_for_cluster(work, sources, &target, PoolLaunches::of_standing_pools(work), options, &stacks).await
}

async fn wait_for_cluster(
    work: &Work,
    sources: Sources<'_>,
    target: &Alias,
    launches: PoolLaunches<'_>,
    options: &UpOptions,
    stacks: &[String],
) -> Result<(), DeployError> {
    let cluster = &sources.blueprint.cluster;
    work.run.progress.stage("waiting for the API and the nodes");
    let address =
        options.api_address.clone().unwrap_or(Address::Host { name: target.name.clone(), port: 443 });
    let name = cluster.external_dns_name.to_string();
    let api = ApiServer::new(sources.credentials, &name, address)?;
    let groups = work.run.clients.groups_of_cluster(cluster.name.as_str()).await?;
    let now = LiveCluster { groups, ..LiveCluster::default() };
    let part = options.pool.clone().map(StackPart::Pool);
    let expected =
        ExpectedNodes::new(sources.blueprint, |pool| now.pool_group(pool).map(|group| group.desired));
    match wait_until_ready(work, &api, expected.only(part.as_ref()), launches, stacks).await? {
        Reached::Ready => work.run.progress.report(Event::Ready { endpoint: format!("https://{name}") }),
        Reached::NotFromHere => work.run.progress.warn(format!(
            "the API at {} cannot be reached from here; the nodes have told CloudFormation that they are Ready",
            target.name
        )),
    }
    Ok(())
}

/// The name needs the control plane alone, and whoever looks for the failure may need the name; that it cannot be led is less than the
/// failure. Whoever left, and whoever's cluster is being taken away, wants no more changes.
async fn lead_name_in_spite_of(
    failure: &DeployError,
    work: &Work,
    live: &LiveCluster,
    outcome: &Outcome,
    options: &UpOptions,
) {
    let is_pointless = match failure {
        DeployError::TakenAway { .. } => true,
        DeployError::Aws(error) => error.cause == Cause::Credentials,
        _ => false,
    };
    let has_left = work.run.waiting.end() == Some(WaitEnd::Interrupted);
    if is_pointless || has_left || !outcome.settled.contains(&StackPart::ControlPlane) {
        return;
    }
    if let Err(error) = lead_public_name(work, live, outcome, options).await {
        let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
        work.run.progress.warn(format!("the public name may not lead to the API yet: {error}{help}"));
    }
}

/// Leads the public name to the load balancer, once there is one; gives that.
async fn lead_public_name(
    work: &Work,
    live: &LiveCluster,
    outcome: &Outcome,
    options: &UpOptions,
) -> Result<Option<Alias>, DeployError> {
    let Some(target) = load_balancer(&outcome.outputs) else {
        let text = "the control plane is still in the making; run `infra up` again for the public name";
        work.run.progress.note(text);
        return Ok(None);
    };
    if options.pool.is_none() {
        work.run.progress.stage("leading the public name to the API");
        let previous = live.outputs().get("ApiLoadBalancerName").cloned();
        lead_name(work, &target, previous.as_deref(), options.adopt_record).await?;
    }
    Ok(Some(target))
}

/// The load balancer of the API, once there is one.
#[must_use]
pub fn load_balancer(outputs: &BTreeMap<String, String>) -> Option<Alias> {
    let name = outputs.get("ApiLoadBalancerName")?.to_ascii_lowercase();
    Some(Alias { name, zone: outputs.get("ApiLoadBalancerZoneId")?.clone() })
}

fn is_wanted(role: &Role, options: &UpOptions) -> bool {
    options.pool.as_ref().is_none_or(|pool| *role == Role::Pool(pool.clone()))
}

async fn ensure_bucket(work: &Work) -> Result<(), DeployError> {
    let bucket = work.place.bucket();
    let is_ready = match work.run.clients.look_at_bucket(bucket).await {
        Ok(BucketFacts::Missing) => false,
        // An empty one may be what a run left that was killed while it made it.
        Ok(BucketFacts::Found { .. }) => !work.run.clients.is_bucket_empty(bucket).await?,
        Ok(BucketFacts::Elsewhere { .. }) => true,
        Ok(BucketFacts::Forbidden) => {
            work.run.progress.warn(format!("{bucket} is taken for ready: the caller may not s3:ListBucket"));
            true
        }
        Err(error) if error.is_denied() => true,
        Err(error) => return Err(error.into()),
    };
    if is_ready {
        return Ok(());
    }
    let cluster = &work.blueprint.cluster;
    let partition = cluster.region.partition().as_str();
    work.run.clients.create_private_bucket(bucket, cluster.kms_key.as_str(), partition).await?;
    work.run.progress.note(format!("made bucket {bucket}: encrypted, versioned, private, TLS only"));
    Ok(())
}
