//! A job whose pods JobSet restarts as one group: its replicas and its state.

use super::replica::{ReplicaPhase, ReplicaReport, replicas_of};
use super::state::{JobState, explain_hold, state_of_pods};
use crate::job::names::ROLE_LABEL;
use crate::kube::{Job, JobEnd, JobSet, JobSetEnd, Pod};
use crate::plural::count_of;
use crate::well_known::ATTEMPT_LABEL;

/// The rule of our JobSets for a lost machine.
const MACHINE_LOST: &str = "machineLost";

/// A line for each replica of the attempt that the group is in.
pub(super) fn replicas_of_group(set: &JobSet, jobs: &[&Job], pods: &[Pod]) -> Vec<ReplicaReport> {
    let attempt = set.restarts.to_string();
    let (current, earlier): (Vec<Pod>, Vec<Pod>) =
        pods.iter().cloned().partition(|pod| pod.labels.get(ATTEMPT_LABEL) == Some(&attempt));
    let is_waiting = earlier.iter().any(|pod| pod.labels.contains_key(ATTEMPT_LABEL) && !pod.phase.is_over());
    let line_of = |(role, count): &(String, u32)| {
        let is_own = |job: &&&Job| {
            job.labels.get(ROLE_LABEL) == Some(role) && job.labels.get(ATTEMPT_LABEL) == Some(&attempt)
        };
        let found = jobs.iter().find(is_own);
        let job = found.map_or_else(|| absent_job(set, *count, is_waiting), |job| (*job).clone());
        let is_complete = found.is_some() && job.end == Some(JobEnd::Complete);
        let mut lines = replicas_of(role, &job, &current);
        for line in &mut lines {
            line.restarts = set.restarts;
            // A Job may be complete before all of its replicas are: the others were terminated.
            if is_complete && line.pod.is_none() && !job.has_completed(line.index) {
                line.phase = ReplicaPhase::Removed;
            }
        }
        lines
    };
    set.roles.iter().flat_map(line_of).collect()
}

/// A Job that its JobSet has not created yet, or has deleted at the end.
fn absent_job(set: &JobSet, completions: u32, is_waiting: bool) -> Job {
    let mut job = Job::awaited(completions, set.suspended);
    job.labels.clone_from(&set.labels);
    job.end = set.end.as_ref().map(|end| match end {
        JobSetEnd::Complete => JobEnd::Complete,
        JobSetEnd::Failed { reason, .. } => JobEnd::Failed { reason: reason.clone(), at: None },
    });
    job.detail = is_waiting.then(|| "waiting for the pods of the last attempt to terminate".to_owned());
    job
}

/// The state of a job, from its JobSet, its Jobs and how their pods are.
pub(super) fn state_of_group(
    set: &JobSet,
    jobs: &[&Job],
    replicas: &[ReplicaReport],
) -> (JobState, Option<String>) {
    match &set.end {
        Some(JobSetEnd::Complete) => return (JobState::Complete, None),
        Some(JobSetEnd::Failed { is_out_of_restarts, reason }) => {
            let reason = first_failure(jobs).unwrap_or_else(|| reason.clone());
            let reason = match set.counted_restarts {
                restarts if *is_out_of_restarts && restarts > 0 => {
                    format!("{reason} (after {})", count_of(restarts, "restart"))
                }
                _ => reason,
            };
            return (JobState::Failed, Some(reason));
        }
        None => {}
    }
    if set.suspended {
        return (JobState::Held, Some(explain_hold(&set.labels)));
    }
    if let Some(rule) = &set.restarting {
        let why = if rule == MACHINE_LOST { "a machine was lost" } else { "a process failed" };
        return (JobState::Starting, Some(format!("{why}; the whole group is restarted")));
    }
    state_of_pods(replicas)
}

/// Why the first of the Jobs failed: JobSet's own condition names the Job only.
fn first_failure(jobs: &[&Job]) -> Option<String> {
    let failures = jobs.iter().filter_map(|job| match &job.end {
        Some(JobEnd::Failed { reason, at }) => Some((at, reason)),
        _ => None,
    });
    failures.min_by_key(|(at, _)| *at).map(|(_, reason)| reason.clone())
}
