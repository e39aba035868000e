//! `infra status`: what of a cluster exists, and whether it works.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::block::read_blocks;
use super::etcd::read_etcd;
use super::image::{UsedImage, read_images};
use super::schedule::{ScheduleState, read_schedule};
use super::shape::{
    ApiAnswer, ApiState, CertificateState, DnsState, FileSystemState, NodesState, RecordOwner, StackState,
    StatusReport,
};
use super::snapshot::{read_snapshot, snapshot_problem};
use super::unreadable::Unreadable;
use crate::aws::{AwsError, Clients};
use crate::blueprint::{Blueprint, Cost, CostSummary, Prices};
use crate::config::Cluster;
use crate::config::values::PoolName;
use crate::credentials::{Credentials, FEWEST_DAYS_LEFT};
use crate::deploy::event::PoolBlock;
use crate::deploy::inputs::capacity_block::LockedBlock;
use crate::deploy::machines::expected_nodes::ExpectedNodes;
use crate::deploy::machines::node_rollout::outdated_machines;
use crate::deploy::state::charges::running_charges;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::public_name::{HostedZoneChoice, all_point_at, choose_hosted_zone, load_balancer};
use crate::kube::{Address, ApiServer, Node, Readiness};
use crate::plural::count_of;

/// What `status` works from.
#[derive(Debug)]
pub(crate) struct StatusSources<'a> {
    /// The clients of AWS.
    pub clients: &'a Clients,
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// Keys, if credentials/ exists: without them the API cannot be queried.
    pub credentials: Option<&'a Credentials>,
    /// Where the API is, instead of behind its load balancer.
    pub api_address: Option<Address>,
    /// The time, for the age of images and snapshots.
    pub now: OffsetDateTime,
    /// The certificate that expires first.
    pub certificates: Option<CertificateState>,
    /// The capacity blocks in infra.lock, should AWS no longer list them.
    pub blocks: &'a [LockedBlock],
    /// The prices in infra.lock, if there are any.
    pub prices: Option<&'a Prices>,
}

impl StatusReport {
    /// Reads everything; none if no part of the cluster exists.
    pub(crate) async fn read(sources: StatusSources<'_>) -> Result<Option<Self>, AwsError> {
        let cluster = &sources.blueprint.cluster;
        let live = LiveCluster::read(sources.clients, &cluster.name, Some(cluster)).await?;
        if !live.exists() {
            return Ok(None);
        }
        let expected =
            ExpectedNodes::new(sources.blueprint, |pool| live.pool_group(pool).map(|group| group.desired));
        let target = load_balancer(&live.outputs()).map(|target| target.name);
        let (clients, now) = (sources.clients, sources.now);
        let [mut launches, mut ages, mut uploads, mut clocks, mut reservations] =
            [const { Unreadable(Vec::new()) }; 5];
        // Boxed, because each holds the futures of several calls and all of them live in this one.
        let (seen, dns, file_system, etcd, images, snapshot, schedules, blocks) = tokio::join!(
            Box::pin(read_api(&sources, target.as_deref(), expected.claim)),
            Box::pin(read_dns(&sources, target.as_deref())),
            Box::pin(read_file_system(clients, &live)),
            Box::pin(read_etcd(clients, &live, cluster.etcd.count, &mut launches)),
            Box::pin(read_images(clients, &live, now, &mut ages)),
            Box::pin(read_snapshot(clients, &live, cluster.name.as_str(), now, &mut uploads)),
            Box::pin(read_schedules(clients, &live, cluster, &mut clocks)),
            Box::pin(read_blocks(clients, &live, cluster, sources.blocks, now, &mut reservations)),
        );
        let (dns, mut file_system, images) = (dns?, file_system?, images?);
        if let Some(file_system) = &mut file_system {
            file_system.claim.clone_from(&seen.claim);
        }
        let mut report = Self {
            cluster: cluster.name.to_string(),
            healthy: true,
            problems: Vec::new(),
            warnings: [launches.0, ages.0, uploads.0, clocks.0, reservations.0].concat(),
            stacks: live.stacks.values().map(|live| StackState::of(&live.stack)).collect(),
            nodes: nodes_states(&expected, &seen.nodes, &live, schedules?, blocks?),
            api: seen.api,
            dns,
            etcd: etcd?,
            images: images.iter().map(|image| image.state.clone()).collect(),
            snapshot: snapshot?,
            file_system,
            cost: sources.prices.map(|prices| {
                let charges = running_charges(&live);
                let cost = Cost::of(charges.iter().map(|(count, charge)| (*count, charge)), prices);
                CostSummary::new(&cost, prices, now.date())
            }),
            certificates: sources.certificates,
        };
        let overdue = report.snapshot.as_ref().and_then(|snapshot| snapshot_problem(snapshot, &live, now));
        report.judge(&expected, &seen.nodes, &images, overdue);
        Ok(Some(report))
    }

    fn judge(
        &mut self,
        expected: &ExpectedNodes,
        nodes: &[Node],
        images: &[UsedImage],
        overdue: Option<String>,
    ) {
        let mut problems = Vec::new();
        problems.extend(self.stacks.iter().filter_map(StackState::problem));
        if self.api.state == ApiAnswer::Ready {
            problems.extend(expected.missing(nodes));
            if expected.claim
                && self.file_system.as_ref().and_then(|system| system.claim.as_deref()) != Some("Bound")
            {
                problems.push("the file system's claim is not bound".to_owned());
            }
        } else {
            let reason = self.api.reason.clone().unwrap_or_default();
            problems.push(format!("the API is {}: {reason}", self.api.state));
        }
        if matches!(self.dns.record, RecordOwner::Foreign | RecordOwner::Missing) {
            problems.push(format!("the record of {} is {}", self.dns.name, self.dns.record));
        }
        // Before the control plane is complete no member is lost.
        if self.api.state != ApiAnswer::Absent {
            problems.extend(self.etcd.problems());
        }
        problems.extend(images.iter().filter_map(UsedImage::problem));
        problems.extend(overdue);
        if let Some(system) = self.file_system.as_ref().filter(|system| system.state != "available") {
            problems.push(format!("the file system {} is {}", system.id, system.state));
        }
        if let Some(due) = self.certificates.as_ref().filter(|due| due.days_left < FEWEST_DAYS_LEFT) {
            problems.push(format!("certificate {} has {} left", due.name, count_of(due.days_left, "day")));
        }
        self.warnings.extend(images.iter().filter_map(UsedImage::warning));
        self.healthy = problems.is_empty();
        self.problems = problems;
    }
}

/// What the clock does to each pool.
async fn read_schedules(
    clients: &Clients,
    live: &LiveCluster,
    cluster: &Cluster,
    unreadable: &mut Unreadable,
) -> Result<BTreeMap<PoolName, ScheduleState>, AwsError> {
    let mut schedules = BTreeMap::new();
    for pool in &cluster.pools {
        if let Some(schedule) = read_schedule(clients, live, pool, unreadable).await? {
            schedules.insert(pool.name.clone(), schedule);
        }
    }
    Ok(schedules)
}

fn nodes_states(
    expected: &ExpectedNodes,
    nodes: &[Node],
    live: &LiveCluster,
    mut schedules: BTreeMap<PoolName, ScheduleState>,
    mut blocks: BTreeMap<PoolName, PoolBlock>,
) -> Vec<NodesState> {
    let state = |pool: &str, wanted: usize, mine: Vec<&Node>, outdated: usize| NodesState {
        pool: pool.to_owned(),
        ready: mine.iter().filter(|node| node.ready).count(),
        wanted,
        gpus: mine.iter().filter(|node| node.ready).map(|node| node.gpus).sum(),
        outdated,
        not_ready: mine
            .iter()
            .filter(|node| !node.ready)
            .map(|node| format!("{}: {}", node.name, node.why_not_ready.as_deref().unwrap_or("not Ready")))
            .collect(),
        schedule: None,
        block: None,
    };
    let controllers = nodes.iter().filter(|node| node.is_controller).collect();
    let mut states = vec![state("controllers", expected.controllers, controllers, 0)];
    for (name, wanted, _) in &expected.pools {
        let mine = nodes.iter().filter(|node| node.pool.as_deref() == Some(name.as_str())).collect();
        let outdated = live.pool_group(name).map_or(0, |group| outdated_machines(group).count());
        let schedule = schedules.remove(name);
        let block = blocks.remove(name);
        states.push(NodesState { schedule, block, ..state(name.as_str(), *wanted, mine, outdated) });
    }
    states
}

struct Seen {
    api: ApiState,
    nodes: Vec<Node>,
    claim: Option<String>,
}

async fn read_api(sources: &StatusSources<'_>, target: Option<&str>, claim: bool) -> Seen {
    let name = sources.blueprint.cluster.external_dns_name.to_string();
    let state = |state, reason: Option<String>| ApiState {
        endpoint: format!("https://{name}"),
        load_balancer: target.map(str::to_owned),
        state,
        reason,
    };
    let nothing = |api| Seen { api, nodes: Vec::new(), claim: None };
    let Some(target) = target else {
        return nothing(state(
            ApiAnswer::Absent,
            Some("the control plane has no load balancer yet".to_owned()),
        ));
    };
    let Some(credentials) = sources.credentials else {
        return nothing(state(ApiAnswer::Unreachable, Some("credentials/ is missing".to_owned())));
    };
    let api = match ApiServer::of_cluster(credentials, &name, target, sources.api_address.as_ref()) {
        Ok(api) => api,
        Err(error) => return nothing(state(ApiAnswer::Unreachable, Some(error.to_string()))),
    };
    match api.check_ready().await {
        Err(error) => nothing(state(ApiAnswer::Unreachable, Some(error.to_string()))),
        Ok(Readiness::NotReady { failed }) => nothing(state(ApiAnswer::NotReady, Some(failed.join(", ")))),
        Ok(Readiness::Ready) => {
            let nodes = api.nodes().await;
            let claim = if claim { api.claim_phase("default", "efs").await.ok().flatten() } else { None };
            match nodes {
                Ok(nodes) => Seen { api: state(ApiAnswer::Ready, None), nodes, claim },
                Err(error) => nothing(state(ApiAnswer::NotReady, Some(error.to_string()))),
            }
        }
    }
}

async fn read_dns(sources: &StatusSources<'_>, target: Option<&str>) -> Result<DnsState, AwsError> {
    let cluster = &sources.blueprint.cluster;
    let name = cluster.external_dns_name.to_string();
    let record = match choose_hosted_zone(sources.clients, cluster).await? {
        HostedZoneChoice::None(_) => RecordOwner::Unmanaged,
        HostedZoneChoice::Zone(zone) => {
            let records = sources.clients.address_records(&zone.id, &name).await?;
            match records.as_slice() {
                [] => RecordOwner::Missing,
                list if target.is_some_and(|target| all_point_at(list, target)) => RecordOwner::Ours,
                _ => RecordOwner::Foreign,
            }
        }
    };
    let resolves_to = match &sources.api_address {
        Some(address) => vec![address.to_string()],
        None => crate::kube::resolve_host_name(&name).await,
    };
    Ok(DnsState { name, resolves_to, record })
}

async fn read_file_system(
    clients: &Clients,
    live: &LiveCluster,
) -> Result<Option<FileSystemState>, AwsError> {
    let outputs = live.outputs();
    let Some(id) = outputs.get("FileSystemId") else { return Ok(None) };
    let (found, targets) = tokio::try_join!(clients.file_system(id), clients.mount_targets(id))?;
    Ok(Some(FileSystemState {
        id: id.clone(),
        state: found.map_or_else(|| "gone".to_owned(), |system| system.state),
        mount_targets: targets.iter().filter(|target| target.state == "available").count(),
        claim: None,
    }))
}
