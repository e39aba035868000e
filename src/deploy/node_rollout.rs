//! A manual rollout: a pool's outdated machines are replaced one by one, each after its jobs have ended.

use super::failure::DeployError;
use super::progress::Event;
use super::work::Work;
use crate::aws::{GroupMachine, ScalingGroup};
use crate::kube::{ApiServer, Node};
use crate::waiting::{Pace, WaitEnd};

/// Replaces at most `most` outdated machines of a pool; gives how many are still outdated.
pub async fn replace_outdated(
    work: &Work,
    api: &ApiServer,
    pool: &str,
    most: Option<usize>,
) -> Result<usize, DeployError> {
    let outdated: Vec<GroupMachine> = outdated_machines(&read_group(work, pool).await?).cloned().collect();
    if outdated.is_empty() {
        work.means.progress.note(format!("every machine of pool {pool} is up to date"));
        return Ok(0);
    }
    let count = most.unwrap_or(usize::MAX).min(outdated.len());
    work.means.progress.note(format!(
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
    let node = find_node(api, &machine.id).await?;
    if let Some(node) = &node {
        api.set_schedulable(&node.name, false).await?;
        work.means.progress.note(format!("cordoned {}", node.name));
        if let Err(error) = wait_for_jobs(work, api, &node.name).await {
            // The machine stays, so it may work again.
            api.set_schedulable(&node.name, true).await?;
            return Err(error);
        }
    }
    work.means.clients.replace_machine(&machine.id).await?;
    let name = node.map_or_else(|| machine.id.clone(), |node| node.name);
    work.means.progress.note(format!("ended {name} ({}); waiting for its successor", machine.id));
    wait_for_successor(work, api, pool, &machine.id).await
}

async fn wait_for_jobs(work: &Work, api: &ApiServer, node: &str) -> Result<(), DeployError> {
    let mut pace = Pace::of_stack();
    let mut told = Vec::new();
    loop {
        let pods = api.job_pods().await?.into_iter().filter(|pod| pod.node == node);
        let names: Vec<String> = pods
            .map(|pod| format!("job {}/{} on {node} (pod {})", pod.namespace, pod.job, pod.name))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        if names != told {
            work.means.progress.report(Event::Waiting { waiting_for: names.clone() });
            told.clone_from(&names);
        }
        if let Err(end) = work.means.waiting.pause(pace.next_pause()).await {
            return Err(stopped(
                end,
                &format!("{} still runs; {node} takes new pods again", names.join(", ")),
            ));
        }
    }
}

async fn wait_for_successor(work: &Work, api: &ApiServer, pool: &str, gone: &str) -> Result<(), DeployError> {
    let mut pace = Pace::of_stack();
    loop {
        let group = read_group(work, pool).await?;
        let nodes = api.nodes().await?;
        let is_up = |machine: &&GroupMachine| {
            machine.id != gone
                && machine.state == "InService"
                && nodes.iter().any(|node| node.ready && node.instance_id.as_deref() == Some(&machine.id))
        };
        let up = group.machines.iter().filter(is_up).count();
        if up >= group.desired as usize {
            return Ok(());
        }
        let missing = format!("pool {pool}: {up} of {} machines are up", group.desired);
        work.means.progress.report(Event::Waiting { waiting_for: vec![missing.clone()] });
        if let Err(end) = work.means.waiting.pause(pace.next_pause()).await {
            return Err(stopped(end, &missing));
        }
    }
}

/// Machines that were started from another version of the launch template than new ones are.
pub fn outdated_machines(group: &ScalingGroup) -> impl Iterator<Item = &GroupMachine> {
    group.machines.iter().filter(|machine| machine.template_version != group.template_version)
}

async fn read_group(work: &Work, pool: &str) -> Result<ScalingGroup, DeployError> {
    let role = format!("pool-{pool}");
    let groups = work.means.clients.groups_of_cluster(work.blueprint.cluster.name.as_str()).await?;
    let group =
        groups.into_iter().find(|group| group.tags.get("infra:role").is_some_and(|found| *found == role));
    group.ok_or_else(|| DeployError::Unusable {
        what: format!("pool {pool} has no group of machines in AWS"),
        help: "`infra up` makes it".to_owned(),
    })
}

async fn find_node(api: &ApiServer, instance: &str) -> Result<Option<Node>, DeployError> {
    let nodes = api.nodes().await?;
    Ok(nodes.into_iter().find(|node| node.instance_id.as_deref() == Some(instance)))
}

fn stopped(end: WaitEnd, what: &str) -> DeployError {
    let why = match end {
        WaitEnd::Interrupted => "detached",
        WaitEnd::TimedOut => "the time limit was reached",
    };
    DeployError::StillRunning { what: format!("{why}: {what}"), running: Vec::new() }
}
