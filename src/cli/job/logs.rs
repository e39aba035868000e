//! `infra job logs`: the log of a replica, or of all.

use clap::Args;
use tokio::time::sleep;

use super::all_logs::{Wanted, follow_all, print_all};
use super::attempt_log::{Selection, print_attempt};
use super::log_progress::LogProgress;
use super::pod_log::{
    PAUSE, copy_log, explain_lost_machine, explain_silence, has_started, is_over, report_contact,
};
use super::target::{JobNameOptions, JobTarget, find_replica};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::closed_pipe::reader_left;
use crate::job::life::JobReport;
use crate::kube::{ApiServer, Outage};

/// Print the log of a replica, or of all of them
///
/// With `--all`, each line is printed whole, behind the name of its replica, such as worker-2. With `--follow` the lines come in the
/// order in which they arrive, also those of later attempts of the group, until the job ends; otherwise one replica comes after the other.
///
/// Pods of an attempt that ended are deleted; `--attempt` reads what they printed from the claim.
#[derive(Args, Debug)]
pub(super) struct LogsArguments {
    #[command(flatten)]
    job: JobNameOptions,
    /// The logs of all replicas, each line behind the name of its replica
    #[arg(long, conflicts_with = "index")]
    all: bool,
    /// Follow until the replica is done, or with --all the job, even if it is restarted
    #[arg(short, long)]
    follow: bool,
    /// The index of the replica
    #[arg(long, value_name = "N", default_value_t = 0)]
    index: u32,
    /// The role, such as ps, or data for the import; by default that of the replicas that train, or with --all every one
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Only this many of the last lines, of each replica
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
            let selection = if arguments.all {
                Selection::All(arguments.role.as_deref())
            } else {
                Selection::One(find_replica(&report, arguments.role.as_deref(), arguments.index)?)
            };
            print_attempt(&cluster, &report, selection, attempt, session).await
        });
    }
    let wanted = Wanted { role: arguments.role.as_deref(), tail: arguments.tail };
    let print = async {
        match (arguments.all, arguments.follow) {
            (false, _) => print_log(api, &target, arguments, session).await,
            (true, false) => print_all(api, &target, wanted, session).await,
            (true, true) => follow_all(api, &target, wanted, session).await,
        }
    };
    block_on(async {
        tokio::select! {
            result = print => result,
            // What would be printed later is for nobody.
            () = reader_left() => Ok(Exit::Done),
            _ = tokio::signal::ctrl_c() => Err(Interrupted::WhilePrinting.into()),
        }
    })
}

async fn print_log(
    api: &ApiServer,
    target: &JobTarget,
    arguments: &LogsArguments,
    session: &Session,
) -> anyhow::Result<Exit> {
    let printer = &session.printer;
    let (mut outage, mut awaited) = (Outage::default(), None);
    // The pod whose log was printed last, and how much of it.
    let mut reading: Option<(String, LogProgress)> = None;
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
        let replica = find_replica(&report, arguments.role.as_deref(), arguments.index)?;
        let known = reading.as_ref().filter(|(pod, _)| replica.pod.as_ref() == Some(pod));
        let known = known.map(|(_, progress)| *progress);
        match &replica.pod {
            Some(pod)
                if has_started(replica) && known.is_none_or(|progress| progress.is_unfinished(replica)) =>
            {
                if known.is_none() && reading.is_some() {
                    printer.note(format_args!("-- restarted as {pod} --"));
                }
                // The last lines are those of the pod that was there when it was asked.
                let tail = arguments.tail.filter(|_| reading.is_none());
                let mut progress = known.unwrap_or_else(|| LogProgress::new(tail));
                let opened = api.pod_log(&report.namespace, pod, progress.rest(arguments.follow)).await;
                copy_log(opened, arguments.follow, printer.log(), printer, &mut progress)
                    .await
                    .map_err(|error| explain_lost_machine(error, &report, replica))?;
                reading = Some((pod.clone(), progress));
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
