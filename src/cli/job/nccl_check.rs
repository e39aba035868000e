//! `infra job nccl-check`: how fast the free machines of a pool all-reduce with one another, and which of them are slow.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::target::{random_mark, scripts_of, warn_if_not_removed};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::forwarding::report_contact;
use crate::cli::interruption::until_interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::{KnownCluster, TargetCluster};
use crate::cli::terminal::printer::{Output, Printer, align_columns};
use crate::cli::up::parse_duration;
use crate::config::Pool;
use crate::job::NCCL_CHECK_IMAGE;
use crate::job::life::{
    Backend, MachineBandwidth, NcclCheck, NcclCheckProgress, NcclCheckReport, NcclCheckSettings, choose_pool,
    gigabytes_in_words,
};
use crate::job::values::Size;
use crate::plural::count_of;

/// Large enough that only bandwidth counts.
const BYTES_OF_NCCL: u64 = 1 << 30;
const BYTES_OF_GLOO: u64 = 64 << 20;
/// Smaller ones measure latency; PyTorch counts floats.
const FEWEST_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 16 << 30;

/// Measure how fast the machines of a pool all-reduce with one another, and name the slow ones
///
/// A pod on each free machine, with all its GPUs and EFA adapters, all-reduces with each of the others in pairs, then with all of them
/// together. Exits with 3 if a machine is slower than the others or than the table of machines expects, or lacks GPUs or EFA adapters, if
/// machines do not reach each other, or if NCCL uses TCP where there is EFA. Machines that jobs use are left out, and the pods are deleted at the end.
///
/// Only the administrator of the cluster may run it.
#[derive(Args, Debug)]
pub(super) struct NcclCheckArguments {
    /// The pool; can be left out if only one has GPUs
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// The library to measure with: gloo needs no GPUs, and measures TCP
    #[arg(long, value_enum, value_name = "LIBRARY", default_value_t = NamedBackend::Nccl)]
    backend: NamedBackend,
    /// The image of the pods, with python3 and PyTorch; with EFA also aws-ofi-nccl. By default AWS's Deep Learning Container of PyTorch
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// How much each all-reduce moves, such as 256Mi; by default 1Gi, with gloo 64Mi
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// How long the check may take, including the pull of its 10 GB image
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_duration)]
    timeout: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NamedBackend {
    #[value(help = None)]
    Nccl,
    #[value(help = None)]
    Gloo,
}

pub(super) fn run(arguments: &NcclCheckArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = TargetCluster::find(session)?;
    let backend = match arguments.backend {
        NamedBackend::Nccl => Backend::Nccl,
        NamedBackend::Gloo => Backend::Gloo,
    };
    let program = scripts_of(session)?.nccl_check();
    let mark = random_mark()?;
    let (_interrupter, waiting) = session.begin_waiting(Some(arguments.timeout));
    let report = block_on(async {
        let known = Box::pin(until_interrupted(cluster.read_facts())).await?;
        let settings = nccl_check_settings(arguments, backend, program, &cluster, &known)?;
        let check = NcclCheck::new(&cluster.api, &mark, settings);
        let mut reporter = |progress: NcclCheckProgress| report_progress(&progress, &session.printer);
        let run = async { Ok(check.run(&waiting, &mut reporter).await?) };
        let report = Box::pin(until_interrupted(run)).await;
        warn_if_not_removed(check.remove().await, "the pods of the check", &session.printer);
        report
    })?;
    match session.output {
        Output::Json => session.printer.json(&report)?,
        Output::Text | Output::Markdown | Output::Html => print_report(&report, &session.printer)?,
    }
    Ok(if report.is_healthy() { Exit::Done } else { Exit::Unhealthy })
}

fn nccl_check_settings(
    arguments: &NcclCheckArguments,
    backend: Backend,
    program: String,
    cluster: &TargetCluster,
    known: &KnownCluster<'_>,
) -> anyhow::Result<NcclCheckSettings> {
    let facts = known.facts();
    let pool = choose_pool(facts, arguments.pool.as_deref(), backend).map_err(|fault| {
        let refusal = Refusal::invalid(fault.message);
        match fault.help {
            Some(help) => refusal.help(help),
            None => refusal,
        }
    })?;
    let of_pool = |of: fn(&Pool) -> Option<u32>| {
        let mut pools = cluster.blueprint()?.cluster.pools.iter();
        pools.find(|one| one.name.as_str() == pool).and_then(of)
    };
    Ok(NcclCheckSettings {
        // The clock of AWS changes the size of others.
        expected_machines: of_pool(|pool| {
            Some(pool.min_count).filter(|_| pool.schedule.is_empty() && pool.capacity_reservation.is_none())
        }),
        backend,
        bytes: arguments.size.unwrap_or(match backend {
            Backend::Nccl => BYTES_OF_NCCL,
            Backend::Gloo => BYTES_OF_GLOO,
        }),
        image: arguments.image.clone().unwrap_or_else(|| facts.mirrored_image(NCCL_CHECK_IMAGE)),
        program,
        limit: arguments.timeout,
        pool,
    })
}

fn parse_size(text: &str) -> Result<u64, String> {
    let size: Size = text.parse().map_err(|fault: crate::document::Fault| fault.to_string())?;
    let bytes = size.bytes();
    if (FEWEST_BYTES..=MOST_BYTES).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("'{text}' is not between 1Mi and 16Gi"))
    }
}

fn report_progress(progress: &NcclCheckProgress, printer: &Printer) {
    match progress {
        NcclCheckProgress::Starting(machines) => {
            printer.note(format_args!("starting a pod on each of {}", count_of(*machines, "machine")));
        }
        NcclCheckProgress::Waiting(what) => printer.note(format_args!("waiting for {what}")),
        NcclCheckProgress::Round { round, of } if round == of && *of > 1 => {
            printer.note("all machines together");
        }
        NcclCheckProgress::Round { round, of } => {
            printer.note(format_args!("pairs, round {round} of {}", (of - 1).max(1)));
        }
        NcclCheckProgress::Contact(contact) => report_contact(contact, printer),
    }
}

fn print_report(report: &NcclCheckReport, printer: &Printer) -> anyhow::Result<()> {
    let NcclCheckReport { pool, backend, machines, pairs, .. } = report;
    match machines.as_slice() {
        [] if report.problems.is_empty() => printer.data(format_args!("pool {pool} has no machines"))?,
        [] => {}
        machines => printer.data(table(machines))?,
    }
    if let Some(together) = report.together {
        printer.data(format_args!("all machines together: {}", gigabytes_in_words(together)))?;
    }
    for problem in &report.problems {
        printer.data(problem.as_str())?;
    }
    if machines.len() == 1 && pairs.is_empty() {
        printer.note(format_args!("pool {pool} has one machine: there is nothing to compare it with"));
    }
    if pairs.is_empty() {
        return Ok(());
    }
    let size = report.bytes >> 20;
    printer.note(format_args!(
        "bus bandwidth of all-reduces of {size} MiB with {backend}, as nccl-tests computes it"
    ));
    if let Some(expected) = report.expected {
        printer.note(format_args!("these machines should reach {}", gigabytes_in_words(expected)));
    } else if pairs.len() == 1 && report.is_healthy() {
        printer.note("with two machines nothing shows whether both are slow; a third one would");
    }
    let sick = machines.iter().find(|machine| machine.problem.is_some() && machine.median.is_some());
    if let Some(machine) = sick {
        let node = &machine.node;
        printer.help(format_args!(
            "`infra logs {node}` shows the machine's console; `kubectl cordon {node}` keeps jobs away; terminate the machine and AWS replaces it"
        ));
    }
    Ok(())
}

fn table(machines: &[MachineBandwidth]) -> String {
    let heading = ["MACHINE", "PAIRS", "SLOWEST", "WITH", ""].map(str::to_owned);
    let line = |machine: &MachineBandwidth| {
        let in_words = |bandwidth: Option<f64>| bandwidth.map_or_else(|| "-".to_owned(), gigabytes_in_words);
        let left_out = machine.left_out.as_ref().map(|why| format!("left out: {why}"));
        [
            machine.node.clone(),
            in_words(machine.median),
            in_words(machine.slowest),
            machine.slowest_with.clone().unwrap_or_else(|| "-".to_owned()),
            machine.problem.clone().or(left_out).unwrap_or_default(),
        ]
    };
    align_columns(&std::iter::once(heading).chain(machines.iter().map(line)).collect::<Vec<_>>())
}
