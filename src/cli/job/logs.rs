//! `infra job logs`: what a replica prints.

use std::time::Duration;

use clap::Args;

use super::target::{JobNameOptions, JobTarget, connect};
use crate::cli::Session;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::printer::Printer;
use crate::job::life::JobReport;
use crate::kube::{ApiServer, Body};

/// How long a replica that is started again is waited for between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// Print what a replica of a job has printed
#[derive(Args, Debug)]
pub(super) struct LogsArguments {
    #[command(flatten)]
    job: JobNameOptions,
    /// Go on until the job is over; a replica that is started again is followed too
    #[arg(short, long)]
    follow: bool,
    /// Which replica
    #[arg(long, value_name = "N", default_value_t = 0)]
    index: u32,
    /// Which role, as ps; that of the replicas that train if not given
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
}

pub(super) fn run(arguments: &LogsArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let (_, api) = connect(session)?;
    block_on(async {
        tokio::select! {
            result = print(&api, &target, arguments, &session.printer) => result,
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        }
    })
}

async fn print(
    api: &ApiServer,
    target: &JobTarget,
    arguments: &LogsArguments,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let mut read: Option<String> = None;
    let mut told = false;
    loop {
        let report = JobReport::read(api, &target.namespace, &target.name).await?;
        let Some(replica) = report.replica(arguments.role.as_deref(), arguments.index) else {
            return Err(Refusal::new(format!("job '{}' has no replica {}", report.name, arguments.index))
                .help(format!("`infra job status {}` lists its replicas", report.name))
                .into());
        };
        let started = !matches!(replica.phase.as_str(), "Pending" | "Held");
        match &replica.pod {
            Some(pod) if started && read.as_ref() != Some(pod) => {
                if read.is_some() {
                    printer.note(format_args!("-- started again as {pod} --"));
                }
                let body = api.pod_log(&report.namespace, pod, arguments.follow, arguments.tail).await?;
                copy(body).await?;
                read = Some(pod.clone());
                if !arguments.follow {
                    return Ok(Exit::Done);
                }
            }
            _ if report.state.is_over() => return Ok(Exit::Done),
            _ if !arguments.follow && read.is_none() => {
                let detail = replica.detail.clone().unwrap_or_else(|| replica.phase.clone());
                return Err(Refusal::new(format!("replica {} has not started: {detail}", replica.index))
                    .help("`--follow` waits for it")
                    .into());
            }
            _ if !told => {
                printer.note(format_args!("waiting for replica {} to start", replica.index));
                told = true;
            }
            _ => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn copy(mut body: Body) -> anyhow::Result<()> {
    while let Some(chunk) = body.chunk().await? {
        Printer::bytes(&chunk)?;
    }
    Ok(())
}
