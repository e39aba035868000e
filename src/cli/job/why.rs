//! `infra job why`: what a job failed of, was restarted by or waits for, and what to do next.

use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::target::{JobNameOptions, random_mark, scripts_of, warn_if_not_removed};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::Output;
use crate::job::life::{
    AttemptRecord, Cause, JobExplanation, JobReport, JobState, Others, RecordReader, RecordTarget, Restarts,
    Wait, explain_job, needs_records,
};
use crate::job::{ClusterFacts, HELPER_IMAGE, tolerations_of_all_pools};
use crate::kube::ApiServer;
use crate::plural::count_of;

/// A reader pod needs a machine and an image; without it the answer is shorter.
const READING_LIMIT: Duration = Duration::from_mins(2);
/// How many of the replicas that wait for the same are named.
const MOST_NAMED: usize = 4;
/// What torchrun's own lines have in them.
const TORCHRUN: [&str; 2] = ["torch/distributed/elastic/", "torch.distributed.elastic."];

/// Explain a job: what it failed of, was restarted by, or waits for, and what to do next
///
/// Names the first cause: the replica whose end ended the attempt, its exit code or the reason, its last lines, and what the others then
/// did. Pods of an attempt that ended are deleted, so a pod reads from the claim what the launchers left there; Kubernetes' events of the
/// last hour say what happened to machines. A job that does not run is explained by what it waits for: its data, a queue, machines, the
/// image, the claim or a quota.
///
/// Exits with 3 if the job failed.
#[derive(Args, Debug)]
pub(super) struct WhyArguments {
    #[command(flatten)]
    job: JobNameOptions,
    /// The image of the pod that reads the claim, if the usual one cannot be pulled; it needs python3
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

pub(super) fn run(arguments: &WhyArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let cluster = TargetCluster::find(session)?;
    let api = &cluster.api;
    let explanation = block_on(async {
        let report = JobReport::read(api, &target.namespace, &target.name).await?;
        let records = if needs_records(&report) {
            let known = cluster.read_facts().await?;
            let target = new_reader(known.facts(), arguments.image.clone(), session)?;
            read_records(api, &report, &target, session).await?
        } else {
            Vec::new()
        };
        Ok(explain_job(api, report, &records).await)
    })?;
    match session.output {
        Output::Json => session.printer.json(&explanation)?,
        Output::Text | Output::Markdown | Output::Html => {
            session.printer.data(explanation_text(&explanation))?;
        }
    }
    Ok(if explanation.state == JobState::Failed { Exit::Unhealthy } else { Exit::Done })
}

fn new_reader(
    facts: ClusterFacts<'_>,
    image: Option<String>,
    session: &Session,
) -> anyhow::Result<RecordTarget> {
    Ok(RecordTarget {
        image: image.unwrap_or_else(|| facts.mirrored_image(HELPER_IMAGE)),
        script: scripts_of(session)?.attempt_reader(),
        mark: random_mark()?,
        tolerations: tolerations_of_all_pools(facts),
    })
}

/// Reads what launchers left on the claim. What cannot be read makes the answer shorter, and is said.
async fn read_records(
    api: &ApiServer,
    report: &JobReport,
    target: &RecordTarget,
    session: &Session,
) -> anyhow::Result<Vec<AttemptRecord>> {
    session.printer.note("reading what its attempts left on the claim …");
    // Listens before the reader exists, so that an early Ctrl-C leaves none behind.
    let mut interruptions = signal(SignalKind::interrupt())?;
    let (_interrupter, waiting) = session.begin_waiting(Some(READING_LIMIT));
    let tell = |detail: String| session.printer.note(format_args!("the reader pod is waiting: {detail}"));
    let reader = match RecordReader::start(api, report, target).await {
        Ok(reader) => reader,
        Err(error) => return Ok(without_records(&error, session)),
    };
    let read = tokio::select! {
        read = reader.read(&waiting, &tell) => Some(read),
        _ = interruptions.recv() => None,
    };
    warn_if_not_removed(reader.remove().await, "the reader pod", &session.printer);
    match read {
        Some(Ok(records)) => Ok(records),
        Some(Err(error)) => Ok(without_records(&error, session)),
        None => Err(Interrupted::WhilePrinting.into()),
    }
}

fn without_records(error: &dyn std::fmt::Display, session: &Session) -> Vec<AttemptRecord> {
    session.printer.warning(format_args!("{error}; what follows is from the pods that are left"));
    Vec::new()
}

/// An explanation as a page.
fn explanation_text(explanation: &JobExplanation) -> String {
    let restarts = explanation.restarts.as_ref().and_then(Restarts::in_words);
    let restarts = restarts.map(|words| format!(", {words}")).unwrap_or_default();
    let reason = explanation.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let mut lines = vec![
        format!(
            "{}/{}: {}{reason}{restarts}",
            explanation.namespace,
            explanation.name,
            explanation.state.name()
        ),
        format!("run {}", explanation.run),
    ];
    for wait in &explanation.waits_for {
        lines.push(format!("waits for {}", wait_in_words(wait)));
    }
    if let Some(cause) = &explanation.first_cause {
        let what = if explanation.state == JobState::Failed { "first cause" } else { "restarted by" };
        lines.push(format!("{what}: {}", cause_in_words(cause)));
        lines.extend(cause.last_lines.iter().map(|line| format!("    {line}")));
        lines.extend(others_in_words(&cause.others).map(|words| format!("then {words}")));
    }
    if !explanation.earlier.is_empty() {
        lines.push("earlier attempts:".to_owned());
    }
    for cause in &explanation.earlier {
        let said = last_words(cause).map(|line| format!(": {line}")).unwrap_or_default();
        lines.push(format!("  {}{said}", cause_in_words(cause)));
    }
    for (heading, entries) in [("events:", &explanation.events), ("next:", &explanation.next)] {
        if !entries.is_empty() {
            lines.push(heading.to_owned());
            lines.extend(entries.iter().map(|entry| format!("  {entry}")));
        }
    }
    lines.join("\n")
}

fn cause_in_words(cause: &Cause) -> String {
    let Cause { attempt, role, index, detail, .. } = cause;
    let place = cause.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    let at = cause.at.as_ref().map(|at| format!(", {at}")).unwrap_or_default();
    format!("attempt {attempt}, {role} {index}{place}: {detail}{at}")
}

/// The last line of the program itself, and not of what has launched it.
fn last_words(cause: &Cause) -> Option<&String> {
    let is_launchers =
        |line: &str| line.starts_with("infra: ") || TORCHRUN.iter().any(|part| line.contains(part));
    let says_something = |line: &str| line.contains(char::is_alphanumeric);
    cause.last_lines.iter().rfind(|line| says_something(line) && !is_launchers(line))
}

fn others_in_words(others: &Others) -> Option<String> {
    let parts: Vec<String> = [
        (others.failed, "failed too"),
        (others.terminated, if others.terminated == 1 { "was terminated" } else { "were terminated" }),
        (others.succeeded, "had succeeded"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, verb)| format!("{count} {verb}"))
    .collect();
    (!parts.is_empty()).then(|| format!("of the others {}", parts.join(", ")))
}

fn wait_in_words(wait: &Wait) -> String {
    let what = wait.what.in_words();
    let who = match wait.replicas.len() {
        0 => String::new(),
        count if count <= MOST_NAMED => format!(" ({})", wait.replicas.join(", ")),
        count => format!(" ({})", count_of(count, "replica")),
    };
    format!("{what}{who}: {}", wait.detail)
}
