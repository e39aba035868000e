//! `infra list`: every cluster of the account, on one screen.

use std::collections::BTreeSet;

use clap::Args;
use time::OffsetDateTime;

use super::aws_access::{AwsOptions, block_on};
use super::exit::Exit;
use super::failure::Refusal;
use super::interruption::until_interrupted;
use super::session::Session;
use crate::aws::{AwsError, Clients};
use crate::blueprint::CostSummary;
use crate::cli::deployment::prices::any_lock;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::deploy::{
    ClusterList, ListedCluster, Listing, MachinesState, RegionPrices, list_region, list_regions,
};
use crate::plural::{count_of, list_counts};

const UNKNOWN: &str = "unknown";

/// List every cluster of the account: Kubernetes version, machines, certificates, image, health
///
/// Needs no cluster.yaml. Clusters are found by the tags of their stacks, in one region or, with `--all-regions`, in every region that the
/// account can use. Only AWS is queried, not the clusters themselves: health is that of stacks, machines, image and certificates, and
/// `infra status` says more of a single cluster. What machines cost is shown for the region whose prices are in infra.lock, if there is one
/// here.
///
/// Exits with 3 if a cluster is not healthy, with 0 if all are or there is none. A region that refuses the caller is named and skipped;
/// exits with 1 if another one failed to answer. `infra schema list` describes what `--output json` prints.
#[derive(Args, Debug)]
#[command(mut_arg("region", |region| region.help("Use this region instead of that of the AWS configuration")))]
pub(super) struct ListArguments {
    /// List the clusters of every region that the account can use
    #[arg(long)]
    all_regions: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &ListArguments, session: &Session) -> anyhow::Result<Exit> {
    let now = OffsetDateTime::now_utc();
    let lock = any_lock(session);
    let prices = lock.and_then(|lock| Some(RegionPrices { region: lock.region, prices: lock.prices? }));
    let prices = prices.as_ref();
    block_on(async {
        let clients = arguments.aws.connect_to(None, session).await;
        let Some(region) = clients.region() else {
            return Err(Refusal::invalid("no region is known")
                .help("name it with --region, or set AWS_REGION or `region` of the profile")
                .into());
        };
        let reading = Box::pin(async {
            Ok(if arguments.all_regions {
                read_all(&clients, prices, now).await?
            } else {
                Listing { list: list_region(&clients, region, prices, now).await?, failure: None }
            })
        });
        let Listing { list, failure } = until_interrupted(reading).await?;
        match session.output {
            Output::Json => session.printer.json(&list)?,
            Output::Text | Output::Markdown | Output::Html => {
                session.printer.data(cluster_list_text(&list))?;
            }
        }
        for unread in &list.unread_regions {
            session.printer.warning(format_args!("{} could not be read: {}", unread.region, unread.reason));
        }
        list.warnings.iter().for_each(|warning| session.printer.warning(warning.as_str()));
        match failure {
            Some(failure) => Err(failure.into()),
            None if list.healthy => Ok(Exit::Done),
            None => Ok(Exit::Unhealthy),
        }
    })
}

async fn read_all(
    clients: &Clients,
    prices: Option<&RegionPrices>,
    now: OffsetDateTime,
) -> Result<Listing, AwsError> {
    let regions = clients.regions().await?;
    list_regions(clients, regions, prices, now).await
}

fn cluster_list_text(list: &ClusterList) -> String {
    let regions = match list.regions.as_slice() {
        [region] => region.clone(),
        regions => count_of(regions.len(), "region"),
    };
    if list.clusters.is_empty() {
        return format!("no clusters in {regions}");
    }
    let titles = ["CLUSTER", "REGION", "KUBERNETES", "NODES", "ETCD", "CERTIFICATES", "IMAGE", "HEALTH"];
    let mut lines = vec![titles.map(str::to_owned)];
    lines.extend(list.clusters.iter().map(cluster_line));
    let table = if list.clusters.iter().any(|cluster| cluster.machines_cost.is_some()) {
        align_columns(&with_costs(&lines, &list.clusters))
    } else {
        align_columns(&lines)
    };
    let healthy = list.clusters.iter().filter(|cluster| cluster.healthy).count();
    let counts = list_counts(&[(healthy, "healthy"), (list.clusters.len() - healthy, "not healthy")]);
    let clusters = count_of(list.clusters.len(), "cluster");
    format!(
        "{table}\n{clusters} in {regions}: {counts}{}",
        basis_of_costs(&list.clusters).unwrap_or_default()
    )
}

/// Where the figures of all clusters come from, and what is not in them.
fn basis_of_costs(clusters: &[ListedCluster]) -> Option<String> {
    let costs = || clusters.iter().filter_map(|cluster| cluster.machines_cost.as_ref());
    let missing: BTreeSet<String> = costs().flat_map(|cost| cost.missing.clone()).collect();
    let all = CostSummary {
        missing: missing.into_iter().collect(),
        prepaid_machines: costs().map(|cost| cost.prepaid_machines).sum(),
        ..costs().next()?.clone()
    };
    Some(format!("\nMACHINES: what the machines alone cost, by {}", all.basis()))
}

/// The lines with what the machines of each cluster cost, before the health.
fn with_costs(lines: &[[String; 8]], clusters: &[ListedCluster]) -> Vec<[String; 9]> {
    let cost = |cluster: &ListedCluster| {
        cluster.machines_cost.as_ref().map_or_else(|| UNKNOWN.to_owned(), CostSummary::hourly)
    };
    let costs = std::iter::once("MACHINES".to_owned()).chain(clusters.iter().map(cost));
    let add = |(line, cost): (&[String; 8], String)| {
        let [cluster, region, kubernetes, nodes, etcd, certificates, image, health] = line.clone();
        [cluster, region, kubernetes, nodes, etcd, certificates, image, cost, health]
    };
    lines.iter().zip(costs).map(add).collect()
}

fn cluster_line(cluster: &ListedCluster) -> [String; 8] {
    let unknown = || UNKNOWN.to_owned();
    let certificates = cluster.certificates.as_ref();
    [
        cluster.cluster.clone(),
        cluster.region.clone(),
        cluster.kubernetes.clone().unwrap_or_else(unknown),
        cluster.nodes.as_deref().map_or_else(unknown, in_service),
        cluster.etcd.as_ref().map_or_else(unknown, |etcd| in_service(std::slice::from_ref(etcd))),
        certificates.map_or_else(unknown, |first| count_of(first.days_left, "day")),
        image_in_words(cluster),
        health_in_words(cluster),
    ]
}

fn in_service(machines: &[MachinesState]) -> String {
    let sum = |count: fn(&MachinesState) -> usize| machines.iter().map(count).sum::<usize>();
    format!("{}/{}", sum(|state| state.in_service), sum(|state| state.wanted))
}

/// The worst of the images: one that is gone, or the oldest.
fn image_in_words(cluster: &ListedCluster) -> String {
    if let Some(bad) = cluster.images.iter().find(|image| image.state != "available") {
        return bad.state.clone();
    }
    let oldest = cluster.images.iter().filter_map(|image| image.age_days).max();
    oldest.map_or_else(|| UNKNOWN.to_owned(), |days| count_of(days, "day"))
}

/// The verdict with the first of the problems, or of the warnings.
fn health_in_words(cluster: &ListedCluster) -> String {
    let first = |mark: &str, texts: &[String]| {
        let more = texts.len().saturating_sub(1);
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        texts.first().map(|text| format!("{mark} {text}{more}"))
    };
    if cluster.healthy {
        let warning = first("?", &cluster.warnings);
        return warning.map_or_else(|| "healthy".to_owned(), |warning| format!("healthy  {warning}"));
    }
    format!("NOT HEALTHY  {}", first("!", &cluster.problems).unwrap_or_default())
}
