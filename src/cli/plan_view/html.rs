//! A plan as a page, for the artifact of a pull request.

use super::cost_change::CostChange;
use super::lines::{Line, Sign, plan_headline, plan_warnings, stack_lines};
use super::machine_lines::{held_lines, machine_lines};
use super::view::PlanView;
use crate::blueprint::Blueprint;
use crate::deploy::{ResourceAction, StackAction, StackPlan};
use crate::report::{Marks, PlanLine, PlanPage, PlanSign, PlanStack, plan_page};

pub(super) fn plan_as_html(view: &PlanView<'_>, blueprint: &Blueprint) -> String {
    let stack = |stack: &StackPlan| PlanStack {
        title: plan_headline(stack),
        lines: stack_lines(view, stack, true).iter().map(page_line).collect(),
        loses: has_losses(stack),
    };
    let changes = view.plan.has_changes();
    let machines = if changes { machine_lines(view) } else { held_lines(view) };
    plan_page(&PlanPage {
        blueprint,
        marks: Marks::new(view.plan, view.machines),
        summary: view.summary(),
        cost: view.cost.as_ref().map(CostChange::text),
        changes,
        machines: machines.iter().map(page_line).collect(),
        warnings: plan_warnings(view),
        stacks: view.plan.stacks.iter().map(stack).collect(),
        version: env!("INFRA_VERSION"),
    })
}

fn page_line(line: &Line) -> PlanLine {
    let sign = match line.sign {
        Sign::Plain | Sign::Context => PlanSign::Plain,
        Sign::Add => PlanSign::Add,
        Sign::Change => PlanSign::Change,
        Sign::Replace => PlanSign::Replace,
        Sign::Remove => PlanSign::Remove,
        Sign::Warning => PlanSign::Warning,
    };
    PlanLine { depth: line.depth, sign, text: line.text.clone() }
}

/// Whether something in the stack is replaced or deleted: a reader should see that without a click.
fn has_losses(stack: &StackPlan) -> bool {
    let is_loss = |action| matches!(action, ResourceAction::Replace | ResourceAction::Delete);
    stack.action == StackAction::Delete || stack.resources.iter().any(|change| is_loss(change.action))
}
