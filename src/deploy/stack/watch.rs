//! Watches one operation on a stack to its end: its events, and what its groups of machines try meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::aws::{AwsError, End, GROUP_TYPE, ResourceStatus, StackEvent, StackStatus};
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, Evidence, StackOperation};
use crate::deploy::explain::failure_report::{FailedLaunch, FailedOperation};
use crate::deploy::machines::evidence::gather_evidence;
use crate::deploy::machines::launches::{Launches, is_since};
use crate::deploy::run::{Run, new_token};
use crate::waiting::{Pace, WaitEnd};

/// CloudFormation needs a moment before there is anything to see.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// About a minute. Whoever has not shown our token by then never will, and its newest operation must be ours.
const LOOKS_FOR_TOKEN: usize = 10;

/// Which operation is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    /// The one that this call began.
    Ours {
        /// The call's token.
        token: &'a str,
    },
    /// A deletion that this call began, or found under way by then: of a stack that nobody tried to delete before, any is the one.
    OurFirstDeletion,
    /// The rollback that this call began.
    OurRollback {
        /// The call's token.
        token: &'a str,
    },
    /// Whatever is under way.
    Found,
    /// The rollback that is under way, without what it undoes.
    FoundRollback,
}

/// How an operation ended.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) end: End,
    pub(crate) status: StackStatus,
    /// Everything that happened in it, oldest first.
    pub(crate) events: Vec<StackEvent>,
    /// What machines said that never signalled.
    pub(crate) evidence: Vec<Evidence>,
    /// The failure for which we ended it ourselves.
    pub(crate) gave_up: Option<FailedLaunch>,
}

impl Followed {
    /// What a report of the failure is made from.
    pub(crate) fn into_failed(self) -> FailedOperation {
        let Self { status, events, evidence, gave_up, .. } = self;
        FailedOperation { status, events, evidence, gave_up }
    }
}

/// Watches until the operation ends, the user goes or the time is up.
pub(crate) async fn follow(
    run: &Run,
    part: &StackPart,
    name: &str,
    arn: &str,
    operation: Operation<'_>,
) -> Result<Followed, DeployError> {
    let mut watch = Watch {
        run,
        part,
        name,
        arn,
        operation,
        events: Vec::new(),
        evidence: Vec::new(),
        launches: Launches::default(),
        has_a_past: matches!(operation, Operation::Found | Operation::FoundRollback),
        looked_into: BTreeSet::new(),
    };
    watch.run().await
}

struct Watch<'a> {
    run: &'a Run,
    part: &'a StackPart,
    name: &'a str,
    arn: &'a str,
    operation: Operation<'a>,
    events: Vec<StackEvent>,
    evidence: Vec<Evidence>,
    launches: Launches,
    /// Whether groups may have tried before this watch began; until they were looked at.
    has_a_past: bool,
    looked_into: BTreeSet<String>,
}

impl Watch<'_> {
    async fn run(&mut self) -> Result<Followed, DeployError> {
        let mut pace = Pace::of_stack();
        let mut gave_up = None;
        let mut looks = 0;
        let mut pause = match self.operation {
            Operation::Ours { .. } | Operation::OurFirstDeletion | Operation::OurRollback { .. } => {
                FIRST_LOOK
            }
            Operation::Found | Operation::FoundRollback => Duration::ZERO,
        };
        loop {
            if let Err(end) = self.run.waiting.pause(pause).await {
                return Err(self.leave(end).await);
            }
            pause = pace.next_pause();
            self.look().await?;
            looks += 1;
            if self.events.is_empty() && looks == LOOKS_FOR_TOKEN {
                self.operation = match self.operation {
                    Operation::OurRollback { .. } | Operation::FoundRollback => Operation::FoundRollback,
                    _ => Operation::Found,
                };
            }
            if let Some((end, status)) = self.end() {
                return Ok(Followed {
                    end,
                    status,
                    events: std::mem::take(&mut self.events),
                    evidence: std::mem::take(&mut self.evidence),
                    gave_up,
                });
            }
            if gave_up.is_none() {
                gave_up = self.look_at_launches().await?;
            }
        }
    }

    /// Reads what is new.
    async fn look(&mut self) -> Result<(), DeployError> {
        let newest = self.events.last().map(|event| event.id.clone());
        let fresh = match &newest {
            Some(newest) => self.run.clients.stack_events(self.arn, Some(newest)).await?,
            None => self.first_events().await?,
        };
        for event in fresh {
            if let Some(status) = event.resource_status() {
                self.run.progress.report(Event::Resource {
                    stack: self.name.to_owned(),
                    resource: event.logical_id.clone(),
                    kind: event.kind.clone(),
                    status: status.clone(),
                    reason: event.reason.clone(),
                });
                self.look_into(&event).await;
            }
            if let Some(operation) = self.undoing(&event) {
                self.run.progress.report(Event::UndoBegan { stack: self.name.to_owned(), operation });
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// What CloudFormation does to undo the operation, if it begins that with this event.
    fn undoing(&self, event: &StackEvent) -> Option<StackOperation> {
        let status = event.stack_status().filter(|_| !self.events.is_empty())?;
        match status {
            StackStatus::DeleteInProgress => Some(StackOperation::Delete),
            status => status.begins_rollback().then_some(StackOperation::RollBack),
        }
    }

    /// The operation's first events; none while CloudFormation still shows an older operation.
    async fn first_events(&self) -> Result<Vec<StackEvent>, AwsError> {
        let begins = |event: &StackEvent| self.begins(event);
        let events = self.run.clients.stack_events_since(self.arn, begins).await?;
        Ok(if events.first().is_some_and(begins) { events } else { Vec::new() })
    }

    fn begins(&self, event: &StackEvent) -> bool {
        let Some(status) = event.stack_status() else { return false };
        // A change that fails is rolled back under the same token, so only the status tells the two apart.
        let is_change = status.begins_operation();
        let is_rollback = status.begins_rollback();
        let is_ours = |token: &str| event.token.as_deref() == Some(token);
        match self.operation {
            Operation::Ours { token } => is_change && is_ours(token),
            Operation::OurFirstDeletion => *status == StackStatus::DeleteInProgress,
            Operation::OurRollback { token } => is_rollback && is_ours(token),
            Operation::Found => is_change,
            Operation::FoundRollback => is_rollback,
        }
    }

    fn end(&self) -> Option<(End, StackStatus)> {
        let last = self.events.iter().rev().find_map(StackEvent::stack_status)?;
        Some((last.end()?, last.clone()))
    }

    /// What the machines of a group said that never signalled; asked at once, because a rollback takes them away.
    async fn look_into(&mut self, event: &StackEvent) {
        let silent = event.kind == GROUP_TYPE
            && event.is_failure()
            && event.reason.as_deref().is_some_and(|reason| reason.contains("signal"));
        if silent && !event.physical_id.is_empty() && self.looked_into.insert(event.physical_id.clone()) {
            self.evidence.extend(gather_evidence(&self.run.clients, &event.physical_id).await);
        }
    }

    /// Follows what groups in the making try. The same failure again and again ends the operation.
    async fn look_at_launches(&mut self) -> Result<Option<FailedLaunch>, DeployError> {
        let began = self.events.first().and_then(|event| event.at);
        let groups = self.groups_in_the_making();
        for (resource, group) in &groups {
            let activities = self.run.clients.scaling_activities(group).await?;
            let fresh = activities.into_iter().filter(|activity| is_since(activity.started, began));
            for failure in self.launches.count_failures(resource, fresh) {
                self.run.progress.report(Event::LaunchFailed {
                    stack: self.name.to_owned(),
                    resource: resource.clone(),
                    reason: failure.reason,
                    times: failure.times,
                });
            }
        }
        if std::mem::take(&mut self.has_a_past) {
            for (resource, _) in &groups {
                self.launches.ignore_past_failures(resource);
            }
        }
        for (resource, _) in groups {
            if let Some(permanent) = self.launches.permanent_failure(&resource) {
                let cluster = self.run.cluster.as_ref();
                if let Some(shortage) = permanent.spot_shortage(cluster, self.part, self.name) {
                    return Err(shortage);
                }
                self.end_operation().await?;
                return Ok(Some(FailedLaunch { resource, reason: permanent.reason }));
            }
        }
        Ok(None)
    }

    fn groups_in_the_making(&self) -> Vec<(String, String)> {
        let mut newest = std::collections::BTreeMap::new();
        for event in self.events.iter().filter(|event| event.kind == GROUP_TYPE) {
            newest.insert(&event.logical_id, event);
        }
        let going = newest.into_values().filter(|event| {
            matches!(
                event.resource_status(),
                Some(ResourceStatus::CreateInProgress | ResourceStatus::UpdateInProgress)
            ) && !event.physical_id.is_empty()
        });
        going.map(|event| (event.logical_id.clone(), event.physical_id.clone())).collect()
    }

    /// Has CloudFormation undo what it is doing; says whether that can be undone. The events may not tell yet what it is.
    async fn end_operation(&self) -> Result<bool, DeployError> {
        let stack = self.run.clients.stack(self.arn).await?;
        let token = new_token()?;
        match stack.map(|stack| stack.status) {
            Some(StackStatus::ReviewInProgress | StackStatus::CreateInProgress) => {
                self.run.clients.delete_stack(self.arn, &token).await?;
            }
            Some(StackStatus::UpdateInProgress) => self.run.clients.cancel_update(self.arn, &token).await?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The wait ends before the operation does.
    async fn leave(&self, end: WaitEnd) -> DeployError {
        if end == WaitEnd::Interrupted && self.run.cancel_on_interrupt {
            match self.end_operation().await {
                Ok(true) => {
                    return DeployError::StillRunning {
                        what: format!("cancelled; {} is being undone", self.name),
                        running: vec![self.name.to_owned()],
                    };
                }
                Ok(false) => {}
                Err(error) => return error,
            }
        }
        Run::still_running(end, self.name)
    }
}
