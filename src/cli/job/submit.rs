//! `infra job submit`: sends a job and follows it to its end.

use std::time::Duration;

use clap::Args;

use super::scripts_of;
use super::status::{changes, table};
use super::target::{JobFileOptions, connect, random_mark};
use crate::cli::Session;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::until_leaving;
use crate::cli::printer::Output;
use crate::cli::up::parse_duration;
use crate::job::life::{
    Followed, JobEvent, JobReport, JobState, Precondition, Submission, SubmitOptions, check_preconditions,
    follow, submit,
};
use crate::job::{RunId, Workload, decide};
use crate::kube::ApiServer;
use crate::waiting::Waiting;

/// Send a job to the cluster and follow it to its end
///
/// Data comes first, while training is held back and no GPU is taken. Run again, it comes back to the job that is there.
/// Ctrl-C leaves the job to itself (exit 5).
#[derive(Args, Debug)]
pub(super) struct SubmitArguments {
    #[command(flatten)]
    job: JobFileOptions,
    /// Remove an earlier job of this name first; its files stay
    #[arg(long)]
    replace: bool,
    /// Do not follow the job: end as soon as training may begin
    #[arg(long)]
    detach: bool,
    /// A name for this run; a random one if not given
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Follow for at most so long, as 90m or 24h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

pub(super) fn run(arguments: &SubmitArguments, session: &Session) -> anyhow::Result<Exit> {
    let (blueprint, api) = connect(session)?;
    let job = arguments.job.load(session, Some(&blueprint))?;
    let run = match &arguments.run {
        Some(name) => RunId::new(name),
        None => RunId::new(&random_mark()?),
    };
    let workload = decide(&job, Some(&blueprint), Some(&run), &scripts_of(session)?);
    let (interrupter, waiting) = Waiting::new(arguments.timeout);
    block_on(until_leaving(
        async {
            let preconditions = check_preconditions(&api, &workload, Some(&blueprint)).await?;
            judge(&preconditions, session)?;
            let options = SubmitOptions { replace: arguments.replace };
            let tell = |event: JobEvent| show(&event, session);
            let submission = submit(&api, &workload, options, &waiting, &tell).await?;
            if submission == Submission::AlreadyThere {
                session.printer.note(format_args!("job '{}' is there already; following it", workload.name));
            }
            mention_tensorboard(&workload, session);
            if arguments.detach {
                session.printer.note(format_args!(
                    "`infra job logs -f {0}` and `infra job status {0}` show how it goes",
                    workload.name
                ));
                return Ok(Exit::Done);
            }
            watch(&api, &workload, &waiting, session).await
        },
        &interrupter,
        &session.printer,
    ))
}

/// What keeps the job from running is shown all at once.
fn judge(preconditions: &[Precondition], session: &Session) -> anyhow::Result<()> {
    let mut unmet = Vec::new();
    for precondition in preconditions {
        match precondition {
            Precondition::Unmet(reason) => unmet.push(reason.clone()),
            Precondition::Remark(remark) => session.printer.warning(remark),
        }
    }
    if unmet.is_empty() {
        return Ok(());
    }
    for reason in &unmet {
        session.printer.note(format_args!("- {reason}"));
    }
    Err(Refusal::new("the cluster cannot run this job now")
        .help("nothing was changed; mend this and submit again")
        .into())
}

async fn watch(
    api: &ApiServer,
    workload: &Workload,
    waiting: &Waiting,
    session: &Session,
) -> anyhow::Result<Exit> {
    let before = std::sync::Mutex::new(None::<JobReport>);
    let tell = |event: JobEvent| {
        let JobEvent::Changed(report) = event else { return };
        let mut before = before.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if session.output == Output::Text {
            for line in changes(before.as_ref(), &report) {
                session.printer.note(line);
            }
        }
        *before = Some(*report);
    };
    let Followed { report, last_lines } =
        follow(api, &workload.namespace, &workload.name, waiting, &tell).await?;
    match session.output {
        Output::Json => session.printer.json(&report)?,
        Output::Text => session.printer.data(table(&report))?,
    }
    if report.state == JobState::Complete {
        session.printer.note(format_args!("`infra job fetch {}` brings the results", report.name));
        return Ok(Exit::Done);
    }
    let reason = report.reason.unwrap_or_else(|| "it did not say why".to_owned());
    session.printer.error(format_args!("job '{}' failed: {reason}", report.name));
    if !last_lines.is_empty() {
        session.printer.note("  the last it said:");
        for line in &last_lines {
            session.printer.note(format_args!("    {line}"));
        }
    }
    session.printer.help(format_args!("`infra job logs {} --index N` shows more", report.name));
    Ok(Exit::Failed)
}

fn show(event: &JobEvent, session: &Session) {
    match event {
        JobEvent::Applied(name) => session.printer.note(format_args!("{name}: applied")),
        JobEvent::Importing => {
            session.printer.note("importing the data; training is held back until it is there");
        }
        JobEvent::Released => session.printer.note("the data is there; training may begin"),
        JobEvent::Changed(_) => {}
    }
}

fn mention_tensorboard(workload: &Workload, session: &Session) {
    if workload.tensorboard.is_some() {
        session.printer.note(format_args!(
            "TensorBoard: `kubectl --kubeconfig kubeconfig -n {} port-forward service/{}-tensorboard 6006`, then http://127.0.0.1:6006",
            workload.namespace, workload.name
        ));
    }
}
