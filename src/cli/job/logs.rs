//! `infra job logs`: the log of a replica.

use std::time::{Duration, Instant};

use clap::Args;
use tokio::time::sleep;

use super::attempt_log::print_attempt;
use super::target::{JobNameOptions, JobTarget};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::Interrupted;
use crate::cli::printer::Printer;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::job::life::{JobReport, ReplicaPhase, ReplicaReport};
use crate::kube::{ApiServer, Body, Contact, KubeError, LogPart, Outage};

/// The pause between two questions whether a replica has been restarted.
const PAUSE: Duration = Duration::from_secs(2);
/// The longest silence in a log that is not followed: all of it is there already.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);

/// Print the log of a replica
///
/// Pods of an attempt that ended are deleted; `--attempt` reads what they printed from the claim.
#[derive(Args, Debug)]
pub(super) struct LogsArguments {
    #[command(flatten)]
    job: JobNameOptions,
    /// Follow until the replica is done, even if it is restarted
    #[arg(short, long)]
    follow: bool,
    /// The index of the replica
    #[arg(long, value_name = "N", default_value_t = 0)]
    index: u32,
    /// The role, such as ps, or data for the import; by default that of the replicas that train
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Only this many of the last lines
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// The log of this attempt, counted from 0, from the claim
    #[arg(long, value_name = "N", conflicts_with_all = ["follow", "tail"])]
    attempt: Option<u32>,
}

pub(super) fn run(arguments: &LogsArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let cluster = TargetCluster::find(session)?;
    let api = &cluster.api;
    if let Some(attempt) = arguments.attempt {
        return block_on(async {
            let report = JobReport::read(api, &target.namespace, &target.name).await?;
            let replica = find_replica(&report, arguments)?;
            print_attempt(&cluster, &report, replica, attempt, session).await
        });
    }
    block_on(async {
        tokio::select! {
            result = print_log(api, &target, arguments, session) => result,
            _ = tokio::signal::ctrl_c() => Err(Interrupted::WhilePrinting.into()),
        }
    })
}

/// What was printed of a replica's pod so far.
struct Reading {
    pod: String,
    /// When the last of it came.
    last: Instant,
}

async fn print_log(
    api: &ApiServer,
    target: &JobTarget,
    arguments: &LogsArguments,
    session: &Session,
) -> anyhow::Result<Exit> {
    let printer = &session.printer;
    let (mut outage, mut awaited) = (Outage::default(), None);
    let mut reading: Option<Reading> = None;
    loop {
        let read = JobReport::read(api, &target.namespace, &target.name).await;
        let read = if arguments.follow {
            outage.tolerate(read, |contact| report_contact(&contact, printer))?
        } else {
            Some(read?)
        };
        let Some(report) = read else {
            sleep(session.tempo.shorten(PAUSE)).await;
            continue;
        };
        let replica = find_replica(&report, arguments)?;
        let is_new = reading.as_ref().is_none_or(|reading| replica.pod.as_ref() != Some(&reading.pod));
        match &replica.pod {
            Some(pod) if has_started(replica) && (is_new || replica.phase == ReplicaPhase::Running) => {
                if is_new && reading.is_some() {
                    printer.note(format_args!("-- restarted as {pod} --"));
                }
                // The last lines are those of the pod that was there when it was asked.
                let tail = arguments.tail.filter(|_| reading.is_none());
                let since = reading.filter(|_| !is_new).map(|reading| reading.last.elapsed().as_secs() + 1);
                let part = LogPart { follow: arguments.follow, tail, since_seconds: since };
                copy_log(api.pod_log(&report.namespace, pod, part).await, arguments.follow, printer)
                    .await
                    .map_err(|error| explain_lost_machine(error, &report, replica))?;
                reading = Some(Reading { pod: pod.clone(), last: Instant::now() });
                if !arguments.follow {
                    return Ok(Exit::Done);
                }
            }
            _ if is_over(&report, replica) && reading.is_some() => return Ok(Exit::Done),
            _ if is_over(&report, replica) || !arguments.follow => {
                return Err(explain_silence(&report, replica).into());
            }
            pod if awaited.as_ref() != Some(pod) => {
                let again = if reading.is_some() { " again" } else { "" };
                printer.note(format_args!("waiting for {} {} to start{again}", replica.role, replica.index));
                awaited = Some(pod.clone());
            }
            _ => {}
        }
        sleep(session.tempo.shorten(PAUSE)).await;
    }
}

fn find_replica<'a>(report: &'a JobReport, arguments: &LogsArguments) -> Result<&'a ReplicaReport, Refusal> {
    let role = arguments.role.as_deref();
    report.replica(role, arguments.index).ok_or_else(|| {
        let what = role.map_or_else(|| "replica".to_owned(), |role| format!("replica of role {role}"));
        Refusal::new(format!("job '{}' has no {what} with number {}", report.name, arguments.index))
            .help(format!("`infra job status {}` lists its replicas", report.name))
    })
}

fn has_started(replica: &ReplicaReport) -> bool {
    !matches!(replica.phase, ReplicaPhase::Pending | ReplicaPhase::Held)
}

/// Whether nothing more will be printed.
fn is_over(report: &JobReport, replica: &ReplicaReport) -> bool {
    report.state.is_over() || replica.phase == ReplicaPhase::Succeeded
}

/// Why there is nothing to print.
fn explain_silence(report: &JobReport, replica: &ReplicaReport) -> Refusal {
    let (role, index) = (&replica.role, replica.index);
    if is_over(report, replica) {
        return Refusal::new(format!(
            "{role} {index} of job '{}' no longer has a pod, and its log was deleted with it",
            report.name
        ))
        .help(suggest_kept_log(report, replica));
    }
    let detail = replica.detail.clone().or_else(|| report.reason.clone());
    let detail = detail.unwrap_or_else(|| replica.phase.to_string());
    Refusal::new(format!("{role} {index} has not started: {detail}")).help("`--follow` waits for it")
}

/// Where the log of a pod that is gone can still be read.
fn suggest_kept_log(report: &JobReport, replica: &ReplicaReport) -> String {
    match &report.restarts {
        Some(_) => format!(
            "`infra job logs {} --role {} --index {} --attempt {}` reads what it printed from the claim",
            report.name, replica.role, replica.index, replica.restarts
        ),
        None => format!("`infra job fetch {}` downloads what it wrote", report.name),
    }
}

/// The API still knows a pod whose machine is gone, and then complains about a pod with the name of the machine.
fn explain_lost_machine(error: anyhow::Error, report: &JobReport, replica: &ReplicaReport) -> anyhow::Error {
    let Some(node) = &replica.node else { return error };
    match error.downcast_ref::<KubeError>() {
        Some(refused) if refused.status() == Some(404) && refused.to_string().contains(node.as_str()) => {
            Refusal::new(format!(
                "{} {} of job '{}' ran on {node}; that machine is gone, and the log with it",
                replica.role, replica.index, report.name
            ))
            .help(suggest_kept_log(report, replica))
            .into()
        }
        _ => error,
    }
}

fn report_contact(contact: &Contact, printer: &Printer) {
    match contact {
        Contact::Lost(why) => printer.warning(format_args!("{why}; retrying")),
        Contact::Found => printer.note("-- the connection is back; some lines may repeat --"),
    }
}

/// Prints a log to its end. If a followed log breaks off, reading continues from there.
async fn copy_log(opened: Result<Body, KubeError>, follow: bool, printer: &Printer) -> anyhow::Result<()> {
    let mut log = printer.log();
    let copied = async {
        let mut body = opened?;
        loop {
            let next = if follow { body.chunk().await? } else { body.chunk_within(LONGEST_SILENCE).await? };
            let Some(chunk) = next else { break };
            log.print(&chunk)?;
        }
        anyhow::Ok(())
    };
    let copied = copied.await;
    log.finish()?;
    match copied {
        Err(error) if follow => match error.downcast_ref::<KubeError>() {
            Some(broken) if broken.is_passing() => {
                printer.note("-- the connection broke; some lines may repeat --");
                Ok(())
            }
            // A pod that ended before its container began has no log.
            Some(refused) if matches!(refused.status(), Some(400 | 404)) => {
                printer.note(format_args!("-- {refused} --"));
                Ok(())
            }
            _ => Err(error),
        },
        copied => copied,
    }
}
