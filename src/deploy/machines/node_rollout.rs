//! A manual rollout: a pool's outdated machines are replaced one by one, each after its jobs have ended.

use std::collections::BTreeSet;
use std::time::Duration;

use super::pool_launches::PoolLaunches;
use crate::aws::{GroupMachine, ScalingGroup};
use crate::blueprint::Role;
use crate::config::Cluster;
use crate::config::values::PoolName;
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::run::Run;
use crate::kube::{ApiServer, Contact, KubeError, Node, Outage};
use crate::plural::count_of;
use crate::waiting::Pace;
use crate::well_known::ROLE_TAG;

/// Longer than it takes to replace a controller; an API that is unavailable for this long does not recover by itself.
const LONGEST_OUTAGE: Duration = Duration::from_mins(15);

/// About one call in half a minute for the launches of the Auto Scaling group.
const POLLS_PER_LAUNCH_CALL: u32 = 3;

/// A pool whose outdated machines are replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeRollout<'a> {
    /// The context of the run.
    pub run: &'a Run,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The cluster's API server.
    pub api: &'a ApiServer,
    /// The name of the pool.
    pub pool: &'a PoolName,
}

impl NodeRollout<'_> {
    /// Replaces at most `most` outdated machines; returns how many are still outdated.
    pub(crate) async fn replace_outdated(&self, most: Option<usize>) -> Result<usize, DeployError> {
        let pool = self.pool;
        let mut group = self.read_group().await?;
        let outdated = outdated_machines(&group).count();
        if outdated == 0 {
            self.run.progress.note(format!("every machine of pool {pool} is up to date"));
            return Ok(0);
        }
        let count = most.unwrap_or(usize::MAX).min(outdated);
        self.run.progress.note(format!(
            "pool {pool} has {}; replacing {count} now, one by one",
            count_of(outdated, "outdated machine")
        ));
        let mut replaced: BTreeSet<String> = BTreeSet::new();
        let is_left = |machine: &&GroupMachine, replaced: &BTreeSet<String>| {
            !machine.is_terminating() && !replaced.contains(&machine.id)
        };
        for _ in 0..count {
            let next = outdated_machines(&group).find(|machine| is_left(machine, &replaced)).cloned();
            let Some(machine) = next else { break };
            self.replace_one(&machine).await?;
            replaced.insert(machine.id);
            // One machine may take hours, and the autoscaler terminates others meanwhile.
            group = self.read_group().await?;
        }
        Ok(outdated_machines(&group).filter(|machine| is_left(machine, &replaced)).count())
    }

    async fn replace_one(&self, machine: &GroupMachine) -> Result<(), DeployError> {
        let api = self.api;
        let node = self.find_node(&machine.id).await?;
        if let Some(node) = &node {
            self.query(async || api.set_schedulable(&node.name, false).await).await?;
            self.run.progress.note(format!("cordoned {}", node.name));
            if let Err(error) = self.wait_for_jobs(&node.name).await {
                return Err(self.uncordon(&node.name, error).await);
            }
        }
        if !self.run.clients.replace_machine(&machine.id).await? {
            self.run.progress.note(format!("{} was terminated meanwhile", machine.id));
            return Ok(());
        }
        let name = node.map_or_else(|| machine.id.clone(), |node| node.name);
        self.run.progress.note(format!("terminated {name} ({}); waiting for its replacement", machine.id));
        self.wait_for_replacement(&machine.id).await
    }

    /// The machine is kept, so its node accepts pods again. Whether or not that works, the first error is returned.
    async fn uncordon(&self, node: &str, error: DeployError) -> DeployError {
        match (self.api.set_schedulable(node, true).await, error) {
            (Ok(()), DeployError::StillRunning { what, running }) => {
                DeployError::StillRunning { what: format!("{what}; {node} takes new pods again"), running }
            }
            (Ok(()), error) => error,
            (Err(refused), error) => {
                self.run.progress.warn(format!(
                    "{node} takes no new pods: {refused}; `kubectl uncordon {node}` lets it take them"
                ));
                error
            }
        }
    }

    async fn wait_for_jobs(&self, node: &str) -> Result<(), DeployError> {
        let mut pace = Pace::of_stack();
        let mut reported = Vec::new();
        loop {
            let pods = self.query(async || self.api.job_pods().await).await?;
            let pods = pods.into_iter().filter(|pod| pod.node == node);
            let names: Vec<String> = pods
                .map(|pod| format!("job {}/{} on {node} (pod {})", pod.namespace, pod.job, pod.name))
                .collect();
            if names.is_empty() {
                return Ok(());
            }
            if names != reported {
                self.run.progress.report(Event::Waiting { waiting_for: names.clone() });
                reported.clone_from(&names);
            }
            if let Err(end) = self.run.waiting.pause(pace.next_pause()).await {
                let what = format!("{end}: {} still runs", names.join(", "));
                return Err(DeployError::StillRunning { what, running: Vec::new() });
            }
        }
    }

    async fn wait_for_replacement(&self, gone: &str) -> Result<(), DeployError> {
        let Self { run, pool, .. } = *self;
        let mut pace = Pace::of_stack();
        let mut launches = PoolLaunches::of_unchanged_pools(run, &self.cluster.name);
        let mut reported = String::new();
        let mut polls = 0;
        loop {
            let group = self.read_group().await?;
            let nodes = self.query(async || self.api.nodes().await).await?;
            let (up, wanted) = count_up(&group, &nodes, gone, self.gpus());
            if up >= wanted {
                return Ok(());
            }
            let missing = format!("pool {pool}: {up} of {wanted} machines are up");
            if missing != reported {
                self.run.progress.report(Event::Waiting { waiting_for: vec![missing.clone()] });
                reported.clone_from(&missing);
            }
            if polls % POLLS_PER_LAUNCH_CALL == 0 {
                launches.count_failures(pool, &group).await?;
                launches.fail_if_permanent().await?;
            }
            polls += 1;
            if let Err(end) = self.run.waiting.pause(pace.next_pause()).await {
                return Err(DeployError::StillRunning {
                    what: format!("{end}: {missing}"),
                    running: Vec::new(),
                });
            }
        }
    }

    fn gpus(&self) -> u32 {
        let gpus = self.cluster.pool(self.pool).and_then(|pool| pool.gpus.as_ref());
        gpus.map_or(0, |gpus| gpus.count)
    }

    async fn read_group(&self) -> Result<ScalingGroup, DeployError> {
        let pool = self.pool;
        let role = Role::Pool(pool.clone()).name();
        let groups = self.run.clients.groups_of_cluster(self.cluster.name.as_str()).await?;
        let group = groups.into_iter().find(|group| group.tags.get(ROLE_TAG) == Some(&role));
        group.ok_or_else(|| DeployError::NoScalingGroup { pool: pool.clone() })
    }

    async fn find_node(&self, instance: &str) -> Result<Option<Node>, DeployError> {
        let nodes = self.query(async || self.api.nodes().await).await?;
        Ok(nodes.into_iter().find(|node| node.instance_id.as_deref() == Some(instance)))
    }

    /// Queries the API, and retries while it is unavailable: a rollout may take hours, and controllers are replaced now and then.
    async fn query<T>(&self, question: impl AsyncFn() -> Result<T, KubeError>) -> Result<T, DeployError> {
        let outage_limit = self.run.waiting.at_most(LONGEST_OUTAGE);
        let (mut pace, mut outage) = (Pace::of_stack(), Outage::default());
        loop {
            let answer = question().await;
            let why = answer.as_ref().err().cloned();
            let report = |contact| match contact {
                Contact::Lost(why) => self.run.progress.warn(format!("{why}; retrying")),
                Contact::Found => self.run.progress.note("the Kubernetes API answers again"),
            };
            match (outage.tolerate(answer, report)?, why) {
                (Some(answer), _) => return Ok(answer),
                (None, Some(why)) if outage_limit.pause(pace.next_pause()).await.is_err() => {
                    let Some(end) = self.run.waiting.end() else { return Err(why.into()) };
                    let what = format!("{end}: {why}");
                    return Err(DeployError::StillRunning { what, running: Vec::new() });
                }
                _ => {}
            }
        }
    }
}

/// How many machines are up, and how many should be. Those that are still to be replaced may be broken, and are not counted.
fn count_up(group: &ScalingGroup, nodes: &[Node], gone: &str, gpus: u32) -> (usize, usize) {
    let works = |machine: &GroupMachine| {
        let is_its_own = |node: &&Node| node.instance_id.as_deref() == Some(&machine.id);
        machine.is_in_service()
            && nodes.iter().find(is_its_own).is_some_and(|node| node.ready && node.gpus >= gpus)
    };
    let others = group.machines.iter().filter(|machine| machine.id != gone);
    let (to_come, fresh): (Vec<&GroupMachine>, Vec<&GroupMachine>) =
        others.partition(|machine| is_outdated(machine, group));
    let up = fresh.into_iter().filter(|machine| works(machine)).count();
    (up, (group.desired as usize).saturating_sub(to_come.len()))
}

/// Machines that were started from another version of the launch template than new machines are.
pub(crate) fn outdated_machines(group: &ScalingGroup) -> impl Iterator<Item = &GroupMachine> {
    group.machines.iter().filter(|machine| is_outdated(machine, group))
}

fn is_outdated(machine: &GroupMachine, group: &ScalingGroup) -> bool {
    machine.template_version != group.template_version
}
