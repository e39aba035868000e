//! Watches one operation on a stack to its end: its events, and meanwhile the launches of its Auto Scaling groups.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::aws::{
    AUTO_SCALING_GROUP_TYPE, AwsError, End, ResourceStatus, ScalingActivity, Stack, StackEvent, StackStatus,
};
use crate::blueprint::StackPart;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, Evidence, MachineState, StackOperation};
use crate::deploy::explain::failure_report::{FailedOperation, LaunchGivenUp};
use crate::deploy::machines::evidence::gather_evidence;
use crate::deploy::machines::launches::{
    Launches, is_since, launched_machine, role_of_group, signalled_machine,
};
use crate::deploy::run::{Run, new_token};
use crate::waiting::{Pace, WaitEnd};

/// CloudFormation needs a moment before there is anything to read.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// About a minute. If no event has shown our token by then, none ever will, and the newest operation must be ours.
const READS_FOR_TOKEN: usize = 10;
/// The stack itself is read with every sixth read of its events: an event that never comes must not keep the watch from its end.
const READS_PER_STACK_READ: usize = 6;

/// The stack that is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedStack<'a> {
    pub(crate) part: &'a StackPart,
    pub(crate) name: &'a str,
    pub(crate) arn: &'a str,
}

impl<'a> WatchedStack<'a> {
    pub(crate) fn of(part: &'a StackPart, stack: &'a Stack) -> Self {
        Self { part, name: &stack.name, arn: &stack.arn }
    }
}

/// By which event an operation begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperationBeginning<'a> {
    /// The beginning of the change that this call began.
    OurCall {
        /// The token of the call.
        token: &'a str,
    },
    /// The beginning of a deletion by any process: a stack that was never deleted before has only one.
    FirstDeletion,
    /// The beginning of the rollback that this call began.
    OurRollback {
        /// The token of the call.
        token: &'a str,
    },
    /// The beginning of the newest change.
    Newest,
    /// The beginning of the newest rollback, without the change that it undoes.
    NewestRollback,
}

impl OperationBeginning<'_> {
    fn is_at(self, event: &StackEvent) -> bool {
        let Some(status) = event.stack_status() else { return false };
        // A change that fails is rolled back under the same token, so only the status distinguishes the two.
        let is_change = status.begins_operation();
        let is_rollback = status.begins_rollback();
        let has_token = |token: &str| event.token.as_deref() == Some(token);
        match self {
            Self::OurCall { token } => is_change && has_token(token),
            Self::FirstDeletion => *status == StackStatus::DeleteInProgress,
            Self::OurRollback { token } => is_rollback && has_token(token),
            Self::Newest => is_change,
            Self::NewestRollback => is_rollback,
        }
    }

    /// Whether another process may have begun the operation, long before it is watched.
    fn is_found(self) -> bool {
        match self {
            Self::Newest | Self::NewestRollback => true,
            Self::OurCall { .. } | Self::FirstDeletion | Self::OurRollback { .. } => false,
        }
    }

    fn without_token(self) -> Self {
        match self {
            Self::OurRollback { .. } | Self::NewestRollback => Self::NewestRollback,
            Self::OurCall { .. } | Self::FirstDeletion | Self::Newest => Self::Newest,
        }
    }
}

/// An operation that has ended.
#[derive(Debug)]
pub(crate) struct EndedOperation {
    pub(crate) end: End,
    pub(crate) status: StackStatus,
    /// Everything that happened in the operation, oldest first.
    pub(crate) events: Vec<StackEvent>,
    /// The output of machines that never signalled.
    pub(crate) evidence: Vec<Evidence>,
    /// The launch failure for which this run ended the operation.
    pub(crate) gave_up: Option<LaunchGivenUp>,
}

impl EndedOperation {
    /// What a report of the failure is made from.
    pub(crate) fn into_failed(self) -> FailedOperation {
        let Self { status, events, evidence, gave_up, .. } = self;
        FailedOperation { status, events, evidence, gave_up }
    }
}

/// Watches until the operation ends, the user interrupts or the time limit is reached.
pub(crate) async fn watch_stack(
    run: &Run,
    target: WatchedStack<'_>,
    beginning: OperationBeginning<'_>,
) -> Result<EndedOperation, DeployError> {
    let mut watch = StackWatch {
        run,
        target,
        beginning,
        events: Vec::new(),
        evidence: Vec::new(),
        launches: Launches::default(),
        has_past_launches: beginning.is_found(),
        examined: BTreeSet::new(),
    };
    watch.run().await
}

struct StackWatch<'a> {
    run: &'a Run,
    target: WatchedStack<'a>,
    beginning: OperationBeginning<'a>,
    events: Vec<StackEvent>,
    evidence: Vec<Evidence>,
    launches: Launches,
    /// Whether Auto Scaling groups may have launches from before this watch that were not read yet.
    has_past_launches: bool,
    /// Auto Scaling groups whose machines were asked for their consoles.
    examined: BTreeSet<String>,
}

impl StackWatch<'_> {
    async fn run(&mut self) -> Result<EndedOperation, DeployError> {
        let mut pace = Pace::of_stack();
        let mut gave_up = None;
        let mut reads = 0;
        let mut pause = if self.beginning.is_found() { Duration::ZERO } else { FIRST_PAUSE };
        loop {
            if let Err(end) = self.run.waiting.pause(pause).await {
                return Err(self.stop_waiting(end).await);
            }
            pause = pace.next_pause();
            let is_known = self.read_events().await?;
            reads += 1;
            if self.events.is_empty() && reads == READS_FOR_TOKEN {
                self.beginning = self.beginning.without_token();
            }
            let end = match self.end() {
                Some((end, status)) => {
                    if matches!(end, End::Failed | End::RolledBack) {
                        self.read_all_events().await?;
                    }
                    Some((end, status))
                }
                None if !is_known || reads % READS_PER_STACK_READ == 0 => self.end_of_stack(reads).await?,
                None => None,
            };
            if let Some((end, status)) = end {
                return Ok(EndedOperation {
                    end,
                    status,
                    events: std::mem::take(&mut self.events),
                    evidence: std::mem::take(&mut self.evidence),
                    gave_up,
                });
            }
            if gave_up.is_none() {
                gave_up = self.read_launches().await?;
            }
        }
    }

    /// Reads the events since the last time, and reports them; returns whether CloudFormation still knows the stack.
    async fn read_events(&mut self) -> Result<bool, DeployError> {
        let newest = self.events.last().map(|event| event.id.clone());
        let read = match &newest {
            Some(newest) => self.run.clients.stack_events(self.target.arn, Some(newest)).await,
            None => self.operation_events().await,
        };
        let fresh = match read {
            Err(error) if error.is_missing_stack() => return Ok(false),
            read => read?,
        };
        for event in fresh {
            self.report(&event).await;
            self.events.push(event);
        }
        Ok(true)
    }

    /// Reads all events of the operation once more: one may have come late, behind others that were read already.
    async fn read_all_events(&mut self) -> Result<(), DeployError> {
        let all = match self.operation_events().await {
            Err(error) if error.is_missing_stack() => return Ok(()),
            read => read?,
        };
        if all.is_empty() {
            return Ok(());
        }
        let known: BTreeSet<String> = self.events.iter().map(|event| event.id.clone()).collect();
        for event in all.iter().filter(|event| !known.contains(&event.id)) {
            self.report(event).await;
        }
        self.events = all;
        Ok(())
    }

    async fn report(&mut self, event: &StackEvent) {
        if let Some(status) = event.resource_status() {
            self.run.progress.report(Event::Resource {
                stack: self.target.name.to_owned(),
                resource: event.logical_id.clone(),
                kind: event.kind.clone(),
                status: status.clone(),
                reason: event.reason.clone(),
            });
            if let Some((role, machine)) =
                role_of_group(self.target.part, &event.logical_id).zip(signalled_machine(event))
            {
                self.run.progress.machine(&role, machine, MachineState::Booted);
            }
            self.gather_evidence(event).await;
        }
        if let Some(operation) = self.undoing(event) {
            self.run.progress.report(Event::UndoBegan { stack: self.target.name.to_owned(), operation });
        }
    }

    /// What CloudFormation does to undo the operation, if it begins that with this event.
    fn undoing(&self, event: &StackEvent) -> Option<StackOperation> {
        let status = event.stack_status().filter(|_| !self.events.is_empty())?;
        match status {
            StackStatus::DeleteInProgress => Some(StackOperation::Delete),
            status => status.begins_rollback().then_some(StackOperation::RollBack),
        }
    }

    /// All events of the operation so far; none while CloudFormation still shows an older operation.
    async fn operation_events(&self) -> Result<Vec<StackEvent>, AwsError> {
        let first = self.events.first();
        let begins = |event: &StackEvent| {
            first.map_or_else(|| self.beginning.is_at(event), |first| first.id == event.id)
        };
        let events = self.run.clients.stack_events_since(self.target.arn, begins).await?;
        Ok(if events.first().is_some_and(begins) { events } else { Vec::new() })
    }

    fn end(&self) -> Option<(End, StackStatus)> {
        let last = self.events.iter().rev().find_map(StackEvent::stack_status)?;
        Some((last.end()?, last.clone()))
    }

    /// The end of an operation whose last event does not come, by the status of the stack.
    async fn end_of_stack(&mut self, reads: usize) -> Result<Option<(End, StackStatus)>, DeployError> {
        // The events are what is watched. A stack that cannot be read now is read again later.
        let Ok(stack) = self.run.clients.stack(self.target.arn).await else { return Ok(None) };
        let status = stack.map_or(StackStatus::DeleteComplete, |stack| stack.status);
        let Some(end) = status.end() else { return Ok(None) };
        // Until the operation shows itself, a stack that exists shows the end of an older one.
        if self.events.is_empty() && end != End::Deleted && reads <= READS_FOR_TOKEN {
            return Ok(None);
        }
        self.read_all_events().await?;
        Ok(self.end().or(Some((end, status))))
    }

    /// The output of machines of an Auto Scaling group that never signalled; read at once, because a rollback terminates them.
    async fn gather_evidence(&mut self, event: &StackEvent) {
        let silent = event.kind == AUTO_SCALING_GROUP_TYPE
            && event.is_failure()
            && event.reason.as_deref().is_some_and(|reason| reason.contains("signal"));
        if silent && !event.physical_id.is_empty() && self.examined.insert(event.physical_id.clone()) {
            self.evidence.extend(gather_evidence(&self.run.clients, &event.physical_id).await);
        }
    }

    /// Reads the launches of Auto Scaling groups that CloudFormation waits for. The same permanent failure again and again ends the
    /// operation.
    async fn read_launches(&mut self) -> Result<Option<LaunchGivenUp>, DeployError> {
        let began = self.events.first().and_then(|event| event.at);
        let groups = self.groups_in_progress();
        for (resource, group) in &groups {
            let activities = self.run.clients.scaling_activities(group).await?;
            let fresh: Vec<ScalingActivity> =
                activities.into_iter().filter(|activity| is_since(activity.started, began)).collect();
            if let Some(role) = role_of_group(self.target.part, resource) {
                // The newest comes first.
                for machine in fresh.iter().rev().filter_map(launched_machine) {
                    self.run.progress.machine(&role, machine, MachineState::Launched);
                }
            }
            for failure in self.launches.count_failures(resource, fresh.into_iter()) {
                self.run.progress.report(Event::LaunchFailed {
                    stack: self.target.name.to_owned(),
                    resource: resource.clone(),
                    reason: failure.reason,
                    times: failure.times,
                });
            }
        }
        if std::mem::take(&mut self.has_past_launches) {
            for (resource, _) in &groups {
                self.launches.ignore_past_failures(resource);
            }
        }
        for (resource, _) in groups {
            if let Some(permanent) = self.launches.permanent_failure(&resource) {
                let cluster = self.run.cluster.as_ref();
                if let Some(shortage) = permanent.spot_shortage(cluster, self.target.part, self.target.name) {
                    return Err(shortage);
                }
                self.undo_operation().await?;
                return Ok(Some(LaunchGivenUp { resource, reason: permanent.reason }));
            }
        }
        Ok(None)
    }

    fn groups_in_progress(&self) -> Vec<(String, String)> {
        let mut newest = std::collections::BTreeMap::new();
        for event in self.events.iter().filter(|event| event.kind == AUTO_SCALING_GROUP_TYPE) {
            newest.insert(&event.logical_id, event);
        }
        let in_progress = newest.into_values().filter(|event| {
            matches!(
                event.resource_status(),
                Some(ResourceStatus::CreateInProgress | ResourceStatus::UpdateInProgress)
            ) && !event.physical_id.is_empty()
        });
        in_progress.map(|event| (event.logical_id.clone(), event.physical_id.clone())).collect()
    }

    /// Has CloudFormation undo the operation; says whether that is possible. The stack is read because its events may be late.
    async fn undo_operation(&self) -> Result<bool, DeployError> {
        let stack = self.run.clients.stack(self.target.arn).await?;
        let token = new_token()?;
        match stack.map(|stack| stack.status) {
            Some(StackStatus::ReviewInProgress | StackStatus::CreateInProgress) => {
                self.run.clients.delete_stack(self.target.arn, &token).await?;
            }
            Some(StackStatus::UpdateInProgress) => {
                self.run.clients.cancel_update(self.target.arn, &token).await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The error of a wait that ends before the operation does.
    async fn stop_waiting(&self, end: WaitEnd) -> DeployError {
        if end == WaitEnd::Interrupted && self.run.cancel_on_interrupt {
            match self.undo_operation().await {
                Ok(true) => {
                    return DeployError::StillRunning {
                        what: format!("cancelled; {} is being undone", self.target.name),
                        running: vec![self.target.name.to_owned()],
                    };
                }
                Ok(false) => {}
                Err(error) => return error,
            }
        }
        Run::still_running(end, self.target.name)
    }
}
