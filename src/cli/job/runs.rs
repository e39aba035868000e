//! `infra job runs`: the runs of a job, with what changed from one to the next.

use clap::Args;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::target::{JobNameOptions, seconds_now};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::job::life::{Restarts, RunReport, RunState, read_runs};

const MINUTES: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");

/// List the runs of a job, with the keys of the job file that changed from one to the next
///
/// Every `submit` is a run. The newest 50 are listed, also those whose job was deleted: a ConfigMap of the namespace, NAME-runs, keeps
/// them. Their files are on the claim until you delete them; `infra job fetch --run RUN` downloads those of a run, and
/// `infra job submit --resume RUN` continues in it.
#[derive(Args, Debug)]
pub(super) struct RunsArguments {
    #[command(flatten)]
    job: JobNameOptions,
}

pub(super) fn run(arguments: &RunsArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let api = TargetCluster::find(session)?.api;
    let runs = block_on(async { Ok(read_runs(&api, &target.namespace, &target.name).await?) })?;
    match session.output {
        Output::Json => session.printer.json(&runs)?,
        Output::Text | Output::Markdown | Output::Html => session.printer.data(table(&runs))?,
    }
    Ok(Exit::Done)
}

fn table(runs: &[RunReport]) -> String {
    let heading = ["RUN", "STATE", "SUBMITTED", "DURATION", "RESTARTS", "CHANGED"].map(str::to_owned);
    let line = |run: &RunReport| {
        let resumed = if run.resumed { " (resumed)" } else { "" };
        [
            format!("{}{resumed}", run.run),
            run.state.name().to_owned(),
            run.submitted.and_then(day_and_minute).unwrap_or_else(|| "-".to_owned()),
            duration_of(run).unwrap_or_else(|| "-".to_owned()),
            run.restarts.map_or_else(|| "-".to_owned(), |restarts| restarts_in_words(&restarts)),
            run.changed.as_ref().map(|keys| keys.join(", ")).unwrap_or_default(),
        ]
    };
    let lines: Vec<[String; 6]> = std::iter::once(heading).chain(runs.iter().map(line)).collect();
    align_columns(&lines)
}

fn day_and_minute(seconds: u64) -> Option<String> {
    let moment = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()?;
    moment.format(MINUTES).ok()
}

/// How long a run took, or takes so far.
fn duration_of(run: &RunReport) -> Option<String> {
    let is_going_on =
        matches!(run.state, RunState::Importing | RunState::Held | RunState::Starting | RunState::Running);
    let end = run.ended.or_else(|| is_going_on.then(seconds_now))?;
    Some(in_units(end.saturating_sub(run.submitted?)))
}

/// Seconds as `2d 3h`, `2h 13m`, `5m 10s` or `12s`.
pub(super) fn in_units(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m {}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

fn restarts_in_words(restarts: &Restarts) -> String {
    match (restarts.failures, restarts.lost_machines) {
        (0, 0) => "0".to_owned(),
        (failures, 0) => format!("{failures} failed"),
        (0, lost) => format!("{lost} lost"),
        (failures, lost) => format!("{failures} failed, {lost} lost"),
    }
}

#[cfg(test)]
mod tests {
    use super::{day_and_minute, in_units};

    #[test]
    fn times_have_two_units_at_most() {
        let table = [(0, "0s"), (59, "59s"), (310, "5m 10s"), (7980, "2h 13m"), (183_600, "2d 3h")];
        for (seconds, expected) in table {
            assert_eq!(in_units(seconds), expected);
        }
        assert_eq!(day_and_minute(1_763_000_000).as_deref(), Some("2025-11-13 02:13 UTC"));
    }
}
