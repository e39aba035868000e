//! What is known of the cluster that a job runs on: from cluster.yaml, or from its nodes where a user has no cluster.yaml.

use super::machine::{Machine, taint_of};
use crate::blueprint::Blueprint;
use crate::config::values::PoolName;
use crate::kube::{Node, Taint};
use crate::well_known::GPU_RESOURCE;

/// What taints begin with that Kubernetes and its controllers set for a while, or that keep pods off controllers: none of a pool's own.
const PASSING_TAINTS: [&str; 5] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node-role.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
];

/// What is known of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClusterFacts<'a> {
    /// Nothing: objects are rendered for any cluster.
    Nothing,
    /// What cluster.yaml says.
    Blueprint(&'a Blueprint),
    /// What the nodes say. A pool without machines is not seen.
    Nodes(&'a [Node]),
}

/// What is known of a pool.
#[derive(Clone, Debug)]
pub(super) struct PoolFacts {
    pub(super) name: String,
    pub(super) has_gpus: bool,
    /// The taints of its nodes, but for that of GPUs.
    pub(super) taints: Vec<Taint>,
    /// Its machines: one for all, or those that exist.
    pub(super) machines: Vec<Machine>,
}

impl<'a> ClusterFacts<'a> {
    /// The facts of cluster.yaml, if there is one.
    #[must_use]
    pub(crate) fn of_blueprint(blueprint: Option<&'a Blueprint>) -> Self {
        blueprint.map_or(Self::Nothing, Self::Blueprint)
    }

    /// What cluster.yaml says, if there is one.
    #[must_use]
    pub(crate) fn blueprint(self) -> Option<&'a Blueprint> {
        match self {
            Self::Blueprint(blueprint) => Some(blueprint),
            Self::Nothing | Self::Nodes(_) => None,
        }
    }

    /// The reference by which nodes pull an image; mirrors are known from cluster.yaml only.
    #[must_use]
    pub(crate) fn mirrored_image(self, image: &str) -> String {
        self.blueprint().map_or_else(|| image.to_owned(), |blueprint| blueprint.mirrored_image(image))
    }

    /// Every pool that is known.
    pub(super) fn pools(self) -> Vec<PoolFacts> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Blueprint(blueprint) => {
                let pools = blueprint.cluster.pools.iter();
                let facts = |pool: &crate::config::Pool| PoolFacts {
                    name: pool.name.to_string(),
                    has_gpus: pool.gpus.is_some(),
                    taints: pool.taints.iter().map(taint_of).collect(),
                    machines: vec![Machine::of_pool(pool)],
                };
                pools.map(facts).collect()
            }
            Self::Nodes(nodes) => pools_of_nodes(nodes),
        }
    }

    /// The pool of that name, if it is known.
    pub(super) fn pool(self, name: &PoolName) -> Option<PoolFacts> {
        self.pools().into_iter().find(|pool| pool.name == name.as_str())
    }
}

fn pools_of_nodes(nodes: &[Node]) -> Vec<PoolFacts> {
    let mut names: Vec<&str> = nodes.iter().filter_map(|node| node.pool.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let facts = |name: &str| {
        let own: Vec<&Node> = nodes.iter().filter(|node| node.pool.as_deref() == Some(name)).collect();
        let is_common =
            |taint: &&Taint| taint.key != GPU_RESOURCE && own.iter().all(|node| node.taints.contains(taint));
        let first = own.first().map(|node| lasting_taints(node)).unwrap_or_default();
        PoolFacts {
            name: name.to_owned(),
            has_gpus: own.iter().any(|node| node.gpus.max(node.labelled_gpus.unwrap_or(0)) > 0),
            taints: first.iter().filter(is_common).cloned().collect(),
            machines: own.iter().map(|node| usual_machine(node)).collect(),
        }
    };
    names.into_iter().map(facts).collect()
}

fn lasting_taints(node: &Node) -> Vec<Taint> {
    let passes = |taint: &Taint| PASSING_TAINTS.iter().any(|prefix| taint.key.starts_with(prefix));
    node.taints.iter().filter(|taint| !passes(taint)).cloned().collect()
}

/// The machine of a node as it usually is.
fn usual_machine(node: &Node) -> Machine {
    Machine::of_node(&Node { taints: lasting_taints(node), ..node.clone() })
}

#[cfg(test)]
mod tests {
    use super::ClusterFacts;
    use crate::kube::{Node, Taint, TaintEffect};

    fn node(name: &str, pool: &str, gpus: u32, taints: &[&str]) -> Node {
        let taint = |key: &&str| Taint {
            key: (*key).to_owned(),
            value: String::new(),
            effect: TaintEffect::NoSchedule,
        };
        Node {
            name: name.to_owned(),
            pool: Some(pool.to_owned()),
            is_controller: false,
            ready: true,
            why_not_ready: None,
            schedulable: true,
            instance_id: None,
            instance_type: None,
            gpus,
            labelled_gpus: None,
            efa: 0,
            given_efa: 0,
            processors: Some(4000),
            memory: Some(8 << 30),
            scratch: Some(0),
            taints: taints.iter().map(taint).collect(),
            kubelet_version: String::new(),
        }
    }

    #[test]
    fn pools_are_read_from_nodes_without_what_passes() {
        let nodes = [
            node("a", "train", 8, &["nvidia.com/gpu", "team", "node.kubernetes.io/unschedulable"]),
            node("b", "train", 8, &["nvidia.com/gpu", "team", "broken"]),
            node("c", "cpu", 0, &[]),
        ];
        let pools = ClusterFacts::Nodes(&nodes).pools();
        let seen: Vec<_> =
            pools.iter().map(|pool| (pool.name.as_str(), pool.has_gpus, pool.machines.len())).collect();
        assert_eq!(seen, [("cpu", false, 1), ("train", true, 2)]);
        let taints: Vec<&str> = pools[1].taints.iter().map(|taint| taint.key.as_str()).collect();
        assert_eq!(taints, ["team"]);
    }
}
