//! Brings up the stacks of a cluster in parallel, each as soon as the stacks that it needs are complete.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::bring_up::{BroughtUp, ChangeTerms, bring_up};
use crate::aws::{AwsError, Cause};
use crate::blueprint::{Role, StackPart};
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, PlannedMachines, PlannedStack};
use crate::deploy::inputs::asset_store::AssetStore;
use crate::deploy::run::Run;
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveCluster;

/// What became of all stacks.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The stacks that this run has changed.
    pub(crate) changed: BTreeSet<StackPart>,
    /// The outputs of all of them.
    pub(crate) outputs: BTreeMap<String, String>,
    /// The stacks that are as they should be.
    pub(crate) settled: BTreeSet<StackPart>,
    /// What failed meanwhile.
    pub(crate) failure: Option<DeployError>,
}

type Joined = (DesiredStack, Result<BroughtUp, DeployError>);

/// Brings up every stack. One that fails stops those that need it; the others are finished. `before_creation` runs right before a
/// stack is created, and `outputs` has those of all stacks that are complete, as soon as they are.
pub(crate) async fn bring_up_all(
    run: &Run,
    store: &AssetStore,
    desired: Vec<DesiredStack>,
    live: &LiveCluster,
    terms: &ChangeTerms,
    before_creation: impl AsyncFn(&StackPart) -> Result<(), DeployError>,
    outputs: &watch::Sender<BTreeMap<String, String>>,
) -> Outcome {
    let planned = desired.iter().map(|stack| planned_stack(stack, &desired, live, run.cluster.as_ref()));
    run.progress.report(Event::Stacks { stacks: planned.collect() });
    let mut waiting: BTreeMap<StackPart, DesiredStack> =
        desired.into_iter().map(|stack| (stack.part.clone(), stack)).collect();
    let in_run: BTreeSet<StackPart> = waiting.keys().cloned().collect();
    let mut outcome = Outcome { outputs: live.outputs(), ..Outcome::default() };
    let mut failed: BTreeMap<StackPart, String> = BTreeMap::new();
    let mut errors = Vec::new();
    let mut running: JoinSet<Joined> = JoinSet::new();
    loop {
        // After an interruption, or once AWS refuses the credentials, nothing new is begun, and what is not begun has not failed.
        if !errors.iter().any(ends_everything) {
            skip_dependents(run, &mut waiting, &mut failed);
            let ready: Vec<StackPart> = waiting
                .keys()
                .filter(|part| {
                    part.needs().iter().all(|need| outcome.settled.contains(need) || !in_run.contains(need))
                })
                .cloned()
                .collect();
            for part in ready {
                let Some(stack) = waiting.remove(&part) else { continue };
                if !live.stacks.contains_key(&part)
                    && let Err(error) = before_creation(&part).await
                {
                    failed.insert(part, stack.name);
                    errors.push(error);
                    continue;
                }
                // Whatever others need is waited for in any case.
                let is_needed = in_run.iter().any(|other| other.needs().contains(&part));
                let terms = ChangeTerms { waits: terms.waits || is_needed, ..terms.clone() };
                let (run, store) = (run.clone(), store.clone());
                let (found, outputs) = (live.stacks.get(&part).cloned(), outcome.outputs.clone());
                running.spawn(async move {
                    let result = bring_up(&run, &store, &stack, found, &outputs, &terms).await;
                    (stack, result)
                });
            }
        }
        let Some(joined) = running.join_next().await else { break };
        match joined {
            Ok((stack, Ok(brought_up))) => {
                if brought_up.changed {
                    outcome.changed.insert(stack.part.clone());
                }
                outcome.outputs.extend(brought_up.stack.outputs);
                outputs.send_replace(outcome.outputs.clone());
                outcome.settled.insert(stack.part);
            }
            Ok((stack, Err(error))) => {
                failed.insert(stack.part, stack.name);
                errors.push(error);
            }
            Err(error) => errors.push(AwsError::lost(error.to_string()).into()),
        }
    }
    if !errors.is_empty() {
        outcome.failure = Some(merge_failures(errors));
    }
    outcome
}

fn planned_stack(
    stack: &DesiredStack,
    all: &[DesiredStack],
    live: &LiveCluster,
    cluster: Option<&Cluster>,
) -> PlannedStack {
    let after = all.iter().filter(|other| stack.part.needs().contains(&other.part));
    let machines = match (&stack.part, cluster) {
        (StackPart::Network | StackPart::Storage, _) | (StackPart::ControlPlane, None) => Vec::new(),
        (StackPart::ControlPlane, Some(cluster)) => {
            let members = (0..cluster.etcd.count).map(|member| (Role::EtcdMember(member), 1));
            members.chain([(Role::Controller, cluster.controllers.count)]).collect()
        }
        (StackPart::Pool(pool), _) => {
            vec![(Role::Pool(pool.clone()), stack.machines(live).unwrap_or_default())]
        }
    };
    PlannedStack {
        stack: stack.name.clone(),
        after: after.map(|other| other.name.clone()).collect(),
        resources: stack.template.document()["Resources"].as_object().map(serde_json::Map::len),
        machines: machines.into_iter().map(|(role, count)| PlannedMachines { role, count }).collect(),
    }
}

/// Gives up on stacks that need one that failed.
fn skip_dependents(
    run: &Run,
    waiting: &mut BTreeMap<StackPart, DesiredStack>,
    failed: &mut BTreeMap<StackPart, String>,
) {
    loop {
        let next = waiting.keys().find_map(|part| {
            let need = part.needs().iter().find(|need| failed.contains_key(need))?;
            Some((part.clone(), failed[need].clone()))
        });
        let Some((part, because)) = next else { return };
        if let Some(stack) = waiting.remove(&part) {
            run.progress.report(Event::StackSkipped { stack: stack.name.clone(), because });
            failed.insert(part, stack.name);
        }
    }
}

fn ends_everything(error: &DeployError) -> bool {
    match error {
        DeployError::StillRunning { .. } | DeployError::DeletedMeanwhile { .. } => true,
        DeployError::Aws(error) => error.cause == Cause::Credentials,
        _ => false,
    }
}

/// Several errors into the one that says most: credentials first, then what failed, then what continues.
fn merge_failures(errors: Vec<DeployError>) -> DeployError {
    let mut reports = Vec::new();
    let mut refusals = Vec::new();
    let mut ended: Option<(String, Vec<String>)> = None;
    let mut others = Vec::new();
    for error in errors {
        match error {
            DeployError::Failed(list) => reports.extend(list),
            DeployError::Refused(list) => refusals.extend(list),
            DeployError::StillRunning { what, running } => {
                let (_, all) = ended.get_or_insert((what, Vec::new()));
                all.extend(running);
            }
            other => others.push(other),
        }
    }
    let is_credentials =
        |error: &DeployError| matches!(error, DeployError::Aws(error) if error.cause == Cause::Credentials);
    if let Some(index) = others.iter().position(is_credentials) {
        return others.swap_remove(index);
    }
    // What else failed did so because of that.
    if let Some(index) = others.iter().position(|error| matches!(error, DeployError::DeletedMeanwhile { .. }))
    {
        return others.swap_remove(index);
    }
    if !reports.is_empty() {
        return DeployError::Failed(reports);
    }
    if let Some(first) = others.into_iter().next() {
        return first;
    }
    if !refusals.is_empty() {
        return DeployError::Refused(refusals);
    }
    let (what, running) = ended.unwrap_or_default();
    DeployError::StillRunning { what, running }
}
