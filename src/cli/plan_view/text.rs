//! A plan as text for a terminal.

use anstyle::{AnsiColor, Style};

use super::lines::{Line, Sign, plan_headline, stack_lines};
use super::machine_lines::{held_lines, machine_lines};
use super::view::PlanView;
use crate::cli::terminal::styled_text::StyledText;
use crate::deploy::StackAction;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();
const WARNING: Style = AnsiColor::Red.on_default().bold();

pub(super) fn plan_as_text(view: &PlanView<'_>) -> StyledText {
    let mut lines = Vec::new();
    if view.plan.has_changes() {
        lines.push(StyledText::styled(BOLD, "machines:"));
        lines.extend(machine_lines(view).iter().map(format_line));
        lines.push(StyledText::default());
    } else if let held @ [_, ..] = held_lines(view).as_slice() {
        lines.push(StyledText::styled(BOLD, "machines:"));
        lines.extend(held.iter().map(format_line));
        lines.push(StyledText::default());
    }
    for stack in &view.plan.stacks {
        let style = match stack.action {
            StackAction::Unchanged => PLAIN,
            StackAction::Delete => WARNING,
            StackAction::Create | StackAction::Recreate | StackAction::Update => BOLD,
        };
        lines.push(StyledText::styled(style, plan_headline(stack)));
        lines.extend(stack_lines(view, stack, view.verbose).iter().map(format_line));
    }
    lines.extend([StyledText::default(), StyledText::styled(BOLD, view.summary())]);
    lines.extend(view.cost.as_ref().map(|cost| StyledText::styled(BOLD, cost.text())));
    StyledText::lines(lines)
}

fn format_line(line: &Line) -> StyledText {
    let (symbol, style) = match line.sign {
        Sign::Plain => ("", PLAIN),
        Sign::Context => ("  ", PLAIN),
        Sign::Add => ("+ ", GREEN),
        Sign::Change => ("~ ", YELLOW),
        Sign::Replace => ("-/+ ", WARNING),
        Sign::Remove => ("- ", RED),
        Sign::Warning => ("! ", WARNING),
    };
    let text = format_args!("{symbol}{}", line.text);
    StyledText::from("  ".repeat(line.depth)).then(StyledText::styled(style, text))
}
