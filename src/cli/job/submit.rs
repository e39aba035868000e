//! `infra job submit`: sends a job and follows it to its end.

use std::time::Duration;

use clap::Args;

use super::delete::{REMOVAL_PATIENCE, tell_left};
use super::scripts_of;
use super::status::{changes, table};
use super::target::{JobFileOptions, connect, random_mark};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::{Interrupted, LEAVING, until_second_interruption};
use crate::cli::printer::Output;
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::cli::up::parse_duration;
use crate::job::life::{
    Followed, JobEvent, JobReport, JobState, Live, Precondition, ReplicaReport, already_there,
    check_preconditions, expect_no_pods, find_live, follow, remove_job, remove_leftovers, submit,
};
use crate::job::{RunId, Workload, decide};
use crate::kube::{ApiServer, Contact, ObjectName};
use crate::waiting::Waiting;

/// Send a job to the cluster and follow it to its end
///
/// Data comes first, while training is held back and no GPU is taken. Run again, it comes back to the job that is there.
/// Ctrl-C leaves the job to itself (exit 5).
#[derive(Args, Debug)]
pub(super) struct SubmitArguments {
    #[command(flatten)]
    job: JobFileOptions,
    /// Remove the job of this name that is there first, also if it is the same; its files stay. Asks if it is not over
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
    let scripts = scripts_of(session)?;
    let decide_as = |run: &RunId| decide(&job, Some(&blueprint), Some(run), &scripts);
    let run = RunId::new(&arguments.run.clone().map_or_else(random_mark, Ok)?);
    let (interrupter, waiting) = session.begin_waiting(arguments.timeout);
    block_on(until_second_interruption(
        async {
            let mut workload = decide_as(&run);
            let is_there = match find_live(&api, &workload).await? {
                Live::Same(live) if !arguments.replace => {
                    if arguments.run.is_some() && live.run != run.as_str() {
                        return Err(already_there(&live, &workload).into());
                    }
                    // Its marks on the claim are those of the run that is there.
                    if !live.run.is_empty() {
                        workload = decide_as(&RunId::of_label(&live.run));
                    }
                    session.printer.note(format_args!(
                        "job '{}' is there already, {}; coming back to it",
                        workload.name,
                        live.state.name()
                    ));
                    true
                }
                Live::Other(live) if !arguments.replace => return Err(already_there(&live, &workload).into()),
                live => {
                    judge(&check_preconditions(&api, &workload, Some(&blueprint)).await?, session)?;
                    let (namespace, name) = (&workload.namespace, &workload.name);
                    if arguments.replace {
                        replace(&api, &workload, &live, &waiting, session).await?;
                    } else {
                        expect_no_pods(&api, namespace, name).await?;
                        remove_leftovers(&api, &workload).await?;
                    }
                    false
                }
            };
            let tell = |event: JobEvent| show(&event, session);
            submit(&api, &workload, is_there, &waiting, &tell).await?;
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
        || session.printer.note(LEAVING),
        Interrupted::WhileJobRuns,
    ))
}

/// Removes the job that is there, after a yes if it still does something.
async fn replace(
    api: &ApiServer,
    workload: &Workload,
    live: &Live,
    waiting: &Waiting,
    session: &Session,
) -> anyhow::Result<()> {
    let (namespace, name) = (&workload.namespace, &workload.name);
    if let Live::Same(live) | Live::Other(live) = live {
        let state = live.state.name();
        if !live.state.is_over() && !session.yes {
            let question = format!("Job '{name}' is {state}. Remove it and start anew?");
            ask_on_thread(&question, "--yes", &session.printer).await?;
        }
        session.printer.note(format_args!("removing the job that is there, {state}; its files stay"));
    }
    let tell = |left: &[ObjectName]| tell_left(left, session);
    Ok(remove_job(api, namespace, name, &waiting.at_most(REMOVAL_PATIENCE), &tell).await?)
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
        let JobEvent::Changed(report) = event else { return show(&event, session) };
        let mut before = before.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if session.output != Output::Json {
            for line in changes(before.as_ref(), &report) {
                session.printer.note(line);
            }
        }
        *before = Some(*report);
    };
    let Followed { report, culprit, last_lines } =
        follow(api, &workload.namespace, &workload.name, waiting, &tell).await?;
    match session.output {
        Output::Json => session.printer.json(&report)?,
        Output::Text | Output::Markdown => session.printer.data(table(&report))?,
    }
    if report.state == JobState::Complete {
        session.printer.note(format_args!("`infra job fetch {}` brings the results", report.name));
        return Ok(Exit::Done);
    }
    let reason = report.reason.clone().unwrap_or_else(|| "it did not say why".to_owned());
    session.printer.error(format_args!("job '{}' failed: {reason}", report.name));
    if let Some(replica) = &culprit {
        let place = replica.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        let how = replica.detail.as_deref().unwrap_or("failed");
        session.printer.note(format_args!("  {} {}{place}: {how}", replica.role, replica.index));
    }
    if !last_lines.is_empty() {
        session.printer.note("  the last it said:");
        for line in &last_lines {
            session.printer.note(format_args!("    {line}"));
        }
    }
    session.printer.help(what_next(&report, culprit.as_ref()));
    Ok(Exit::Failed)
}

fn what_next(report: &JobReport, culprit: Option<&ReplicaReport>) -> String {
    let name = &report.name;
    let logs = match culprit {
        Some(replica) => {
            format!(
                "`infra job logs {name} --role {} --index {}` shows all it said",
                replica.role, replica.index
            )
        }
        None => format!("`infra job logs {name} --index N` shows what a replica said"),
    };
    if report.replicas.iter().any(|replica| replica.phase == "Running") {
        format!("{logs}; the others end by themselves; `infra job delete {name}` ends them at once")
    } else {
        format!("{logs}; `infra job submit --replace` starts it anew")
    }
}

fn show(event: &JobEvent, session: &Session) {
    match event {
        JobEvent::Applied(name) => session.printer.note(format_args!("{name}: applied")),
        JobEvent::Importing => {
            session.printer.note("importing the data; training is held back until it is there");
        }
        JobEvent::ImportWaits(detail) => session.printer.note(format_args!("the import waits: {detail}")),
        JobEvent::Contact(Contact::Lost(why)) => {
            session.printer.warning(format_args!("{why}; the job goes on, and so does the following"));
        }
        JobEvent::Contact(Contact::Found) => session.printer.note("the Kubernetes API answers again"),
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
