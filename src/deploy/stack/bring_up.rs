//! Brings one stack to what it should be, from whatever state it is found in.

use std::collections::{BTreeMap, BTreeSet};

use super::concurrent_deletion::is_being_destroyed;
use super::operation::Operation;
use super::past_failure::{explain_stuck, report_past_failure};
use super::protection::{keep_protected, lift_policy};
use super::watch::{EndedOperation, OperationBeginning, WatchedStack};
use crate::aws::{AwsError, Cause, ChangeSet, ChangeSetRequest, ChangeSetStatus, End, Stack, StackStatus};
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, FailureReport, StackOperation};
use crate::deploy::explain::failure_report::report_failure;
use crate::deploy::explain::hint::hint_for;
use crate::deploy::inputs::asset_store::AssetStore;
use crate::deploy::plan::change_set::{check_template, wait_for_change_set};
use crate::deploy::plan::refusal::refuse_planned_losses;
use crate::deploy::plan::refused_change_set::explain_refusal;
use crate::deploy::run::{Run, new_token};
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveStack;
use crate::deploy::state::step::{NextStep, next_step};
use crate::well_known::{CHANGE_SET_PREFIX, CLUSTER_TAG};

/// Give up after this many steps: another process keeps changing the stack.
const MOST_STEPS: usize = 6;

/// What a change of a stack may do, and whether it is waited for.
#[derive(Clone, Debug)]
pub(crate) struct ChangeTerms {
    /// Resources that may be replaced or deleted.
    pub(crate) allowed: BTreeSet<String>,
    /// Whether to wait for the end of the operation.
    pub(crate) waits: bool,
}

/// A stack that is as it should be, or on its way there if the caller does not wait.
#[derive(Debug)]
pub(crate) struct BroughtUp {
    pub(crate) stack: Stack,
    pub(crate) changed: bool,
}

/// Brings a stack to what it should be. `outputs` is what other stacks hand on.
pub(crate) async fn bring_up(
    run: &Run,
    store: &AssetStore,
    desired: &DesiredStack,
    found: Option<LiveStack>,
    outputs: &BTreeMap<String, String>,
    terms: &ChangeTerms,
) -> Result<BroughtUp, DeployError> {
    let stack = BringUp { run, store, desired, terms };
    let parameters = desired
        .parameters(outputs)
        .map_err(|outputs| DeployError::MissingOutputs { stack: desired.name.clone(), outputs })?;
    match stack.drive(found, &parameters).await {
        // A call that is refused because the stack is being deleted is reported as that.
        Err(DeployError::Aws(error)) if error.cause == Cause::Refused => {
            Err(stack.explain_refusal(error).await)
        }
        brought_up => brought_up,
    }
}

struct BringUp<'a> {
    run: &'a Run,
    store: &'a AssetStore,
    desired: &'a DesiredStack,
    terms: &'a ChangeTerms,
}

impl BringUp<'_> {
    /// Takes one step after the other until the stack is as it should be, or no step is left.
    async fn drive(
        &self,
        found: Option<LiveStack>,
        parameters: &BTreeMap<String, String>,
    ) -> Result<BroughtUp, DeployError> {
        let mut live = found;
        // Whether this run has seen the stack in use: if it is gone afterwards, another process has deleted it.
        let mut was_in_use = false;
        for _ in 0..MOST_STEPS {
            let step = next_step(live.as_ref().map(|live| &live.stack.status));
            live = match (step, live) {
                (NextStep::Create, _) | (_, None) if was_in_use => return Err(self.deleted_meanwhile()),
                (NextStep::Create, _) | (_, None) => match self.create(parameters).await {
                    Err(error) if is_overtaken(&error) => self.read_again(error).await?,
                    created => return created.map(|stack| BroughtUp { stack, changed: true }),
                },
                (NextStep::Compare, Some(found)) => {
                    was_in_use = true;
                    match self.compare(found, parameters).await {
                        Err(error) if is_overtaken(&error) => self.read_again(error).await?,
                        compared => return compared,
                    }
                }
                (NextStep::Follow, Some(found)) => {
                    if is_being_destroyed(&self.run.clients, &found.stack).await? {
                        return Err(self.deleted_meanwhile());
                    }
                    was_in_use |= found.stack.status != StackStatus::DeleteInProgress;
                    self.attach(&found.stack).await?
                }
                (NextStep::DeleteAndCreate, Some(found)) => {
                    // From here on the stack is deleted because it failed, whoever deletes it.
                    was_in_use = false;
                    let now = self.read_live().await?;
                    // Another run may have replaced it since, and that is not deleted.
                    if now.as_ref().is_some_and(|now| now.stack.status == found.stack.status) {
                        self.delete_failed_creation(&found.stack).await?;
                        None
                    } else {
                        now
                    }
                }
                (NextStep::RollBack | NextStep::FinishDeletion | NextStep::Inspect, Some(found)) => {
                    return Err(explain_stuck(self.run, &self.desired.part, &found.stack).await);
                }
            };
        }
        Err(DeployError::Contended { stack: self.desired.name.clone() })
    }

    fn deleted_meanwhile(&self) -> DeployError {
        DeployError::DeletedMeanwhile { stack: self.desired.name.clone() }
    }

    async fn explain_refusal(&self, error: AwsError) -> DeployError {
        match self.run.clients.stack(&self.desired.name).await {
            Ok(Some(stack)) if is_being_destroyed(&self.run.clients, &stack).await.unwrap_or_default() => {
                self.deleted_meanwhile()
            }
            Ok(None) if error.is_missing_stack() => self.deleted_meanwhile(),
            _ => error.into(),
        }
    }

    async fn create(&self, parameters: &BTreeMap<String, String>) -> Result<Stack, DeployError> {
        let change_set = self.create_change_set(&self.desired.name, true, parameters).await?;
        if change_set.status != ChangeSetStatus::CreateComplete {
            return Err(self.refuse(&change_set, true).await);
        }
        self.execute(&change_set, StackOperation::Create).await
    }

    async fn compare(
        &self,
        found: LiveStack,
        parameters: &BTreeMap<String, String>,
    ) -> Result<BroughtUp, DeployError> {
        found.readable_template()?;
        let is_unchanged = self.desired.is_unchanged(&found, parameters);
        let stack = found.stack;
        if is_unchanged {
            return self.unchanged(stack).await;
        }
        let parameters = self.desired.renew_size(parameters, &self.run.clients).await?;
        let change_set = self.create_change_set(&stack.arn, false, &parameters).await?;
        if change_set.is_empty() {
            self.discard(&change_set, false).await?;
            return self.unchanged(stack).await;
        }
        if change_set.is_refused() {
            return Err(self.refuse(&change_set, false).await);
        }
        let losses = refuse_planned_losses(&self.desired.name, &change_set.changes, &self.terms.allowed);
        if !losses.is_empty() {
            self.discard(&change_set, false).await?;
            return Err(DeployError::Refused(losses));
        }
        if self.desired.part.is_protected() && !self.terms.allowed.is_empty() {
            lift_policy(self.run, &stack).await?;
        }
        let stack = self.execute(&change_set, StackOperation::Update).await?;
        Ok(BroughtUp { stack, changed: true })
    }

    async fn unchanged(&self, stack: Stack) -> Result<BroughtUp, DeployError> {
        keep_protected(self.run, &self.desired.part, &stack).await?;
        self.run.progress.report(Event::StackUnchanged { stack: self.desired.name.clone() });
        Ok(BroughtUp { stack, changed: false })
    }

    /// Creates a change set, waits until CloudFormation has worked it out, and makes sure that it is ours.
    async fn create_change_set(
        &self,
        stack: &str,
        creates: bool,
        parameters: &BTreeMap<String, String>,
    ) -> Result<ChangeSet, DeployError> {
        let text = self.desired.text();
        let template = self.store.template_source(self.run, &text).await?;
        let token = new_token()?;
        let request = ChangeSetRequest {
            stack,
            creates,
            name: &format!("{CHANGE_SET_PREFIX}{token}"),
            template: &template,
            parameters,
            tags: &self.desired.tags,
            token: &token,
        };
        let (arn, _) = self.run.clients.create_change_set(&request).await?;
        let change_set = wait_for_change_set(self.run, &self.desired.name, &arn).await?;
        match check_template(self.run, &self.desired.name, &change_set, &template, &text).await {
            Err(error @ DeployError::ForeignTemplate { .. }) => {
                // That it could not be deleted matters less than why it must be.
                let _ = self.discard(&change_set, creates).await;
                Err(error)
            }
            checked => checked.map(|()| change_set),
        }
    }

    /// Deletes a change set, with the stack if that exists only for it: another run may have begun to create it since.
    async fn discard(&self, change_set: &ChangeSet, creates: bool) -> Result<(), AwsError> {
        let clients = &self.run.clients;
        let is_in_review = |stack: &Stack| stack.status == StackStatus::ReviewInProgress;
        if creates && clients.stack(&change_set.stack_arn).await?.as_ref().is_some_and(is_in_review) {
            return clients.delete_stack(&change_set.stack_arn, &new_token()?).await;
        }
        clients.delete_change_set(&change_set.stack_arn, &change_set.arn).await
    }

    async fn execute(&self, change_set: &ChangeSet, kind: StackOperation) -> Result<Stack, DeployError> {
        let token = new_token()?;
        let arn = change_set.stack_arn.as_str();
        self.run.clients.execute_change_set(arn, &change_set.arn, &token).await?;
        let operation = Operation {
            target: WatchedStack { part: &self.desired.part, name: &self.desired.name, arn },
            kind,
            beginning: OperationBeginning::OurCall { token: &token },
            wanted: Some(End::Good),
            resources: Some(change_set.changes.len()),
        };
        if !self.terms.waits {
            operation.report_beginning(self.run);
            self.run.progress.note(format!("{} continues in AWS", self.desired.name));
            return self.read(arn).await;
        }
        let ended = operation.follow(self.run).await?;
        self.conclude(arn, ended).await
    }

    /// What the end of an operation means for the run.
    async fn conclude(&self, arn: &str, ended: EndedOperation) -> Result<Stack, DeployError> {
        if ended.end == End::Deleted && ended.gave_up.is_none() {
            return Err(self.deleted_meanwhile());
        }
        if ended.end != End::Good {
            let report = self.report(ended).await?;
            self.run.progress.report(Event::StackFailed { report: report.clone() });
            return Err(DeployError::Failed(vec![report]));
        }
        let stack = self.read(arn).await?;
        keep_protected(self.run, &self.desired.part, &stack).await?;
        Ok(stack)
    }

    /// Follows the operation that another run began; returns the stack as it is then.
    async fn attach(&self, stack: &Stack) -> Result<Option<LiveStack>, DeployError> {
        let operation = Operation {
            target: WatchedStack::of(&self.desired.part, stack),
            kind: StackOperation::Attach,
            beginning: OperationBeginning::Newest,
            wanted: Some(End::Good),
            resources: None,
        };
        let ended = operation.follow(self.run).await?;
        if matches!(ended.end, End::Failed | End::RolledBack) {
            let report = self.report(ended).await?;
            self.run.progress.warn(format!("the operation in progress has failed: {report}"));
        }
        self.read_live().await
    }

    /// Deletes what a failed creation left, after reporting why it failed.
    async fn delete_failed_creation(&self, stack: &Stack) -> Result<(), DeployError> {
        if stack.status != StackStatus::ReviewInProgress {
            let report = report_past_failure(self.run, &self.desired.part, stack).await?;
            self.run.progress.warn(format!("an earlier attempt failed and is deleted now: {report}"));
        }
        if stack.protected {
            self.run.clients.protect_stack(&stack.arn, false).await?;
        }
        let token = new_token()?;
        self.run.clients.delete_stack(&stack.arn, &token).await?;
        let operation = Operation {
            target: WatchedStack::of(&self.desired.part, stack),
            kind: StackOperation::Delete,
            beginning: OperationBeginning::OurCall { token: &token },
            wanted: Some(End::Deleted),
            resources: None,
        };
        let ended = operation.follow(self.run).await?;
        if ended.end == End::Deleted {
            return Ok(());
        }
        Err(DeployError::Failed(vec![self.report(ended).await?]))
    }

    async fn report(&self, ended: EndedOperation) -> Result<FailureReport, DeployError> {
        report_failure(self.run, &self.desired.part, &self.desired.name, ended.into_failed()).await
    }

    async fn read(&self, arn: &str) -> Result<Stack, DeployError> {
        let stack = self.run.clients.stack(arn).await?;
        stack
            .filter(|stack| stack.status != StackStatus::DeleteComplete)
            .ok_or_else(|| self.deleted_meanwhile())
    }

    /// The stack with its template as they are now.
    async fn read_live(&self) -> Result<Option<LiveStack>, DeployError> {
        match self.run.clients.stack(&self.desired.name).await? {
            Some(stack) => Ok(Some(LiveStack::read(&self.run.clients, stack).await?)),
            None => Ok(None),
        }
    }

    /// The stack after another run was faster; what was refused because of a foreign stack stays refused.
    async fn read_again(&self, refused: DeployError) -> Result<Option<LiveStack>, DeployError> {
        let live = self.read_live().await?;
        let is_foreign = |stack: &Stack| {
            stack.status != StackStatus::ReviewInProgress && !stack.tags.contains_key(CLUSTER_TAG)
        };
        if live.as_ref().is_some_and(|live| is_foreign(&live.stack)) { Err(refused) } else { Ok(live) }
    }

    /// The error for a change set that CloudFormation refused. The reasons are read first, because they are deleted with it.
    async fn refuse(&self, change_set: &ChangeSet, creates: bool) -> DeployError {
        let hint = |reason: &str| hint_for(reason).map(|hint| hint.text);
        let refused = explain_refusal(self.run, self.desired, change_set, hint).await;
        if let Err(error) = self.discard(change_set, creates).await {
            let name = &self.desired.name;
            self.run.progress.warn(format!("the refused change set of {name} could not be deleted: {error}"));
        }
        refused
    }
}

/// Whether CloudFormation refused because another process has changed the stack since it was read.
fn is_overtaken(error: &DeployError) -> bool {
    matches!(error, DeployError::Aws(error) if error.is_overtaken())
}
