//! A plan as Markdown for a pull request.

use super::cost_change::CostChange;
use super::lines::{Line, Sign, plan_warnings, stack_action_in_words, stack_lines};
use super::machine_lines::{held_lines, machine_lines};
use super::view::PlanView;

pub(super) fn plan_as_markdown(view: &PlanView<'_>) -> String {
    let title = format!("### infra plan: {}", view.cluster.name);
    if !view.plan.has_changes() {
        let held = held_lines(view).iter().map(format_item).collect::<Vec<_>>().join("\n");
        let parts = [title, held, view.summary()].into_iter().filter(|part| !part.is_empty());
        let cost = view.cost.as_ref().map(CostChange::text);
        return join_markdown(&parts.chain(cost).collect::<Vec<_>>());
    }
    let machines = machine_lines(view).iter().map(format_item).collect::<Vec<_>>().join("\n");
    let mut parts = vec![title, "**Machines**".to_owned(), machines, view.summary()];
    parts.extend(view.cost.as_ref().map(CostChange::text));
    let warnings: Vec<String> =
        plan_warnings(view).iter().map(|warning| format!("- **{warning}**")).collect();
    if !warnings.is_empty() {
        parts.push(warnings.join("\n"));
    }
    let stacks = &view.plan.stacks;
    let rows = stacks.iter().map(|stack| format!("| {} | {} |", stack.part, stack_action_in_words(stack)));
    let header = ["| Stack | Action |", "|---|---|"].map(str::to_owned);
    parts.push(header.into_iter().chain(rows).collect::<Vec<_>>().join("\n"));
    for stack in stacks {
        let lines = stack_lines(view, stack, true);
        if !lines.is_empty() {
            let title = format!("{}: {}", stack.part, stack_action_in_words(stack));
            parts.push(format!(
                "<details><summary>{title}</summary>\n\n{}\n\n</details>",
                fenced_block(&lines)
            ));
        }
    }
    join_markdown(&parts)
}

fn join_markdown(parts: &[String]) -> String {
    parts.join("\n\n")
}

/// A line of a list; what is lost or unavailable is bold.
fn format_item(line: &Line) -> String {
    let indent = "  ".repeat(line.depth.saturating_sub(1));
    match line.sign {
        Sign::Replace | Sign::Remove | Sign::Warning => format!("{indent}- **{}**", line.text),
        Sign::Plain | Sign::Context | Sign::Add | Sign::Change => format!("{indent}- {}", line.text),
    }
}

/// A fenced code block; the fence is longer than any in the text.
fn fenced_block(lines: &[Line]) -> String {
    let text = lines.iter().map(format_line).collect::<Vec<_>>().join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}diff\n{text}\n{fence}")
}

/// The first column decides the colour.
fn format_line(line: &Line) -> String {
    let column = match line.sign {
        Sign::Plain | Sign::Context => ' ',
        Sign::Add => '+',
        Sign::Change => '!',
        Sign::Replace | Sign::Remove | Sign::Warning => '-',
    };
    let indent = "  ".repeat(line.depth);
    format!("{column}{}{}", &indent[1..], line.text).trim_end().to_owned()
}
