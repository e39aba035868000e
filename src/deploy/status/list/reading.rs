//! Reads the clusters of a region, or of many at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use time::OffsetDateTime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::cluster::{Region, owner_of};
use super::shape::{ClusterList, ListedCluster, UnreadRegion};
use crate::aws::{AwsError, Clients, Stack};
use crate::blueprint::{Prices, StackPart};
use crate::config::values::ClusterName;
use crate::deploy::status::image::used_images;
use crate::deploy::status::unreadable::Unreadable;

/// AWS limits the rate of calls by account and region, so that regions do not slow each other down; this limits connections.
const REGIONS_AT_ONCE: usize = 8;

/// A list, and the first failure that is no refusal of a region.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The clusters of the regions that answered.
    pub(crate) list: ClusterList,
    /// Why the list is incomplete, if that is no region's refusal.
    pub(crate) failure: Option<AwsError>,
}

/// Prices, and the region that they are of.
#[derive(Clone, Debug)]
pub(crate) struct RegionPrices {
    /// The name of the region.
    pub(crate) region: String,
    /// The prices.
    pub(crate) prices: Prices,
}

struct RegionClusters {
    clusters: Vec<ListedCluster>,
    warnings: Vec<String>,
}

/// Lists the clusters of one region.
pub(crate) async fn list_region(
    clients: &Clients,
    region: &str,
    prices: Option<&RegionPrices>,
    now: OffsetDateTime,
) -> Result<ClusterList, AwsError> {
    let found = read_region(clients, region, prices, now).await?;
    Ok(gather_regions(vec![(region.to_owned(), found)], Vec::new()))
}

/// Lists the clusters of many regions. A region that refuses the caller or fails is named, unless all of them do.
pub(crate) async fn list_regions(
    clients: &Clients,
    regions: Vec<String>,
    prices: Option<&RegionPrices>,
    now: OffsetDateTime,
) -> Result<Listing, AwsError> {
    let permits = Arc::new(Semaphore::new(REGIONS_AT_ONCE));
    let mut pending = JoinSet::new();
    for region in regions {
        let prices = prices.filter(|prices| prices.region == region).cloned();
        let (clients, permits) = (clients.in_region(&region), Arc::clone(&permits));
        pending.spawn(async move {
            let _permit = permits.acquire().await;
            let found = Box::pin(read_region(&clients, &region, prices.as_ref(), now)).await;
            (region, found)
        });
    }
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    while let Some(joined) = pending.join_next().await {
        match joined {
            Ok((region, Ok(found))) => read.push((region, found)),
            Ok((region, Err(error))) => unread.push((region, error)),
            Err(error) => return Err(AwsError::lost(error.to_string())),
        }
    }
    unread.sort_by(|(one, _), (other, _)| one.cmp(other));
    if read.is_empty()
        && let Some((_, error)) = unread.pop()
    {
        return Err(error);
    }
    let reasons = unread
        .iter()
        .map(|(region, error)| UnreadRegion { region: region.clone(), reason: error.to_string() });
    let list = gather_regions(read, reasons.collect());
    let failure = unread.into_iter().map(|(_, error)| error).find(|error| !error.is_refused_region());
    Ok(Listing { list, failure })
}

fn gather_regions(read: Vec<(String, RegionClusters)>, unread_regions: Vec<UnreadRegion>) -> ClusterList {
    let mut list = ClusterList {
        healthy: true,
        clusters: Vec::new(),
        regions: Vec::new(),
        unread_regions,
        warnings: Vec::new(),
    };
    for (region, found) in read {
        let warnings = found.warnings.into_iter();
        list.warnings.extend(warnings.map(|warning| format!("{region}: {warning}")));
        list.clusters.extend(found.clusters);
        list.regions.push(region);
    }
    let key = |cluster: &ListedCluster| (cluster.region.clone(), cluster.cluster.clone());
    list.clusters.sort_by_key(key);
    list.regions.sort();
    list.warnings.sort();
    list.healthy = list.clusters.iter().all(|cluster| cluster.healthy);
    list
}

async fn read_region(
    clients: &Clients,
    region: &str,
    prices: Option<&RegionPrices>,
    now: OffsetDateTime,
) -> Result<RegionClusters, AwsError> {
    let (stacks, groups) = tokio::join!(clients.stacks(), clients.groups_of_all_clusters());
    let mut clusters: BTreeMap<ClusterName, BTreeMap<StackPart, Stack>> = BTreeMap::new();
    for stack in stacks? {
        if let Some((cluster, part)) = owner_of(&stack) {
            clusters.entry(cluster).or_default().insert(part, stack);
        }
    }
    if clusters.is_empty() {
        // Without a cluster in the region it does not matter what could not be read.
        return Ok(RegionClusters { clusters: Vec::new(), warnings: Vec::new() });
    }
    let mut unreadable = Unreadable::default();
    let groups = unreadable.take("machines", groups)?;
    let ids: Vec<String> = used_images(clusters.values().flat_map(BTreeMap::values)).into_keys().collect();
    let images = unreadable.take("images", clients.images(&ids).await)?;
    let images = images.map(|found| found.into_iter().map(|image| (image.id.clone(), image)).collect());
    let prices = prices.filter(|prices| prices.region == region).map(|prices| &prices.prices);
    let facts = Region { name: region, groups: groups.as_deref(), images: images.as_ref(), prices, now };
    let judge = |(name, stacks)| ListedCluster::judge(name, stacks, &facts);
    Ok(RegionClusters { clusters: clusters.iter().map(judge).collect(), warnings: unreadable.0 })
}
