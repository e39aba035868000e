//! A manual rollout: a pool's outdated machines are replaced one by one, each after its jobs have ended.

use std::time::Duration;

use super::pool_launches::PoolLaunches;
use crate::aws::{GroupMachine, ScalingGroup};
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::work::Work;
use crate::kube::{ApiServer, Contact, KubeError, Node, Outage};
use crate::waiting::Pace;

/// Longer than it takes to replace a controller; whoever is away so long does not come back by itself.
const LONGEST_OUTAGE: Duration = Duration::from_mins(15);

/// At last one in half a minute, for what a group tries.
const LOOKS_AT_LAUNCHES: u32 = 3;

/// Replaces at most `most` outdated machines of a pool; gives how many are still outdated.
pub async fn replace_outdated(
    work: &Work,
    api: &ApiServer,
    pool: &str,
    most: Option<usize>,
) -> Result<usize, DeployError> {
    let outdated: Vec<GroupMachine> = outdated_machines(&read_group(work, pool).await?).cloned().collect();
    if outdated.is_empty() {
        work.run.progress.note(format!("every machine of pool {pool} is up to date"));
        return Ok(0);
    }
    let count = most.unwrap_or(usize::MAX).min(outdated.len());
    work.run.progress.note(format!(
        "{} machines of pool {pool} are outdated; {count} are replaced now, one by one",
        outdated.len()
    ));
    for machine in &outdated[..count] {
        replace_one(work, api, pool, machine).await?;
    }
    Ok(outdated.len() - count)
}

async fn replace_one(
    work: &Work,
    api: &ApiServer,
    pool: &str,
    machine: &GroupMachine,
) -> Result<(), DeployError> {
    let node = find_node(work, api, &machine.id).await?;
    if let Some(node) = &node {
        ask(work, async || api.set_schedulable(&node.name, false).await).await?;
        work.run.progress.note(format!("cordoned {}", node.name));
        if let Err(error) = wait_for_jobs(work, api, &node.name).await {
            return Err(reopen(work, api, &node.name, error).await);
        }
    }
    work.run.clients.replace_machine(&machine.id).await?;
    let name = node.map_or_else(|| machine.id.clone(), |node| node.name);
    work.run.progress.note(format!("ended {name} ({}); waiting for its successor", machine.id));
    wait_for_successor(work, api, pool, &machine.id).await
}

/// The machine stays, so it may work again. Whatever comes of that, the error is the one that was there first.
async fn reopen(work: &Work, api: &ApiServer, node: &str, error: DeployError) -> DeployError {
    match (api.set_schedulable(node, true).await, error) {
        (Ok(()), DeployError::StillRunning { what, running }) => {
            DeployError::StillRunning { what: format!("{what}; {node} takes new pods again"), running }
        }
        (Ok(()), error) => error,
        (Err(refused), error) => {
            work.run.progress.warn(format!(
                "{node} takes no new pods: {refused}; `kubectl uncordon {node}` lets it take them"
            ));
            error
        }
    }
}

async fn wait_for_jobs(work: &Work, api: &ApiServer, node: &str) -> Result<(), DeployError> {
    let mut pace = Pace::of_stack();
    let mut told = Vec::new();
    loop {
        let pods = ask(work, async || api.job_pods().await).await?;
        let pods = pods.into_iter().filter(|pod| pod.node == node);
        let names: Vec<String> = pods
            .map(|pod| format!("job {}/{} on {node} (pod {})", pod.namespace, pod.job, pod.name))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        if names != told {
            work.run.progress.report(Event::Waiting { waiting_for: names.clone() });
            told.clone_from(&names);
        }
        if let Err(end) = work.run.waiting.pause(pace.next_pause()).await {
            let what = format!("{end}: {} still runs", names.join(", "));
            return Err(DeployError::StillRunning { what, running: Vec::new() });
        }
    }
}

async fn wait_for_successor(work: &Work, api: &ApiServer, pool: &str, gone: &str) -> Result<(), DeployError> {
    let mut pace = Pace::of_stack();
    let mut launches = PoolLaunches::of_standing_pools(work);
    let mut told = String::new();
    let mut looks = 0;
    loop {
        let group = read_group(work, pool).await?;
        let nodes = ask(work, async || api.nodes().await).await?;
        let (up, wanted) = count_up(&group, &nodes, gone, gpus_of(work, pool));
        if up >= wanted {
            return Ok(());
        }
        let missing = format!("pool {pool}: {up} of {wanted} machines are up");
        if missing != told {
            work.run.progress.report(Event::Waiting { waiting_for: vec![missing.clone()] });
            told.clone_from(&missing);
        }
        if looks % LOOKS_AT_LAUNCHES == 0 {
            launches.look(pool, &group).await?;
            launches.expect_hope().await?;
        }
        looks += 1;
        if let Err(end) = work.run.waiting.pause(pace.next_pause()).await {
            return Err(DeployError::StillRunning { what: format!("{end}: {missing}"), running: Vec::new() });
        }
    }
}

/// How many machines work, and how many should. Those that are still to be replaced may be broken, and are not counted.
fn count_up(group: &ScalingGroup, nodes: &[Node], gone: &str, gpus: u32) -> (usize, usize) {
    let works = |machine: &GroupMachine| {
        let is_its_own = |node: &&Node| node.instance_id.as_deref() == Some(&machine.id);
        machine.state == "InService"
            && nodes.iter().find(is_its_own).is_some_and(|node| node.ready && node.gpus >= gpus)
    };
    let others = group.machines.iter().filter(|machine| machine.id != gone);
    let (to_come, fresh): (Vec<&GroupMachine>, Vec<&GroupMachine>) =
        others.partition(|machine| is_outdated(machine, group));
    let up = fresh.into_iter().filter(|machine| works(machine)).count();
    (up, (group.desired as usize).saturating_sub(to_come.len()))
}

fn gpus_of(work: &Work, pool: &str) -> u32 {
    let pools = &work.blueprint.cluster.pools;
    let gpus = pools.iter().find(|known| known.name.as_str() == pool).and_then(|pool| pool.gpus.as_ref());
    gpus.map_or(0, |gpus| gpus.count)
}

/// Machines that were started from another version of the launch template than new ones are.
pub fn outdated_machines(group: &ScalingGroup) -> impl Iterator<Item = &GroupMachine> {
    group.machines.iter().filter(|machine| is_outdated(machine, group))
}

fn is_outdated(machine: &GroupMachine, group: &ScalingGroup) -> bool {
    machine.template_version != group.template_version
}

async fn read_group(work: &Work, pool: &str) -> Result<ScalingGroup, DeployError> {
    let role = format!("pool-{pool}");
    let groups = work.run.clients.groups_of_cluster(work.blueprint.cluster.name.as_str()).await?;
    let group =
        groups.into_iter().find(|group| group.tags.get("infra:role").is_some_and(|found| *found == role));
    group.ok_or_else(|| DeployError::Unusable {
        what: format!("pool {pool} has no group of machines in AWS"),
        help: "`infra up` makes it".to_owned(),
    })
}

async fn find_node(work: &Work, api: &ApiServer, instance: &str) -> Result<Option<Node>, DeployError> {
    let nodes = ask(work, async || api.nodes().await).await?;
    Ok(nodes.into_iter().find(|node| node.instance_id.as_deref() == Some(instance)))
}

/// Asks the API, again and again while it is away: a rollout may take hours, and a control plane is replaced now and then.
async fn ask<T>(work: &Work, question: impl AsyncFn() -> Result<T, KubeError>) -> Result<T, DeployError> {
    let patience = work.run.waiting.at_most(LONGEST_OUTAGE);
    let (mut pace, mut outage) = (Pace::of_stack(), Outage::default());
    loop {
        let answer = question().await;
        let why = answer.as_ref().err().cloned();
        let tell = |contact| match contact {
            Contact::Lost(why) => work.run.progress.warn(format!("{why}; it is asked again")),
            Contact::Found => work.run.progress.note("the Kubernetes API answers again"),
        };
        match (outage.survive(answer, tell)?, why) {
            (Some(answer), _) => return Ok(answer),
            (None, Some(why)) if patience.pause(pace.next_pause()).await.is_err() => {
                let Some(end) = work.run.waiting.end() else { return Err(why.into()) };
                let what = format!("{end}: {why}");
                return Err(DeployError::StillRunning { what, running: Vec::new() });
            }
            _ => {}
        }
    }
}
