//! A job from its submission to its end: rows that are drawn again on a terminal, lines of what has changed elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::delete::print_remaining;
use super::status::report_changes;
use crate::cli::progress_view::duration_in_words;
use crate::cli::session::Session;
use crate::cli::terminal::printer::Output;
use crate::cli::terminal::screen::{Ending, Mark, Row, Share, Stream, lay_out};
use crate::cli::terminal::styled_text::StyledText;
use crate::job::life::{JobEvent, JobReport, JobState, ReplicaPhase, ReplicaReport};
use crate::kube::Contact;
use crate::plural::count_of;

/// Shows a job on its way.
pub(super) struct SubmissionView<'a> {
    job: &'a str,
    session: &'a Session,
    is_live: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    import: Option<Import>,
    followed_since: Option<Instant>,
    report: Option<JobReport>,
    is_drawn: bool,
}

struct Import {
    began: Instant,
    took: Option<Duration>,
    waits_for: String,
}

impl<'a> SubmissionView<'a> {
    pub(super) fn new(job: &'a str, session: &'a Session) -> Self {
        let is_live = session.output == Output::Text && session.can_redraw(Stream::Stderr);
        Self { job, session, is_live, state: Arc::default() }
    }

    /// Shows an event.
    pub(super) fn show(&self, event: &JobEvent) {
        let lines = lock_view_state(&self.state).apply(event, self.is_live);
        if let JobEvent::Changed(_) = event {
            if self.session.output != Output::Json {
                for line in &lines {
                    self.session.printer.note(line);
                }
            }
        } else if !self.is_live || !matches!(event, JobEvent::Importing | JobEvent::ImportWaits(_)) {
            self.print(event);
        }
        self.draw();
    }

    /// Takes the rows off the terminal: what follows says more.
    pub(super) fn finish(&self) {
        self.end(Ending::Vanish);
    }

    fn draw(&self) {
        let mut state = lock_view_state(&self.state);
        let begins = self.is_live && !state.is_drawn && state.has_begun();
        state.is_drawn |= begins;
        drop(state);
        if !begins {
            return self.session.printer.draw_block();
        }
        let state = Arc::clone(&self.state);
        self.session
            .printer
            .begin_block(Stream::Stderr, move |size| lock_view_state(&state).lines(size.usable_columns()));
    }

    fn end(&self, ending: Ending) {
        if std::mem::take(&mut lock_view_state(&self.state).is_drawn) {
            self.session.printer.end_block(ending);
        }
    }

    fn print(&self, event: &JobEvent) {
        let printer = &self.session.printer;
        match event {
            JobEvent::Attached(state) => printer.note(format_args!(
                "job '{}' already exists and is {}; attaching to it",
                self.job,
                state.name()
            )),
            JobEvent::Deleting(state) => {
                printer.note(format_args!("deleting the existing job ({}); its files stay", state.name()));
            }
            JobEvent::Terminating(left) => print_remaining(left, self.session),
            JobEvent::NotRecorded(why) => {
                printer.warning(format_args!("`infra job runs` does not know this run: {why}"));
            }
            JobEvent::Applied(name) => printer.note(format_args!("{name}: applied")),
            JobEvent::Importing => printer.note("importing the data; training begins when that is complete"),
            JobEvent::ImportWaits(detail) => printer.note(format_args!("the import is waiting: {detail}")),
            JobEvent::ImportRestarted(restarts) => {
                if let Some(words) = restarts.in_words() {
                    printer.note(format_args!("the import was {words}"));
                }
            }
            JobEvent::Contact(Contact::Lost(why)) => {
                printer.warning(format_args!("{why}; the job continues, and is still followed"));
            }
            JobEvent::Contact(Contact::Found) => printer.note("the Kubernetes API answers again"),
            JobEvent::Imported => printer.note("the data is imported"),
            JobEvent::Changed(_) => {}
        }
    }
}

/// A command that ends otherwise leaves the rows as they are.
impl Drop for SubmissionView<'_> {
    fn drop(&mut self) {
        self.end(Ending::Stay);
    }
}

impl State {
    /// Takes an event in. Gives the lines about what has changed; rows show replicas, so that only the job has lines then.
    fn apply(&mut self, event: &JobEvent, is_live: bool) -> Vec<String> {
        match event {
            JobEvent::Importing => {
                self.import = Some(Import { began: Instant::now(), took: None, waits_for: String::new() });
            }
            JobEvent::ImportWaits(detail) => {
                if let Some(import) = &mut self.import {
                    import.waits_for.clone_from(detail);
                }
            }
            JobEvent::Imported => {
                if let Some(import) = &mut self.import {
                    import.took = Some(import.began.elapsed());
                }
            }
            JobEvent::Changed(report) => {
                let mut lines = report_changes(self.report.as_ref(), report);
                lines.retain(|line| !is_live || !line.starts_with(' '));
                self.followed_since.get_or_insert_with(Instant::now);
                self.report = Some((**report).clone());
                return lines;
            }
            _ => {}
        }
        Vec::new()
    }

    fn has_begun(&self) -> bool {
        self.import.is_some() || self.report.is_some()
    }

    fn lines(&self, width: usize) -> Vec<StyledText> {
        let mut rows: Vec<Row> = self.import.iter().map(Import::row).collect();
        let mut roles = Vec::new();
        if let Some((report, since)) = self.report.as_ref().zip(self.followed_since) {
            rows.push(job_row(report, since.elapsed()));
            let mut names: Vec<&str> = report.replicas.iter().map(|replica| replica.role.as_str()).collect();
            names.dedup();
            roles.extend(names.into_iter().map(|role| role_row(role, &report.replicas)));
        }
        let mut lines = lay_out(&rows, width, width / 3);
        lines.extend(lay_out(&roles, width, width / 3));
        lines
    }
}

impl Import {
    fn row(&self) -> Row {
        Row {
            mark: if self.took.is_some() { Mark::Done } else { Mark::Running },
            name: "data".to_owned(),
            work: "import".to_owned(),
            elapsed: duration_in_words(self.took.unwrap_or_else(|| self.began.elapsed())),
            detail: if self.took.is_some() { "imported".to_owned() } else { self.waits_for.clone() },
            ..Row::default()
        }
    }
}

fn job_row(report: &JobReport, followed: Duration) -> Row {
    Row {
        mark: mark_of(report.state),
        name: report.name.clone(),
        elapsed: duration_in_words(followed),
        detail: match &report.reason {
            Some(reason) => format!("{}: {reason}", report.state.name()),
            None => report.state.name().to_owned(),
        },
        ..Row::default()
    }
}

fn mark_of(state: JobState) -> Mark {
    match state {
        JobState::Held => Mark::Waiting,
        JobState::Importing | JobState::Starting | JobState::Running => Mark::Running,
        JobState::Complete => Mark::Done,
        JobState::Failed => Mark::Failed,
    }
}

/// The replicas of a role: how many run or are done, and what the first of the others waits for.
fn role_row(role: &str, replicas: &[ReplicaReport]) -> Row {
    let mine: Vec<&ReplicaReport> = replicas.iter().filter(|replica| replica.role == role).collect();
    let count = |phase: ReplicaPhase| mine.iter().filter(|replica| replica.phase == phase).count();
    let (running, succeeded) = (count(ReplicaPhase::Running), count(ReplicaPhase::Succeeded));
    let there = running + succeeded;
    let mark = if count(ReplicaPhase::Failed) > 0 {
        Mark::Failed
    } else if succeeded == mine.len() {
        Mark::Done
    } else if count(ReplicaPhase::Held) == mine.len() {
        Mark::Waiting
    } else {
        Mark::Running
    };
    let other = mine.iter().find(|replica| {
        !matches!(replica.phase, ReplicaPhase::Running | ReplicaPhase::Succeeded | ReplicaPhase::Held)
    });
    let detail = match other {
        Some(replica) => {
            let detail = replica.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{} {}: {}{detail}", replica.role, replica.index, replica.phase)
        }
        None if succeeded > 0 => format!("{} done", count_of(succeeded, "replica")),
        None if mark == Mark::Waiting => "held".to_owned(),
        None => "running".to_owned(),
    };
    Row {
        mark,
        indent: 2,
        name: role.to_owned(),
        share: Some(Share { done: there as u64, all: mine.len() as u64 }),
        count: format!("{there}/{}", mine.len()),
        detail,
        ..Row::default()
    }
}

fn lock_view_state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Mark, ReplicaPhase, ReplicaReport, lay_out, role_row};

    fn replica(index: u32, phase: ReplicaPhase, detail: Option<&str>) -> ReplicaReport {
        ReplicaReport {
            role: "worker".to_owned(),
            index,
            pod: None,
            node: None,
            phase,
            restarts: 0,
            gpus: 1,
            detail: detail.map(str::to_owned),
            ended: None,
            exit_code: None,
            disruption: None,
        }
    }

    #[test]
    fn a_role_shows_what_its_first_replica_waits_for() {
        let replicas = [
            replica(0, ReplicaPhase::Running, None),
            replica(1, ReplicaPhase::Pending, Some("no node has 1 GPU free")),
        ];
        let line = lay_out(&[role_row("worker", &replicas)], 79, 26)[0].bare();
        assert_eq!(line, "  ▸ worker  ━━━━━━──────  1/2  worker 1: Pending (no node has 1 GPU free)");
    }

    #[test]
    fn a_role_ends_with_its_replicas() {
        use ReplicaPhase::{Failed, Held, Running, Succeeded};
        let mark = |phases: &[ReplicaPhase]| {
            let replicas: Vec<ReplicaReport> =
                phases.iter().zip(0..).map(|(phase, index)| replica(index, *phase, None)).collect();
            let row = role_row("worker", &replicas);
            (row.mark, row.detail)
        };
        assert_eq!(mark(&[Succeeded, Succeeded]), (Mark::Done, "2 replicas done".to_owned()));
        assert_eq!(mark(&[Succeeded, Running]), (Mark::Running, "1 replica done".to_owned()));
        assert_eq!(mark(&[Running, Failed]), (Mark::Failed, "worker 1: Failed".to_owned()));
        assert_eq!(mark(&[Held, Held]), (Mark::Waiting, "held".to_owned()));
    }
}
