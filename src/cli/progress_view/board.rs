//! Progress for a person at a terminal: steps, all stacks from the beginning, and machines as they come.
//!
//! In: events. Out: rows to draw, and the lines that stay above them.

use std::time::{Duration, Instant};

use super::machine_board::MachineBoard;
use super::stack_work::StackWork;
use super::wording::{FAILURE, duration_in_words, failed_status, lines_for, one_line};
use crate::aws::StackStatus;
use crate::cli::terminal::screen::{Mark, Row, Size, lay_out};
use crate::cli::terminal::styled_text::StyledText;
use crate::deploy::{Event, PlannedStack, is_echo};
use crate::plural::count_of;

/// What has been seen so far.
#[derive(Debug, Default)]
pub(super) struct ProgressBoard {
    steps: Vec<Step>,
    stacks: Vec<StackLine>,
    machines: MachineBoard,
    waiting_for: String,
}

#[derive(Debug)]
struct Step {
    what: &'static str,
    began: Instant,
    took: Option<Duration>,
}

#[derive(Debug)]
struct StackLine {
    name: String,
    after: Vec<String>,
    resources: Option<usize>,
    state: StackState,
}

#[derive(Debug)]
enum StackState {
    Waiting,
    Working(StackWork),
    Ended { mark: Mark, how: String },
}

impl ProgressBoard {
    /// Takes an event in. Gives the lines that stay.
    pub(super) fn apply_event(&mut self, event: &Event) -> Vec<StyledText> {
        match event {
            Event::Stage { what } => {
                self.end_step();
                self.steps.push(Step { what, began: Instant::now(), took: None });
            }
            Event::Stacks { stacks } => self.plan(stacks),
            Event::StackBegan { stack, operation, resources } => {
                self.waiting_for.clear();
                let line = self.line(stack);
                let work = StackWork::new(*operation, resources.or(line.resources));
                line.state = StackState::Working(work);
            }
            Event::Resource { stack, resource, kind, status, reason } => {
                let StackState::Working(work) = &mut self.line(stack).state else { return Vec::new() };
                let is_first_failure = work.apply(resource, kind, status);
                if is_first_failure && !reason.as_deref().is_some_and(is_echo) {
                    let failure = failed_status(resource, status, reason.as_deref());
                    let mark = StyledText::styled(FAILURE, "✗");
                    return vec![mark.then(format_args!(" {stack}  ")).then(failure)];
                }
            }
            Event::UndoBegan { stack, operation } => {
                if let StackState::Working(work) = &mut self.line(stack).state {
                    work.undo(*operation);
                }
            }
            Event::StackEnded { stack, status, good } => {
                let line = self.line(stack);
                line.state = ended_stack_state(&line.state, status, *good);
            }
            Event::StackUnchanged { stack } => self.end_stack(stack, Mark::Unchanged, "unchanged".to_owned()),
            Event::StackSkipped { stack, because } => {
                self.end_stack(stack, Mark::Skipped, format!("skipped, because {because} failed"));
            }
            Event::Machine { role, machine, state, .. } => self.machines.advance(role, machine, *state),
            Event::Waiting { waiting_for } => self.waiting_for = one_line(&waiting_for.join(", ")),
            Event::Ready { .. } => {
                self.end_step();
                return lines_for(event);
            }
            other => return lines_for(other),
        }
        Vec::new()
    }

    /// The last step is complete, and so is the work.
    pub(super) fn complete(&mut self) {
        self.end_step();
    }

    /// Whether there is anything to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.stacks.is_empty()
    }

    /// The lines for a terminal.
    pub(super) fn lines(&self, size: Size) -> Vec<StyledText> {
        let width = size.usable_columns();
        let steps: Vec<Row> = self.steps.iter().map(|step| self.step_row(step)).collect();
        let machines = self.machines.rows();
        // One row is the cursor's.
        let room = size.rows.saturating_sub(1).saturating_sub(steps.len() + machines.len());
        let is_open = |name: &String| self.stacks.iter().any(|line| line.name == *name && !line.is_over());
        let stacks = fold_rows_into_room(self.stacks.iter().map(|line| line.row(is_open)).collect(), room);
        let mut lines = lay_out(&steps, width, width);
        lines.extend(lay_out(&stacks, width, width / 3));
        lines.extend(lay_out(&machines, width, width / 3));
        lines
    }

    fn plan(&mut self, stacks: &[PlannedStack]) {
        for planned in stacks {
            let line = self.line(&planned.stack);
            line.after.clone_from(&planned.after);
            line.resources = planned.resources;
            self.machines.plan(&planned.machines);
        }
    }

    fn line(&mut self, stack: &str) -> &mut StackLine {
        let known = self.stacks.iter().position(|line| line.name == stack);
        let number = known.unwrap_or(self.stacks.len());
        if known.is_none() {
            self.stacks.push(StackLine {
                name: stack.to_owned(),
                after: Vec::new(),
                resources: None,
                state: StackState::Waiting,
            });
        }
        &mut self.stacks[number]
    }

    fn end_stack(&mut self, stack: &str, mark: Mark, how: String) {
        self.line(stack).state = StackState::Ended { mark, how };
    }

    fn end_step(&mut self) {
        self.waiting_for.clear();
        if let Some(step) = self.steps.last_mut().filter(|step| step.took.is_none()) {
            step.took = Some(step.began.elapsed());
        }
    }

    fn step_row(&self, step: &Step) -> Row {
        let has_failed = self
            .stacks
            .iter()
            .any(|line| matches!(line.state, StackState::Ended { mark: Mark::Failed | Mark::Skipped, .. }));
        let mark = match step.took {
            Some(_) => Mark::Done,
            None if has_failed => Mark::Failed,
            None => Mark::Running,
        };
        let detail = if step.took.is_none() { self.waiting_for.clone() } else { String::new() };
        Row {
            mark,
            name: step.what.to_owned(),
            elapsed: duration_in_words(step.took.unwrap_or_else(|| step.began.elapsed())),
            detail,
            ..Row::default()
        }
    }
}

impl StackLine {
    fn is_over(&self) -> bool {
        matches!(self.state, StackState::Ended { .. })
    }

    fn row(&self, is_open: impl Fn(&String) -> bool) -> Row {
        let row = Row { indent: 2, name: self.name.clone(), ..Row::default() };
        match &self.state {
            StackState::Waiting => {
                let open: Vec<&str> =
                    self.after.iter().filter(|&name| is_open(name)).map(String::as_str).collect();
                let detail =
                    if open.is_empty() { String::new() } else { format!("after {}", open.join(", ")) };
                Row { detail, ..row }
            }
            StackState::Working(work) => Row {
                mark: Mark::Running,
                work: work.operation().name().to_owned(),
                share: work.share(),
                count: work.count(),
                elapsed: duration_in_words(work.elapsed()),
                detail: work.waits_for().unwrap_or_default().to_owned(),
                aside: work.usual_time().unwrap_or_default(),
                ..row
            },
            StackState::Ended { mark, how } => Row { mark: *mark, detail: how.clone(), ..row },
        }
    }
}

fn ended_stack_state(before: &StackState, status: &StackStatus, good: bool) -> StackState {
    let mark = if good { Mark::Done } else { Mark::Failed };
    let StackState::Working(work) = before else {
        return StackState::Ended { mark, how: status.to_string() };
    };
    let time = duration_in_words(work.elapsed());
    let how = match work.past_operation().filter(|_| good) {
        Some(done) => format!("{done} in {time}"),
        None => format!("{status} after {time}"),
    };
    StackState::Ended { mark, how }
}

/// As many rows as there is room for: what is worked on and what failed is shown by name, the rest is counted.
fn fold_rows_into_room(rows: Vec<Row>, room: usize) -> Vec<Row> {
    if rows.len() <= room {
        return rows;
    }
    let is_shown = |row: &Row| matches!(row.mark, Mark::Running | Mark::Failed);
    let counted = |mark: Mark, is_in: fn(Mark) -> bool, what: &str| {
        let number = rows.iter().filter(|row| is_in(row.mark)).count();
        let detail = format!("{} {what}", count_of(number, "stack"));
        (number > 0).then(|| Row { mark, indent: 2, detail, ..Row::default() })
    };
    let done = counted(Mark::Done, |mark| matches!(mark, Mark::Done | Mark::Unchanged), "done");
    let waiting = counted(Mark::Waiting, |mark| matches!(mark, Mark::Waiting | Mark::Skipped), "not begun");
    let around = usize::from(done.is_some()) + usize::from(waiting.is_some());
    let mut shown: Vec<Row> = rows.iter().filter(|row| is_shown(row)).cloned().collect();
    let left_out = shown.len().saturating_sub(room.saturating_sub(around));
    if left_out > 0 {
        // The row that says so needs room, too.
        shown.truncate(shown.len().saturating_sub(left_out + 1));
        let detail = format!("and {} more", left_out + 1);
        shown.push(Row { mark: Mark::Running, indent: 2, detail, ..Row::default() });
    }
    done.into_iter().chain(shown).chain(waiting).collect()
}
