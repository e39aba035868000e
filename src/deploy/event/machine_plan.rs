//! What a plan does to machines: which are created, replaced and terminated, what is unavailable meanwhile, and whose jobs they run.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::capacity_block::PoolBlock;
use crate::blueprint::Role;
use crate::config::values::PoolName;

/// What happens to the machines of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MachinePlan {
    /// What happens to machines, by role: etcd members first, then controllers, then pools.
    pub machines: Vec<MachineChange>,
    /// Pools whose size stays as it is, because their schedule or their end holds them.
    pub held: Vec<HeldPool>,
    /// Pools that nothing holds any more: their own limits are set again.
    pub released: Vec<ReleasedPool>,
    /// The capacity blocks of pools: outside of its block a pool has no machines.
    pub blocks: Vec<PoolBlock>,
    /// What is unavailable while machines are replaced.
    pub outages: Vec<Outage>,
    /// Job pods on nodes of pools whose machines are replaced or terminated; null if the API could not be read.
    pub jobs: Option<Vec<DisruptedJob>>,
    /// Why the job pods are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs_unknown: Option<String>,
}

impl MachinePlan {
    /// What is unavailable, if it is that.
    #[must_use]
    pub(crate) fn outage_of(&self, service: Service) -> Option<&Outage> {
        self.outages.iter().find(|outage| outage.of == service)
    }

    /// The plan without what would happen to pools that are kept after all.
    #[must_use]
    pub(crate) fn without_pools(mut self, is_kept: impl Fn(&PoolName) -> bool) -> Self {
        self.machines.retain(|change| match &change.role {
            Role::Pool(pool) => !is_kept(pool),
            Role::EtcdMember(_) | Role::Controller => true,
        });
        if let Some(jobs) = &mut self.jobs {
            jobs.retain(|job| !is_kept(&job.pool));
        }
        self
    }
}

/// A pool that its schedule, or its end, holds at a size that is not its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldPool {
    /// The name of the pool.
    #[schemars(with = "String")]
    pub pool: PoolName,
    /// How many machines it is held at.
    pub machines: u32,
    /// What of cluster.yaml holds it.
    pub by: Holder,
}

/// What of cluster.yaml holds a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Holder {
    /// The `schedule` of the pool.
    Schedule,
    /// The pool's end, `expires`.
    Expires,
}

impl Holder {
    /// What holds the pool, after "by".
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Schedule => "its schedule",
            Self::Expires => "its end (expires)",
        }
    }
}

/// A pool whose own limits are set again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReleasedPool {
    /// The name of the pool.
    #[schemars(with = "String")]
    pub pool: PoolName,
    /// How many machines it will have.
    pub machines: u32,
    /// The fewest machines that it may have: `minCount`.
    pub minimum: u32,
    /// The most machines that it may have: `maxCount`.
    pub maximum: u32,
}

/// What happens to machines of one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MachineChange {
    /// The role of the machines: `etcd-0`, `controller` or `pool-NAME`.
    #[serde(serialize_with = "role_name")]
    #[schemars(with = "String")]
    pub role: Role,
    /// How many machines it concerns.
    pub machines: u32,
    /// What happens to them.
    pub change: MachineAction,
    /// The resources of the template that are behind it.
    #[serde(skip)]
    pub resources: BTreeSet<String>,
}

/// What happens to machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum MachineAction {
    /// The machines are created.
    Create,
    /// CloudFormation replaces them, some at a time.
    Replace {
        /// How many are replaced at once.
        at_once: u32,
        /// How many stay in service meanwhile, at least.
        in_service: u32,
    },
    /// A new Auto Scaling group with new machines takes the place of the old one.
    ReplaceGroup,
    /// Auto Scaling replaces those that no longer fit: in a subnet that is left, or of another purchase option.
    ReplaceUnfitting,
    /// The machines stay as they are, outdated, until `infra up --pool NAME --replace-nodes`; only new machines are up to date.
    StayOutdated,
    /// The machines are terminated, and nothing takes their place.
    Terminate,
}

impl MachineAction {
    /// Whether machines that run now are terminated.
    #[must_use]
    pub(crate) fn terminates_machines(self) -> bool {
        match self {
            Self::Replace { .. } | Self::ReplaceGroup | Self::ReplaceUnfitting | Self::Terminate => true,
            Self::Create | Self::StayOutdated => false,
        }
    }
}

/// A service of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Service {
    /// etcd accepts writes only while most of its members are in service.
    EtcdQuorum,
    /// The Kubernetes API.
    Api,
}

/// Something that is unavailable while machines are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outage {
    /// What is unavailable.
    pub of: Service,
    /// For how long in all, about.
    pub about_minutes: u64,
    /// Why, as human-readable text.
    pub because: String,
}

/// A job pod on a node whose machine is replaced or terminated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DisruptedJob {
    /// The pool of the node.
    #[schemars(with = "String")]
    pub pool: PoolName,
    /// The namespace of the pod.
    pub namespace: String,
    /// The Job it works for.
    pub job: String,
    /// The name of the pod.
    pub pod: String,
    /// The node it is on.
    pub node: String,
}

pub(super) fn role_name<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&role.name())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{DisruptedJob, MachineAction, MachineChange, MachinePlan};
    use crate::blueprint::Role;
    use crate::config::values::PoolName;

    #[test]
    fn a_pool_that_is_kept_loses_neither_machines_nor_jobs() {
        let terminated = |role| MachineChange {
            role,
            machines: 1,
            change: MachineAction::Terminate,
            resources: BTreeSet::new(),
        };
        let job = |pool: &str| {
            let [namespace, job, pod, node] = ["default", "train", "train-0", "ip-1"].map(str::to_owned);
            DisruptedJob { pool: PoolName::of_test(pool), namespace, job, pod, node }
        };
        let [old, new] = ["old", "new"].map(|pool| Role::Pool(PoolName::of_test(pool)));
        let plan = MachinePlan {
            machines: [Role::Controller, old, new.clone()].map(terminated).to_vec(),
            jobs: Some(vec![job("old"), job("new")]),
            ..MachinePlan::default()
        };
        let left = plan.without_pools(|pool| pool.as_str() == "old");
        assert_eq!(left.machines, [Role::Controller, new].map(terminated));
        assert_eq!(left.jobs, Some(vec![job("new")]));
    }
}
