//! One operation on a stack, from its beginning to its end.
//!
//! In: a call that was made, or a stack that is being changed. Out: the events of the operation, reported as they happen, and its end.

use super::watch::{EndedOperation, OperationBeginning, WatchedStack, watch_stack};
use crate::aws::End;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, StackOperation};
use crate::deploy::run::Run;

/// An operation that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a> {
    pub(crate) target: WatchedStack<'a>,
    /// What is done to the stack.
    pub(crate) kind: StackOperation,
    /// By which event the operation begins.
    pub(crate) beginning: OperationBeginning<'a>,
    /// The end that is wanted; none if any end will do.
    pub(crate) wanted: Option<End>,
    /// How many resources the operation is about, if that is known.
    pub(crate) resources: Option<usize>,
}

impl Operation<'_> {
    /// Reports that the operation has begun, for a caller that does not wait for its end.
    pub(crate) fn report_beginning(&self, run: &Run) {
        run.progress.report(Event::StackBegan {
            stack: self.target.name.to_owned(),
            operation: self.kind,
            resources: self.resources,
        });
    }

    /// Reports the beginning, watches the operation, and reports its end.
    pub(crate) async fn follow(self, run: &Run) -> Result<EndedOperation, DeployError> {
        self.report_beginning(run);
        let ended = watch_stack(run, self.target, self.beginning).await?;
        run.progress.report(Event::StackEnded {
            stack: self.target.name.to_owned(),
            status: ended.status.clone(),
            good: self.wanted.is_none_or(|wanted| ended.end == wanted),
        });
        Ok(ended)
    }
}
