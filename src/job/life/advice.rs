//! What to do next about a job that failed, was restarted, or waits.

use super::explanation::{Cause, CauseKind, Wait, WaitKind};
use super::report::{DATA_ROLE, JobReport};
use super::state::JobState;

/// What to do next, the most useful first.
pub(super) fn advise(report: &JobReport, cause: Option<&Cause>, waits: &[Wait]) -> Vec<String> {
    let name = &report.name;
    match (report.state, cause) {
        (JobState::Complete, _) => vec![format!("`infra job fetch {name}` downloads the results")],
        (JobState::Failed, Some(cause)) => {
            let mut steps: Vec<String> = vec![whole_log(report, cause)];
            steps.extend(advice_for_cause(cause));
            steps.push(start_again(report));
            steps
        }
        (JobState::Failed, None) => {
            vec![format!("`infra job logs {name} --all` shows what is left of its logs"), start_again(report)]
        }
        (_, cause) => {
            let mut steps: Vec<String> =
                waits.iter().filter_map(|wait| advice_for_wait(report, wait)).collect();
            if let Some(cause) = cause {
                steps.push(whole_log(report, cause));
                steps.extend(advice_for_cause(cause));
            }
            if steps.is_empty() {
                steps.push(format!("`infra job logs {name} --all -f` follows it"));
            }
            steps.dedup();
            steps
        }
    }
}

fn whole_log(report: &JobReport, cause: &Cause) -> String {
    let (name, role, index) = (&report.name, &cause.role, cause.index);
    if cause.role == DATA_ROLE {
        return format!("`infra job logs {name} --role {DATA_ROLE}` shows its whole log");
    }
    let attempt = report.restarts.map(|_| format!(" --attempt {}", cause.attempt)).unwrap_or_default();
    format!("`infra job logs {name} --role {role} --index {index}{attempt}` shows its whole log")
}

/// What helps against a cause.
fn advice_for_cause(cause: &Cause) -> Option<String> {
    let text = match cause.kind {
        CauseKind::OutOfMemory => {
            "raise memory in job.yaml, or let the program use less: a smaller batch, fewer data loaders"
        }
        CauseKind::Exited if cause.exit_code == Some(137) => {
            "if it used too much memory, raise memory in job.yaml or use a smaller batch"
        }
        CauseKind::Misconfigured => "its last lines say what to fix; a retry cannot help",
        CauseKind::Deadline => "raise deadline in job.yaml",
        CauseKind::Disrupted | CauseKind::Silent => {
            "a lost machine restarts the group without counting; checkpoints decide what that costs"
        }
        CauseKind::Exited | CauseKind::Other => return None,
    };
    Some(text.to_owned())
}

fn start_again(report: &JobReport) -> String {
    match &report.restarts {
        Some(_) => format!(
            "fix the cause, then `infra job submit --replace` starts a new run; with `--resume {}` it continues from the checkpoints of this one",
            report.run
        ),
        None => "fix the cause, then `infra job submit --replace` starts it again".to_owned(),
    }
}

/// What helps a job that waits.
fn advice_for_wait(report: &JobReport, wait: &Wait) -> Option<String> {
    let (name, namespace) = (&report.name, &report.namespace);
    let text = match wait.what {
        WaitKind::Data if report.state == JobState::Held => {
            "`infra job submit` starts training, now that the data is imported".to_owned()
        }
        WaitKind::Data => format!("`infra job logs {name} --role {DATA_ROLE} -f` follows the import"),
        WaitKind::Queue => {
            format!("the queue starts it when its quota has room; `infra job list -n {namespace}` shows who holds GPUs")
        }
        WaitKind::Machines => {
            "`infra status` shows the machines of each pool and failed launches, `infra job list` who holds GPUs".to_owned()
        }
        WaitKind::Image => {
            "check the name of the image and that the cluster may pull it; then `infra job submit --replace`".to_owned()
        }
        WaitKind::Claim => {
            "`infra status` shows the file system; the claim must be Bound before pods start".to_owned()
        }
        WaitKind::Pods => format!("a quota or a rule of namespace {namespace} refuses its pods: free some, or ask who runs the cluster"),
        WaitKind::LastAttempt => {
            "pods of the last attempt have their grace to end; those of a lost machine go with its node".to_owned()
        }
        WaitKind::Other => return None,
    };
    Some(text)
}
