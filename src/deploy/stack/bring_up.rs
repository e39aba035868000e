//! Brings one stack to what it should be, from whatever state it is found in.

use std::collections::{BTreeMap, BTreeSet};

use super::concurrent_deletion::is_taken_away;
use super::protection::{keep_protected, lift_policy};
use super::watch::{Followed, Operation, follow};
use crate::aws::{AwsError, Cause, ChangeSet, ChangeSetRequest, ChangeSetStatus, End, Stack, StackStatus};
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, FailureReport, StackOperation};
use crate::deploy::explain::failure_report::{FailedOperation, is_stuck, report_failure};
use crate::deploy::explain::hint::hint_for;
use crate::deploy::explain::root_cause::{failed_rollback, newest_operation};
use crate::deploy::inputs::asset_store::AssetStore;
use crate::deploy::plan::change_set::wait_for_change_set;
use crate::deploy::plan::refusal::refuse_planned_losses;
use crate::deploy::run::{Run, new_token};
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveStack;
use crate::deploy::state::step::{Step, next_step};
use crate::well_known::CLUSTER_TAG;

/// More often a stack does not change its state under our eyes without somebody else at work on it.
const ROUNDS: usize = 6;

/// On which terms a stack is changed.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Resources that may be replaced or removed.
    pub(crate) allowed: BTreeSet<String>,
    /// Whether the end is waited for.
    pub(crate) waits: bool,
}

/// A stack that is as it should be, or on its way there if nobody waits.
#[derive(Debug)]
pub(crate) struct Settled {
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
    terms: &Terms,
) -> Result<Settled, DeployError> {
    let stack_run = StackRun { run, store, desired, terms };
    let parameters = desired
        .parameters(outputs)
        .map_err(|outputs| DeployError::MissingOutputs { stack: desired.name.clone(), outputs })?;
    match stack_run.settle_stack(found, &parameters).await {
        // Whatever is refused because the stack goes is told by what it is.
        Err(DeployError::Aws(error)) if error.cause == Cause::Refused => {
            Err(stack_run.explain_refusal(error).await)
        }
        settled => settled,
    }
}

struct StackRun<'a> {
    run: &'a Run,
    store: &'a AssetStore,
    desired: &'a DesiredStack,
    terms: &'a Terms,
}

impl StackRun<'_> {
    async fn settle_stack(
        &self,
        found: Option<LiveStack>,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Settled, DeployError> {
        let mut live = found;
        // Whether it was there, or on its way, under our eyes: then nobody but somebody else has deleted it.
        let mut stood = false;
        for _ in 0..ROUNDS {
            match next_step(live.as_ref().map(|live| &live.stack.status)) {
                Step::Create if stood => return Err(self.taken_away()),
                Step::Create => match self.create(parameters).await {
                    Err(error) if is_overtaken(&error) => live = self.look_again(error).await?,
                    created => return created.map(|stack| Settled { stack, changed: true }),
                },
                Step::Compare => {
                    // Only an empty place is anything but Some here.
                    let Some(found) = live else { break };
                    stood = true;
                    match self.compare(found, parameters).await {
                        Err(error) if is_overtaken(&error) => live = self.look_again(error).await?,
                        compared => return compared,
                    }
                }
                Step::Follow => {
                    let Some(found) = live else { break };
                    if is_taken_away(&self.run.clients, &found.stack).await? {
                        return Err(self.taken_away());
                    }
                    stood |= found.stack.status != StackStatus::DeleteInProgress;
                    live = self.attach(&found.stack).await?;
                }
                Step::DeleteAndCreate => {
                    let Some(found) = live else { break };
                    // From here on it goes because it failed, whoever removes it.
                    stood = false;
                    live = self.look().await?;
                    // Another run may have gone on from there since, and its work is not removed.
                    if live.as_ref().is_some_and(|now| now.stack.status == found.stack.status) {
                        self.remove(&found.stack).await?;
                        live = None;
                    }
                }
                Step::RollBack | Step::FinishDeletion | Step::Inspect => {
                    let Some(found) = live else { break };
                    return Err(self.explain_stuck(&found.stack).await);
                }
            }
        }
        Err(DeployError::Contended { stack: self.desired.name.clone() })
    }

    fn taken_away(&self) -> DeployError {
        DeployError::TakenAway { stack: self.desired.name.clone() }
    }

    async fn explain_refusal(&self, error: AwsError) -> DeployError {
        match self.run.clients.stack(&self.desired.name).await {
            Ok(Some(stack)) if is_taken_away(&self.run.clients, &stack).await.unwrap_or_default() => {
                self.taken_away()
            }
            Ok(None) if error.says("does not exist") => self.taken_away(),
            _ => error.into(),
        }
    }

    async fn create(&self, parameters: &BTreeMap<String, String>) -> Result<Stack, DeployError> {
        let change_set = self.make_change_set(&self.desired.name, true, parameters).await?;
        if change_set.status != ChangeSetStatus::CreateComplete {
            self.run.clients.delete_stack(&change_set.stack_arn, &new_token()?).await?;
            return Err(self.refused_change_set(&change_set));
        }
        self.execute(&change_set, StackOperation::Create).await
    }

    async fn compare(
        &self,
        found: LiveStack,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Settled, DeployError> {
        let is_unchanged = self.desired.is_unchanged(&found, parameters);
        let stack = found.stack;
        if is_unchanged {
            return self.unchanged(stack).await;
        }
        let parameters = self.desired.renew_size(parameters, &self.run.clients).await?;
        let change_set = self.make_change_set(&stack.arn, false, &parameters).await?;
        if change_set.is_empty() {
            self.run.clients.delete_change_set(&change_set.stack_arn, &change_set.arn).await?;
            return self.unchanged(stack).await;
        }
        if change_set.status != ChangeSetStatus::CreateComplete {
            self.run.clients.delete_change_set(&change_set.stack_arn, &change_set.arn).await?;
            return Err(self.refused_change_set(&change_set));
        }
        let losses = refuse_planned_losses(&self.desired.name, &change_set.changes, &self.terms.allowed);
        if !losses.is_empty() {
            self.run.clients.delete_change_set(&change_set.stack_arn, &change_set.arn).await?;
            return Err(DeployError::Refused(losses));
        }
        if self.desired.part.is_protected() && !self.terms.allowed.is_empty() {
            lift_policy(self.run, &stack).await?;
        }
        let stack = self.execute(&change_set, StackOperation::Update).await?;
        Ok(Settled { stack, changed: true })
    }

    async fn unchanged(&self, stack: Stack) -> Result<Settled, DeployError> {
        keep_protected(self.run, &self.desired.part, &stack).await?;
        self.run.progress.report(Event::StackUnchanged { stack: self.desired.name.clone() });
        Ok(Settled { stack, changed: false })
    }

    /// Has CloudFormation work out what would change, and waits for that.
    async fn make_change_set(
        &self,
        stack: &str,
        creates: bool,
        parameters: &BTreeMap<String, String>,
    ) -> Result<ChangeSet, DeployError> {
        let template = self.store.template_source(self.run, &self.desired.text()).await?;
        let token = new_token()?;
        let request = ChangeSetRequest {
            stack,
            creates,
            name: &format!("infra-{token}"),
            template: &template,
            parameters,
            tags: &self.desired.tags,
            token: &token,
        };
        let (arn, _) = self.run.clients.create_change_set(&request).await?;
        wait_for_change_set(self.run, &self.desired.name, &arn).await
    }

    async fn execute(&self, change_set: &ChangeSet, operation: StackOperation) -> Result<Stack, DeployError> {
        let token = new_token()?;
        self.run.clients.execute_change_set(&change_set.stack_arn, &change_set.arn, &token).await?;
        self.run.progress.report(Event::StackBegan {
            stack: self.desired.name.clone(),
            operation,
            resources: Some(change_set.changes.len()),
        });
        if !self.terms.waits {
            self.run.progress.note(format!("{} goes on in AWS", self.desired.name));
            return self.read(&change_set.stack_arn).await;
        }
        let followed =
            self.follow(&change_set.stack_arn, Operation::Ours { token: &token }, End::Good).await?;
        self.settle(&change_set.stack_arn, followed).await
    }

    async fn follow(
        &self,
        arn: &str,
        operation: Operation<'_>,
        wanted: End,
    ) -> Result<Followed, DeployError> {
        let followed = follow(self.run, &self.desired.part, &self.desired.name, arn, operation).await?;
        self.run.progress.report(Event::StackEnded {
            stack: self.desired.name.clone(),
            status: followed.status.clone(),
            good: followed.end == wanted,
        });
        Ok(followed)
    }

    /// What a finished operation means for the run.
    async fn settle(&self, arn: &str, followed: Followed) -> Result<Stack, DeployError> {
        if followed.end == End::Deleted && followed.gave_up.is_none() {
            return Err(self.taken_away());
        }
        if followed.end != End::Good {
            let report = self.report(followed.into_failed()).await?;
            self.run.progress.report(Event::StackFailed { report: report.clone() });
            return Err(DeployError::Failed(vec![report]));
        }
        let stack = self.read(arn).await?;
        keep_protected(self.run, &self.desired.part, &stack).await?;
        Ok(stack)
    }

    async fn read(&self, arn: &str) -> Result<Stack, DeployError> {
        let stack = self.run.clients.stack(arn).await?;
        stack.filter(|stack| stack.status != StackStatus::DeleteComplete).ok_or_else(|| self.taken_away())
    }

    /// Watches what somebody began; gives the stack as it is then.
    async fn attach(&self, stack: &Stack) -> Result<Option<LiveStack>, DeployError> {
        self.run.progress.report(Event::StackBegan {
            stack: stack.name.clone(),
            operation: StackOperation::Attach,
            resources: None,
        });
        let followed = self.follow(&stack.arn, Operation::Found, End::Good).await?;
        if matches!(followed.end, End::Failed | End::RolledBack) {
            let report = self.report(followed.into_failed()).await?;
            self.run.progress.warn(format!("what was under way has failed: {report}"));
        }
        self.look().await
    }

    /// The stack after another run was faster; what was refused because of somebody else's stack stays refused.
    async fn look_again(&self, refused: DeployError) -> Result<Option<LiveStack>, DeployError> {
        let live = self.look().await?;
        let is_foreign = |stack: &Stack| {
            stack.status != StackStatus::ReviewInProgress && !stack.tags.contains_key(CLUSTER_TAG)
        };
        if live.as_ref().is_some_and(|live| is_foreign(&live.stack)) { Err(refused) } else { Ok(live) }
    }

    /// The stack as it is now.
    async fn look(&self) -> Result<Option<LiveStack>, DeployError> {
        let Some(stack) = self.run.clients.stack(&self.desired.name).await? else { return Ok(None) };
        let template = match next_step(Some(&stack.status)) {
            Step::Compare => {
                let text = self.run.clients.stack_template(&stack.arn).await?;
                serde_json::from_str(&text).unwrap_or_default()
            }
            _ => serde_json::Value::Null,
        };
        Ok(Some(LiveStack { stack, template }))
    }

    /// Removes what a failed creation left, after saying why it failed.
    async fn remove(&self, stack: &Stack) -> Result<(), DeployError> {
        if stack.status != StackStatus::ReviewInProgress {
            let report = self.past_failure(stack).await?;
            self.run.progress.warn(format!("an earlier attempt failed and is removed now: {report}"));
        }
        if stack.protected {
            self.run.clients.protect_stack(&stack.arn, false).await?;
        }
        let token = new_token()?;
        self.run.clients.delete_stack(&stack.arn, &token).await?;
        self.run.progress.report(Event::StackBegan {
            stack: stack.name.clone(),
            operation: StackOperation::Delete,
            resources: None,
        });
        let followed = self.follow(&stack.arn, Operation::Ours { token: &token }, End::Deleted).await?;
        if followed.end == End::Deleted {
            return Ok(());
        }
        Err(DeployError::Failed(vec![self.report(followed.into_failed()).await?]))
    }

    async fn past_failure(&self, stack: &Stack) -> Result<FailureReport, DeployError> {
        let events = self.run.clients.stack_events(&stack.arn, None).await?;
        let operation = newest_operation(&events);
        let told = if is_stuck(&stack.status) { failed_rollback(operation) } else { operation };
        let failed = FailedOperation {
            status: stack.status.clone(),
            events: told.to_vec(),
            evidence: Vec::new(),
            gave_up: None,
        };
        self.report(failed).await
    }

    async fn report(&self, failed: FailedOperation) -> Result<FailureReport, DeployError> {
        report_failure(self.run, &self.desired.part, &self.desired.name, failed).await
    }

    async fn explain_stuck(&self, stack: &Stack) -> DeployError {
        let reason = match self.past_failure(stack).await {
            Ok(report) => report.resource.map_or(report.reason.clone(), |resource| {
                format!("{} ({}): {}", resource.description, resource.path, report.reason)
            }),
            Err(error) => error.to_string(),
        };
        let help = match next_step(Some(&stack.status)) {
            Step::RollBack => {
                "mend the cause, then `infra rollback`; `infra rollback --skip ID` goes on without that resource".to_owned()
            }
            Step::FinishDeletion => "`infra destroy` goes on with the deletion; then run `infra up` again".to_owned(),
            _ => "look at the stack in the CloudFormation console; this tool does not use that operation".to_owned(),
        };
        DeployError::Stuck { stack: stack.name.clone(), status: stack.status.clone(), reason, help }
    }

    fn refused_change_set(&self, change_set: &ChangeSet) -> DeployError {
        let reason = change_set.reason.clone().unwrap_or_else(|| change_set.status.to_string());
        let hint = hint_for(&reason).map(|hint| hint.text);
        DeployError::ChangeSetRefused { stack: self.desired.name.clone(), reason, hint }
    }
}

/// Whether CloudFormation refused because another run, or another user, has changed the stack since it was looked at.
fn is_overtaken(error: &DeployError) -> bool {
    let DeployError::Aws(error) = error else { return false };
    let codes = ["AlreadyExistsException", "ChangeSetNotFound", "InvalidChangeSetStatus"];
    codes.iter().any(|code| error.has_code(code))
        || error.says("already exists and cannot be created again")
        || error.says("state and can not be updated")
}
