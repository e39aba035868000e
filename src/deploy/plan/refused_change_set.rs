//! Why CloudFormation refused a change set: the checks that failed, read before the change set is deleted and its events with it.

use crate::aws::{AwsError, ChangeSet, FailedCheck};
use crate::blueprint::StackPart;
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::deploy::state::description::describe_resource;
use crate::deploy::state::desired::DesiredStack;
use crate::plural::count_of;
use crate::waiting::Pace;

/// The events of a change set may be later than its status.
const MOST_READS: usize = 4;
/// What CloudFormation's reason holds if the events say more.
const REFERENCE_TO_EVENTS: &str = "DescribeEvents";

/// The error for a change set that CloudFormation refused, with every check that failed. `hint` gives what to do about a reason.
pub(crate) async fn explain_refusal(
    run: &Run,
    desired: &DesiredStack,
    change_set: &ChangeSet,
    hint: impl Fn(&str) -> Option<String>,
) -> DeployError {
    let reason = change_set.reason.clone().unwrap_or_else(|| change_set.status.to_string());
    let (reason, hints): (String, Vec<String>) = match read_failed_checks(run, change_set, &reason).await {
        Ok(checks) if checks.is_empty() => {
            let hints = hint(&reason).into_iter().collect();
            (reason, hints)
        }
        Ok(checks) => {
            let hints =
                checks.iter().filter_map(|check| hint(&format!("{} ({})", check.reason, check.check)));
            (describe_checks(run.cluster.as_ref(), &desired.part, &checks), hints.collect())
        }
        Err(error) => {
            let name = &desired.name;
            run.progress.warn(format!("which check refused {name} could not be read: {error}"));
            let hints = hint(&reason).into_iter().chain([advice_to_read(&error)]).collect();
            (reason, hints)
        }
    };
    let mut help: Vec<String> = Vec::new();
    for hint in hints {
        if !help.contains(&hint) {
            help.push(hint);
        }
    }
    DeployError::ChangeSetRefused { stack: desired.name.clone(), reason, help }
}

/// The checks that a change set failed; none if CloudFormation names none.
async fn read_failed_checks(
    run: &Run,
    change_set: &ChangeSet,
    reason: &str,
) -> Result<Vec<FailedCheck>, AwsError> {
    let mut pace = Pace::of_moment();
    let mut reads = 1;
    loop {
        let checks = run.clients.failed_checks(change_set).await?;
        let is_complete = !checks.is_empty() || !reason.contains(REFERENCE_TO_EVENTS);
        if is_complete || reads == MOST_READS || run.waiting.pause(pace.next_pause()).await.is_err() {
            return Ok(checks);
        }
        reads += 1;
    }
}

fn advice_to_read(error: &AwsError) -> String {
    if error.is_denied() {
        format!("allow {}, which `infra policy` lists: only that names the check", error.operation)
    } else {
        "the next run reads again which check it was".to_owned()
    }
}

fn describe_checks(cluster: Option<&Cluster>, part: &StackPart, checks: &[FailedCheck]) -> String {
    let lines: Vec<String> = checks.iter().map(|check| describe_check(cluster, part, check)).collect();
    match lines.as_slice() {
        [one] => one.clone(),
        many => format!("{}\n       {}", count_of(many.len(), "failed check"), many.join("\n       ")),
    }
}

fn describe_check(cluster: Option<&Cluster>, part: &StackPart, failed: &FailedCheck) -> String {
    let FailedCheck { logical_id, path, check, reason } = failed;
    let subject = match (logical_id, cluster) {
        (Some(id), Some(cluster)) => format!("{} ({id}): ", describe_resource(cluster, part, id)),
        (Some(id), None) => format!("{id}: "),
        (None, _) => String::new(),
    };
    let position = path.as_ref().map(|path| format!(" at {path}")).unwrap_or_default();
    format!("{subject}{}{position} ({check})", reason.trim_end_matches('.'))
}
