//! The nodes that a cluster should have, and what of them is missing.

use crate::blueprint::Blueprint;
use crate::config::values::PoolName;
use crate::deploy::state::live::LiveCluster;
use crate::kube::Node;
use crate::plural::count_of;

/// How many nodes there should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedNodes {
    /// How many controllers.
    pub controllers: usize,
    /// The name of each pool, how many nodes, and how many GPUs per node.
    pub pools: Vec<(PoolName, usize, u32)>,
    /// Whether the file system's claim must be bound.
    pub claim: bool,
}

impl ExpectedNodes {
    /// The nodes of a cluster; `wanted` is how many machines the Auto Scaling group of a pool wants now.
    #[must_use]
    pub(crate) fn new(blueprint: &Blueprint, wanted: impl Fn(&PoolName) -> Option<u32>) -> Self {
        let cluster = &blueprint.cluster;
        let pools = cluster.pools.iter().map(|pool| {
            let count = wanted(&pool.name).unwrap_or(pool.count);
            (pool.name.clone(), count as usize, pool.gpus.as_ref().map_or(0, |gpus| gpus.count))
        });
        Self {
            controllers: cluster.controllers.count as usize,
            pools: pools.collect(),
            claim: cluster.file_system.is_some(),
        }
    }

    /// The same, with only one of the pools.
    #[must_use]
    pub(crate) fn only(mut self, pool: Option<&PoolName>) -> Self {
        if let Some(pool) = pool {
            self.pools.retain(|(name, ..)| name == pool);
        }
        self
    }

    /// Takes over how many machines the Auto Scaling groups want by now.
    pub(crate) fn follow_groups(&mut self, live: &LiveCluster) {
        for (name, count, _) in &mut self.pools {
            if let Some(group) = live.pool_group(name) {
                *count = group.desired as usize;
            }
        }
    }

    /// What is still missing, given the nodes that exist.
    #[must_use]
    pub(crate) fn missing(&self, nodes: &[Node]) -> Vec<String> {
        let mut missing = Vec::new();
        let controllers: Vec<&Node> = nodes.iter().filter(|node| node.is_controller).collect();
        missing.extend(missing_nodes("controllers", &controllers, self.controllers, 0));
        for (name, count, gpus) in &self.pools {
            let mine: Vec<&Node> =
                nodes.iter().filter(|node| node.pool.as_deref() == Some(name.as_str())).collect();
            missing.extend(missing_nodes(&format!("pool {name}"), &mine, *count, *gpus));
        }
        missing
    }
}

fn missing_nodes(what: &str, nodes: &[&Node], wanted: usize, gpus: u32) -> Option<String> {
    let ready = nodes.iter().filter(|node| node.ready).count();
    if ready < wanted {
        let why = nodes
            .iter()
            .find_map(|node| node.why_not_ready.as_deref().map(|why| format!(" ({}: {why})", node.name)));
        return Some(format!("{what}: {ready} of {wanted} nodes are Ready{}", why.unwrap_or_default()));
    }
    let with_gpus = nodes.iter().filter(|node| node.ready && node.gpus >= gpus).count();
    (with_gpus < wanted)
        .then(|| format!("{what}: {with_gpus} of {wanted} nodes have {} available", count_of(gpus, "GPU")))
}

#[cfg(test)]
mod tests {
    use super::ExpectedNodes;
    use crate::kube::Node;

    fn node(pool: Option<&str>, ready: bool, gpus: u32) -> Node {
        Node {
            processors: None,
            scratch: Some(0),
            memory: None,
            name: "ip-10-0-0-1".to_owned(),
            pool: pool.map(str::to_owned),
            is_controller: pool.is_none(),
            ready,
            why_not_ready: (!ready).then(|| "KubeletNotReady: no network".to_owned()),
            schedulable: true,
            instance_id: None,
            instance_type: None,
            gpus,
            taints: Vec::new(),
            labelled_gpus: None,
            efa: 0,
            given_efa: 0,
            kubelet_version: "v1.36.3".to_owned(),
        }
    }

    #[test]
    fn missing_nodes_and_gpus_are_named() -> Result<(), crate::document::Fault> {
        let expected = ExpectedNodes { controllers: 1, pools: vec![("gpu".parse()?, 2, 4)], claim: false };
        let missing = expected.missing(&[node(Some("gpu"), true, 4), node(Some("gpu"), false, 0)]);
        assert_eq!(
            missing,
            [
                "controllers: 0 of 1 nodes are Ready",
                "pool gpu: 1 of 2 nodes are Ready (ip-10-0-0-1: KubeletNotReady: no network)"
            ]
        );
        let missing =
            expected.missing(&[node(None, true, 0), node(Some("gpu"), true, 4), node(Some("gpu"), true, 0)]);
        assert_eq!(missing, ["pool gpu: 1 of 2 nodes have 4 GPUs available"]);
        let missing =
            expected.missing(&[node(None, true, 0), node(Some("gpu"), true, 4), node(Some("gpu"), true, 8)]);
        assert_eq!(missing, [""; 0]);
        Ok(())
    }
}
