//! A stack as status and list show it.

use super::shape::StackState;
use crate::aws::Stack;
use crate::deploy::state::step::{NextStep, next_step};

impl StackState {
    /// The state of a live stack.
    #[must_use]
    pub(crate) fn of(stack: &Stack) -> Self {
        Self {
            name: stack.name.clone(),
            status: stack.status.clone(),
            good: next_step(Some(&stack.status)) == NextStep::Compare,
        }
    }

    /// What is wrong with the stack.
    #[must_use]
    pub(crate) fn problem(&self) -> Option<String> {
        (!self.good).then(|| format!("stack {} is in {}", self.name, self.status))
    }
}
