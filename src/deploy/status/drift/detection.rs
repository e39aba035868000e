//! Drift detection over all stacks of a cluster in parallel.

use std::collections::{BTreeMap, BTreeSet};

use tokio::task::JoinSet;

use super::by_design::{StackContext, is_of_service};
use super::results::Results;
use super::shape::{DriftReport, StackDrift};
use crate::aws::{AwsError, DetectionStart, DetectionStatus, Stack};
use crate::blueprint::StackPart;
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::deploy::state::live::{LiveCluster, LiveStack};
use crate::deploy::state::step::{NextStep, next_step};
use crate::plural::count_of;
use crate::waiting::Pace;

/// Compares every stack of a cluster with its template; changes nothing. Each stack is reported as soon as it is done.
pub(crate) async fn detect_drift(run: &Run, cluster: &Cluster) -> Result<DriftReport, DeployError> {
    let live = LiveCluster::read(&run.clients, &cluster.name, Some(cluster)).await?;
    for foreign in &live.foreign {
        let owner =
            foreign.cluster.as_deref().map_or_else(String::new, |name| format!(": it is of cluster {name}"));
        run.progress
            .warn(format!("{} is not a stack of this cluster, and is not checked{owner}", foreign.name));
    }
    if !live.exists() {
        return Ok(DriftReport::absent(cluster.name.as_str()));
    }
    run.progress.stage("detecting drift, which takes a few minutes");
    let vpc = live.outputs().remove("VpcId");
    let mut pending: BTreeSet<String> = live.stacks.values().map(|live| live.stack.name.clone()).collect();
    let mut tasks = JoinSet::new();
    for (part, stack) in live.stacks {
        let check =
            StackCheck { run: run.clone(), cluster: cluster.clone(), part, live: stack, vpc: vpc.clone() };
        tasks.spawn(check.run());
    }
    report_pending(run, &pending);
    let mut done = BTreeMap::new();
    while let Some(joined) = tasks.join_next().await {
        let checked = joined.map_err(|error| AwsError::lost(error.to_string()))?;
        let (part, drift) = match checked {
            Err(DeployError::StillRunning { what, .. }) => {
                return Err(DeployError::StillRunning { what, running: pending.into_iter().collect() });
            }
            other => other?,
        };
        pending.remove(&drift.stack);
        run.progress.note(format!("{}: {}", drift.stack, summarize_drift(&drift)));
        report_pending(run, &pending);
        done.insert(part, drift);
    }
    Ok(DriftReport::new(cluster.name.as_str(), done.into_values().collect()))
}

fn report_pending(run: &Run, pending: &BTreeSet<String>) {
    run.progress
        .report(crate::deploy::event::Event::Waiting { waiting_for: pending.iter().cloned().collect() });
}

fn summarize_drift(drift: &StackDrift) -> String {
    match (&drift.problem, drift.drifted.len(), drift.failed.len()) {
        (_, drifted @ 1.., _) => format!("{} drifted", count_of(drifted, "resource")),
        (Some(problem), 0, _) => problem.clone(),
        (None, 0, failed @ 1..) => format!("{} could not be checked", count_of(failed, "resource")),
        (None, 0, 0) => "no drift".to_owned(),
    }
}

/// The check of one stack.
struct StackCheck {
    run: Run,
    cluster: Cluster,
    part: StackPart,
    live: LiveStack,
    vpc: Option<String>,
}

impl StackCheck {
    async fn run(self) -> Result<(StackPart, StackDrift), DeployError> {
        let Stack { name, status, .. } = &self.live.stack;
        let unchecked = |problem| StackDrift::unchecked(name, status, problem);
        let problem = match next_step(Some(status)) {
            NextStep::Follow => {
                Some(format!("cannot be checked while an operation is in progress ({status})"))
            }
            NextStep::Create | NextStep::DeleteAndCreate | NextStep::FinishDeletion => {
                Some(format!("cannot be checked in {status}: only complete stacks can"))
            }
            NextStep::Compare | NextStep::RollBack | NextStep::Inspect => None,
        };
        if problem.is_some() {
            return Ok((self.part.clone(), unchecked(problem)));
        }
        let id = match self.begin().await? {
            Ok(id) => id,
            Err(refusal) => return Ok((self.part.clone(), unchecked(Some(refusal)))),
        };
        let results = self.wait(&id).await?;
        let service_groups = self.service_groups(&results).await?;
        let context = StackContext {
            cluster: &self.cluster.name,
            part: &self.part,
            template: self.live.template(),
            service_groups: &service_groups,
        };
        let drift = results.sort(unchecked(None), &self.cluster, context);
        Ok((self.part.clone(), drift))
    }

    /// Begins a detection, once no other one is in progress; gives its id, or why CloudFormation refuses. One that someone else began may
    /// have read resources before they were changed, and its id cannot be queried.
    async fn begin(&self) -> Result<Result<String, String>, DeployError> {
        let stack = &self.live.stack;
        let mut pace = Pace::of_stack();
        let mut is_first = true;
        loop {
            match self.run.clients.detect_drift(&stack.arn).await? {
                DetectionStart::Began(id) => return Ok(Ok(id)),
                DetectionStart::Refused(reason) => return Ok(Err(reason)),
                DetectionStart::AlreadyInProgress => {
                    if std::mem::take(&mut is_first) {
                        let text =
                            "another drift detection is in progress; waiting for its end to begin our own";
                        self.run.progress.note(format!("{}: {text}", stack.name));
                    }
                    self.pause(&mut pace).await?;
                }
            }
        }
    }

    async fn wait(&self, id: &str) -> Result<Results, DeployError> {
        let clients = &self.run.clients;
        let mut pace = Pace::of_stack();
        let detection = loop {
            let detection = clients.drift_detection(id).await?;
            if detection.status != DetectionStatus::InProgress {
                break detection;
            }
            self.pause(&mut pace).await?;
        };
        let arn = &self.live.stack.arn;
        let (resources, drifts) =
            tokio::try_join!(clients.stack_resources(arn), clients.resource_drifts(arn))?;
        Ok(Results { detection, resources, drifts })
    }

    async fn pause(&self, pace: &mut Pace) -> Result<(), DeployError> {
        let pause = self.run.waiting.pause(pace.next_pause()).await;
        pause.map_err(|end| Run::still_running(end, &self.live.stack.name))
    }

    /// The security groups that Kubernetes created, if there is anything to compare with them.
    async fn service_groups(&self, results: &Results) -> Result<BTreeSet<String>, DeployError> {
        let (Some(vpc), false) = (&self.vpc, results.added_sources().is_empty()) else {
            return Ok(BTreeSet::new());
        };
        let groups = self.run.clients.security_groups_in(vpc).await?.into_iter();
        let of_services = groups.filter(|group| is_of_service(group, &self.cluster.name));
        Ok(of_services.map(|group| group.id).collect())
    }
}
