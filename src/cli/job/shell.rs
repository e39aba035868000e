//! `infra job shell`: a terminal in a replica of a job, or a command there.

use clap::Args;

use super::target::{JobPlaceOptions, find_replica, scripts_of};
use crate::cli::attached_program::run_attached;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::raw_terminal::has_terminal;
use crate::job::life::{JobReport, ReplicaPhase, ReplicaReport};
use crate::kube::{ExecRequest, KubeError};

/// Where every image has one that a launcher runs in.
const SHELL: &str = "/bin/sh";
/// What the script calls itself in its messages.
const NAME: &str = "infra";

const EXAMPLES: &str = "\
Examples:
  infra job shell                      replica 0 of the job in job.yaml
  infra job shell 2                    replica 2
  infra job shell train 2              replica 2 of job train
  infra job shell -- nvidia-smi        a command instead of the shell
  infra job shell -- tar -c -C /tmp trace > trace.tar";

/// Open a shell in a replica of a running job, or run a command there
///
/// The shell is bash if the image has it, else sh, in the directory that the job's processes are in. Every key goes to it, Ctrl-C too;
/// `exit` or Ctrl-D leaves. If stdin or stdout is no terminal, both are passed on unchanged.
///
/// Exits as the shell or the command does. Needs the right to get and create pods/exec.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShellArguments {
    /// The name of the job; by default that of the job file, also before a number
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The index of the replica; by default 0
    #[arg(value_name = "N")]
    index: Option<String>,
    #[command(flatten)]
    place: JobPlaceOptions,
    /// The role, such as ps, or data for the import; by default that of the replicas that train
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// A command and its arguments, instead of the shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(arguments: &ShellArguments, session: &Session) -> anyhow::Result<Exit> {
    let (name, index) = parse_words(arguments.name.as_deref(), arguments.index.as_deref())?;
    let target = arguments.place.resolve(name, session)?;
    let script = scripts_of(session)?.shell();
    let api = TargetCluster::find(session)?.api;
    block_on(async {
        let report = JobReport::read(&api, &target.namespace, &target.name).await?;
        let replica = find_replica(&report, arguments.role.as_deref(), index)?;
        let pod = running_pod(&report, replica)?;
        let words = [SHELL, "-c", &script, NAME].into_iter();
        let command: Vec<&str> = words.chain(arguments.command.iter().map(String::as_str)).collect();
        let terminal = has_terminal();
        let request =
            ExecRequest { namespace: &report.namespace, pod, container: None, command: &command, terminal };
        if terminal && arguments.command.is_empty() {
            session.printer.note(format_args!(
                "{} {index} of job '{}', in pod {pod}; `exit` leaves",
                replica.role, report.name
            ));
        }
        let ended = run_attached(&api, &request, &session.printer).await;
        ended.map_err(|error| explain_break(error, &report, replica))
    })
}

/// The name of a job begins with a letter, so that a number alone is that of a replica.
fn parse_words<'a>(first: Option<&'a str>, second: Option<&str>) -> Result<(Option<&'a str>, u32), Refusal> {
    let refuse = |word: &str| {
        Refusal::invalid(format!("'{word}' is not the number of a replica"))
            .help("`infra job shell NAME 2` opens a shell in replica 2 of job NAME")
    };
    match (first, second) {
        (None, _) => Ok((None, 0)),
        (Some(word), None) if word.starts_with(|c: char| c.is_ascii_digit()) => {
            Ok((None, word.parse().map_err(|_| refuse(word))?))
        }
        (Some(name), None) => Ok((Some(name), 0)),
        (Some(name), Some(index)) => Ok((Some(name), index.parse().map_err(|_| refuse(index))?)),
    }
}

/// The pod of a replica that runs; otherwise why there is none.
fn running_pod<'a>(report: &JobReport, replica: &'a ReplicaReport) -> Result<&'a str, Refusal> {
    let (name, who) = (&report.name, format!("{} {} of job '{}'", replica.role, replica.index, report.name));
    let detail = replica.detail.clone();
    let refuse = |what: &str, detail: Option<String>, help: String| {
        let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
        Err(Refusal::new(format!("{who} {what}{detail}")).help(help))
    };
    let logs = format!("`infra job logs {name} --role {} --index {}`", replica.role, replica.index);
    match (replica.phase, &replica.pod) {
        (ReplicaPhase::Running, Some(pod)) => Ok(pod),
        (ReplicaPhase::Pending | ReplicaPhase::Running, _) => refuse(
            "has not started",
            detail.or_else(|| report.reason.clone()),
            format!("`infra job why {name}` says what it waits for"),
        ),
        (ReplicaPhase::Held, _) => refuse(
            "is held and has no pod",
            report.reason.clone(),
            format!("`infra job why {name}` says what it waits for"),
        ),
        (ReplicaPhase::Succeeded | ReplicaPhase::Failed, Some(_)) => {
            let how = detail.unwrap_or_else(|| replica.phase.to_string());
            refuse("has ended", Some(how), format!("{logs} prints its log"))
        }
        (ReplicaPhase::Succeeded | ReplicaPhase::Failed | ReplicaPhase::Removed, _) => refuse(
            "has ended, and its pod was deleted",
            None,
            format!("`infra data ls {}` lists the files of its run", report.directory),
        ),
        (ReplicaPhase::Terminating, _) => refuse(
            "is being terminated",
            replica.disruption.clone(),
            format!("`infra job status {name}` shows whether it is started again"),
        ),
        (ReplicaPhase::Unknown, _) => refuse(
            "cannot be reached: its machine does not answer",
            None,
            format!("`infra job status {name}` shows when it is replaced"),
        ),
    }
}

/// A break is said to be one, and a pod that ended meanwhile is no fault of the API.
fn explain_break(error: anyhow::Error, report: &JobReport, replica: &ReplicaReport) -> anyhow::Error {
    match error.downcast_ref::<KubeError>() {
        Some(broken) if broken.is_unreachable() => Refusal::new(format!(
            "the connection to {} {} of job '{}' broke: {broken}",
            replica.role, replica.index, report.name
        ))
        .help(format!(
            "what ran there may continue; `infra job status {}` shows whether the replica does",
            report.name
        ))
        .into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_words;

    #[test]
    fn a_number_is_a_replica_and_anything_else_a_job() {
        let parsed = |first, second| parse_words(first, second).map_err(|why| why.to_string());
        assert_eq!(parsed(None, None), Ok((None, 0)));
        assert_eq!(parsed(Some("2"), None), Ok((None, 2)));
        assert_eq!(parsed(Some("train"), None), Ok((Some("train"), 0)));
        assert_eq!(parsed(Some("train"), Some("2")), Ok((Some("train"), 2)));
        for (first, second, bad) in
            [("2nd", None, "2nd"), ("train", Some("x"), "x"), ("train", Some("-1"), "-1")]
        {
            assert_eq!(parsed(Some(first), second), Err(format!("'{bad}' is not the number of a replica")));
        }
    }
}
