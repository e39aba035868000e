//! `infra job logs --all`: the logs of all replicas as one, each line behind the name of who printed it.
//!
//! In: a job's name and the API server. Out: lines on stdout, in the order in which they arrive if they are followed, otherwise one
//! replica after the other. Of a log that is being read only the beginning of its last line is kept.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc::{Sender, channel};
use tokio::time::sleep;

use super::log_progress::LogProgress;
use super::pod_log::{PAUSE, copy_log, explain_lost_machine, explain_silence, has_started, report_contact};
use super::target::JobTarget;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::session::Session;
use crate::cli::terminal::printer::LogPrinter;
use crate::job::life::{JobError, JobReport, JobState, ReplicaReport, Restarts};
use crate::kube::{ApiServer, KubeError, LogPart, Outage};
use crate::plural::count_of;

/// Pieces of logs that wait to be printed; more would only use memory.
const PIECES: usize = 32;
/// Each log that is followed needs a connection, and processes may usually open 1024 files.
const MOST_FOLLOWED: usize = 500;
/// How many replicas without a log are named.
const MOST_NAMED: usize = 3;

/// Which logs of a job are wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Those of this role only.
    pub(super) role: Option<&'a str>,
    /// Only this many of the last lines of each.
    pub(super) tail: Option<u32>,
}

fn choose_replicas<'a>(report: &'a JobReport, role: Option<&str>) -> Result<Vec<&'a ReplicaReport>, Refusal> {
    let chosen = report.replicas_of(role);
    // What trains is created after the import.
    if chosen.is_empty() && !report.replicas.is_empty() {
        return Err(Refusal::new(format!(
            "job '{}' has no replica of role {}",
            report.name,
            role.unwrap_or_default()
        ))
        .help(format!("`infra job status {}` lists its replicas", report.name)));
    }
    Ok(chosen)
}

fn width_of(replicas: &[&ReplicaReport]) -> usize {
    replicas.iter().map(|replica| replica.name().len()).max().unwrap_or_default()
}

/// Prints what is there, one replica after the other.
pub(super) async fn print_all(
    api: &ApiServer,
    target: &JobTarget,
    wanted: Wanted<'_>,
    session: &Session,
) -> anyhow::Result<Exit> {
    let report = JobReport::read(api, &target.namespace, &target.name).await?;
    let replicas = choose_replicas(&report, wanted.role)?;
    let mut missing: Vec<anyhow::Error> = Vec::new();
    for replica in &replicas {
        let Some(pod) = replica.pod.as_ref().filter(|_| has_started(replica)) else {
            missing.push(explain_silence(&report, replica).into());
            continue;
        };
        let mut progress = LogProgress::new(wanted.tail);
        let log = session.printer.prefixed_log(&replica.name(), width_of(&replicas));
        let opened = api.pod_log(&report.namespace, pod, progress.rest(false)).await;
        if let Err(error) = copy_log(opened, false, log, &session.printer, &mut progress).await {
            let error = explain_lost_machine(error, &report, replica);
            if error.downcast_ref::<KubeError>().is_some_and(|error| error.status() != Some(404)) {
                return Err(error);
            }
            missing.push(error);
        }
    }
    if missing.len() == replicas.len() {
        let nothing = || Refusal::new(format!("job '{}' is {}", report.name, report.state.name()));
        return Err(missing.into_iter().next().unwrap_or_else(|| nothing().help("`--follow` waits").into()));
    }
    for error in missing.iter().take(MOST_NAMED) {
        session.printer.note(error);
    }
    if let Some(more) = missing.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        session.printer.note(format_args!("{} more without a log", count_of(more, "replica")));
    }
    Ok(Exit::Done)
}

/// Follows all replicas, in whatever attempt the group is, until the job is over and everything is printed.
pub(super) async fn follow_all(
    api: &ApiServer,
    target: &JobTarget,
    wanted: Wanted<'_>,
    session: &Session,
) -> anyhow::Result<Exit> {
    let (sender, mut pieces) = channel(PIECES);
    let mut merged = MergedLogs {
        api,
        session,
        sender,
        tail: wanted.tail,
        attempt: None,
        readings: BTreeMap::new(),
        told_state: None,
        told_break: false,
    };
    let mut outage = Outage::default();
    let mut look = Box::pin(look_after(api, target, Duration::ZERO));
    loop {
        tokio::select! {
            Some(piece) = pieces.recv() => merged.take(piece)?,
            read = &mut look => {
                let report = outage.tolerate(read, |contact| report_contact(&contact, &session.printer))?;
                if let Some(report) = report {
                    let replicas = choose_replicas(&report, wanted.role)?;
                    refuse_too_many(&report, &replicas)?;
                    merged.update(&report, &replicas);
                    if report.state.is_over() && !merged.is_reading() {
                        return Ok(Exit::Done);
                    }
                }
                look = Box::pin(look_after(api, target, session.tempo.shorten(PAUSE)));
            }
        }
    }
}

async fn look_after(api: &ApiServer, target: &JobTarget, pause: Duration) -> Result<JobReport, JobError> {
    sleep(pause).await;
    JobReport::read(api, &target.namespace, &target.name).await
}

fn refuse_too_many(report: &JobReport, replicas: &[&ReplicaReport]) -> Result<(), Refusal> {
    if replicas.len() <= MOST_FOLLOWED {
        return Ok(());
    }
    let name = &report.name;
    Err(Refusal::new(format!(
        "job '{name}' has {}; at most {MOST_FOLLOWED} can be followed at once",
        count_of(replicas.len(), "replica")
    ))
    .help(format!("`--role ROLE` follows those of a role, `infra job logs {name} -f --index N` one of them")))
}

/// A part of a pod's log, or its end.
struct Piece {
    pod: String,
    content: Content,
}

enum Content {
    Text(Vec<u8>),
    End(Result<(), KubeError>),
}

/// What was printed of a pod so far.
struct Reading {
    name: String,
    log: LogPrinter,
    is_open: bool,
    progress: LogProgress,
}

/// Logs that are read at the same time.
struct MergedLogs<'a> {
    api: &'a ApiServer,
    session: &'a Session,
    sender: Sender<Piece>,
    tail: Option<u32>,
    /// The newest attempt of the group that has begun.
    attempt: Option<u32>,
    /// By pod.
    readings: BTreeMap<String, Reading>,
    told_state: Option<(JobState, Option<String>)>,
    /// Whether a break was mentioned since the job was read last.
    told_break: bool,
}

impl MergedLogs<'_> {
    fn is_reading(&self) -> bool {
        self.readings.values().any(|reading| reading.is_open)
    }

    /// Prints what came.
    fn take(&mut self, piece: Piece) -> anyhow::Result<()> {
        let Some(reading) = self.readings.get_mut(&piece.pod) else { return Ok(()) };
        let end = match piece.content {
            Content::Text(text) => {
                reading.progress.receive();
                return reading.log.print(&text);
            }
            Content::End(end) => end,
        };
        reading.is_open = false;
        reading.log.finish()?;
        let printer = &self.session.printer;
        match end {
            Ok(()) => reading.progress.end(),
            Err(error) if error.is_passing() => {
                reading.progress.break_off();
                if !std::mem::replace(&mut self.told_break, true) {
                    printer.note("-- the connection broke; some lines may repeat --");
                }
            }
            // A pod that ended before its container began has no log.
            Err(error) if matches!(error.status(), Some(400 | 404)) => {
                printer.note(format_args!("-- {}: {error} --", reading.name));
                reading.progress.end();
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Begins to read what is not read yet.
    fn update(&mut self, report: &JobReport, replicas: &[&ReplicaReport]) {
        self.told_break = false;
        self.tell_state(report);
        let is_current = |pod: &String| replicas.iter().any(|replica| replica.pod.as_ref() == Some(pod));
        self.readings.retain(|pod, reading| reading.is_open || is_current(pod));
        let width = width_of(replicas);
        let is_first = self.attempt.is_none();
        for replica in replicas {
            let Some(pod) = replica.pod.as_ref().filter(|_| has_started(replica)) else { continue };
            let progress = match self.readings.get(pod) {
                // The last lines are those of the pods that were there when it was asked.
                None => LogProgress::new(self.tail.filter(|_| is_first)),
                // What came between a break and the end of a pod is still there.
                Some(reading) if !reading.is_open && reading.progress.is_unfinished(replica) => {
                    reading.progress
                }
                Some(_) => continue,
            };
            self.begin_attempt(report, replica);
            let name = replica.name();
            let log = self.session.printer.prefixed_log(&name, width);
            self.readings.insert(pod.clone(), Reading { name, log, is_open: true, progress });
            self.open(&report.namespace, pod, progress.rest(true));
        }
    }

    /// Reads a log in a task of its own.
    fn open(&self, namespace: &str, pod: &str, part: LogPart) {
        let (api, sender) = (self.api.clone(), self.sender.clone());
        let (namespace, pod) = (namespace.to_owned(), pod.to_owned());
        tokio::spawn(async move {
            let end = send_log(&api, &namespace, &pod, part, &sender).await;
            // Nobody listens any more if the command has ended.
            let _ = sender.send(Piece { pod, content: Content::End(end) }).await;
        });
    }

    /// Says which attempt begins, and which ones came and went unseen.
    fn begin_attempt(&mut self, report: &JobReport, replica: &ReplicaReport) {
        let attempt = replica.restarts;
        let Some(last) = self.attempt.replace(self.attempt.map_or(attempt, |last| last.max(attempt))) else {
            return;
        };
        if attempt <= last {
            return;
        }
        let printer = &self.session.printer;
        let Some(restarts) = &report.restarts else {
            // Each replica of a job without a JobSet is restarted alone.
            return printer.note(format_args!("-- {} is restarted --", replica.name()));
        };
        for missed in last + 1..attempt {
            printer.note(format_args!(
                "-- attempt {missed} has ended already; `infra job logs {} --all --attempt {missed}` reads it from the claim --",
                report.name
            ));
        }
        let why = Restarts::in_words(restarts).map(|why| format!(": {why}")).unwrap_or_default();
        printer.note(format_args!("-- attempt {attempt} begins{why} --"));
    }

    /// Says what a job that does not run waits for.
    fn tell_state(&mut self, report: &JobReport) {
        let state = (report.state, report.reason.clone());
        if self.told_state.as_ref() == Some(&state) {
            return;
        }
        if !report.state.is_over() && report.state != JobState::Running {
            let why = report.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            self.session.printer.note(format_args!("-- the job is {}{why} --", report.state.name()));
        }
        self.told_state = Some(state);
    }
}

async fn send_log(
    api: &ApiServer,
    namespace: &str,
    pod: &str,
    part: LogPart,
    sender: &Sender<Piece>,
) -> Result<(), KubeError> {
    let mut body = api.pod_log(namespace, pod, part).await?;
    while let Some(chunk) = body.chunk().await? {
        let piece = Piece { pod: pod.to_owned(), content: Content::Text(chunk.to_vec()) };
        if sender.send(piece).await.is_err() {
            break;
        }
    }
    Ok(())
}
