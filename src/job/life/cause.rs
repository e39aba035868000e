//! The replica whose end ended an attempt: from what launchers wrote to the claim, or from the pods that are left.

use std::cmp::Reverse;

use super::attempt_records::{AttemptRecord, RecordedEnd};
use super::explanation::{Cause, CauseKind, Others};
use super::log_tail::telling_lines;
use super::replica::{ReplicaPhase, ReplicaReport};
use super::report::JobReport;
use super::state::JobState;

/// What our scripts exit with when trying again cannot help.
const MISCONFIGURED: i64 = 64;
/// What a launcher exits with after a signal to end.
const TERMINATED: i64 = 143;
/// What a machine reports of the containers that it finds dead after a power cut.
const FOUND_DEAD: i64 = 255;

/// Kubernetes' reasons for terminating a pod, in other words.
const DISRUPTIONS: [(&str, &str); 5] = [
    ("EvictionByEvictionAPI", "its node was drained"),
    ("DeletionByPodGC", "its node is gone"),
    ("DeletionByTaintManager", "its node did not answer"),
    ("TerminationByKubelet", "its node shut down, as after a spot notice, or ran out of memory or disk"),
    ("PreemptionByScheduler", "a pod of higher priority took its place"),
];

/// The replica that failed first, as far as pods show it: when one fails, the others fail with it. A failure before a restart no longer
/// counts, so only replicas with the most restarts are considered.
pub(super) fn first_failed(report: &JobReport) -> Option<&ReplicaReport> {
    if report.state != JobState::Failed {
        return None;
    }
    let failed = report.replicas.iter().filter(|replica| replica.phase == ReplicaPhase::Failed);
    let first = failed.min_by_key(|replica| {
        let is_own = replica.disruption.is_none() && replica.exit_code != Some(TERMINATED);
        (Reverse(replica.restarts), !is_own, replica.ended.is_none(), replica.ended.clone(), replica.index)
    });
    first.or_else(|| report.data.as_ref().filter(|line| line.phase == ReplicaPhase::Failed))
}

/// What the pods report of the newest attempt.
pub(super) fn cause_of_pod(report: &JobReport, replica: &ReplicaReport, last_lines: Vec<String>) -> Cause {
    let detail = replica.detail.clone().unwrap_or_default();
    let (kind, words) = match (replica.exit_code, &replica.disruption) {
        (_, Some(why)) => (CauseKind::Disrupted, explain_disruption(why)),
        _ if detail.contains("OOMKilled") => {
            (CauseKind::OutOfMemory, "killed: it used more memory than its limit".to_owned())
        }
        (Some(MISCONFIGURED), _) if says_deadline(&last_lines) => (CauseKind::Deadline, DEADLINE.to_owned()),
        (Some(FOUND_DEAD), _) => {
            (CauseKind::Disrupted, "its machine went down while it ran (exit code 255)".to_owned())
        }
        (Some(code), _) => exit_in_words(code),
        (None, None) if detail.is_empty() => (CauseKind::Silent, SILENT.to_owned()),
        (None, None) => (CauseKind::Other, detail),
    };
    let count = |phases: &[ReplicaPhase]| {
        let is_other = |other: &&ReplicaReport| other.name() != replica.name();
        let found = report.replicas.iter().filter(is_other).filter(|other| phases.contains(&other.phase));
        u32::try_from(found.count()).unwrap_or(u32::MAX)
    };
    Cause {
        attempt: replica.restarts,
        role: replica.role.clone(),
        index: replica.index,
        kind,
        exit_code: replica.exit_code,
        detail: words,
        node: replica.node.clone(),
        at: replica.ended.clone(),
        last_lines,
        others: Others {
            failed: count(&[ReplicaPhase::Failed]),
            terminated: count(&[ReplicaPhase::Removed, ReplicaPhase::Terminating]),
            succeeded: count(&[ReplicaPhase::Succeeded]),
        },
    }
}

const DEADLINE: &str = "the deadline passed";
const SILENT: &str = "it ended without a word: it was killed, or its machine was lost";

/// What the launchers report of an attempt; the report knows the nodes of the newest.
pub(super) fn cause_of_record(report: &JobReport, record: &AttemptRecord) -> Cause {
    let is_same = |replica: &&ReplicaReport| {
        replica.role == record.role && replica.index == record.index && replica.restarts == record.attempt
    };
    let replica = report.replicas.iter().find(is_same);
    let disruption = replica.and_then(|replica| replica.disruption.as_deref());
    let (kind, detail) = match (record.how, record.exit_code) {
        (RecordedEnd::Late, _) => (CauseKind::Deadline, DEADLINE.to_owned()),
        (RecordedEnd::Exited, Some(code)) => exit_in_words(code),
        (RecordedEnd::Terminated, _) => (
            CauseKind::Disrupted,
            disruption.map_or_else(
                || {
                    "Kubernetes terminated it: its node was drained or shut down, or it was evicted"
                        .to_owned()
                },
                explain_disruption,
            ),
        ),
        (RecordedEnd::Silent | RecordedEnd::Exited, _) => match disruption {
            Some(why) => (CauseKind::Disrupted, explain_disruption(why)),
            None => (CauseKind::Silent, SILENT.to_owned()),
        },
    };
    Cause {
        attempt: record.attempt,
        role: record.role.clone(),
        index: record.index,
        kind,
        exit_code: record.exit_code,
        detail,
        node: replica.and_then(|replica| replica.node.clone()),
        at: Some(record.at.clone()),
        last_lines: telling_lines(record.last_lines.iter().map(String::as_str)),
        others: Others { failed: record.others_failed, terminated: record.others_terminated, succeeded: 0 },
    }
}

fn exit_in_words(code: i64) -> (CauseKind, String) {
    match code {
        MISCONFIGURED => (CauseKind::Misconfigured, format!("exit code {code}, which ends the job at once")),
        137 => (CauseKind::Exited, format!("exit code {code}: it was killed, often for too much memory")),
        139 => (CauseKind::Exited, format!("exit code {code}: it crashed (segmentation fault)")),
        _ => (CauseKind::Exited, format!("exit code {code}")),
    }
}

fn explain_disruption(why: &str) -> String {
    let known = DISRUPTIONS.iter().find(|(reason, _)| why.starts_with(reason));
    known.map_or_else(
        || format!("Kubernetes terminated it: {why}"),
        |(_, words)| format!("Kubernetes terminated it: {words} ({why})"),
    )
}

fn says_deadline(lines: &[String]) -> bool {
    lines.iter().any(|line| line.starts_with("infra: the deadline has passed"))
}
