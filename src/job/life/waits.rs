//! What a job that does not run waits for.

use super::explanation::{Wait, WaitKind};
use super::replica::{ReplicaPhase, ReplicaReport};
use super::report::JobReport;
use super::state::JobState;

/// What Kubernetes' texts contain, and what is waited for then: the first that is found decides.
const SIGNS: [(&str, WaitKind); 14] = [
    ("persistentvolumeclaim", WaitKind::Claim),
    ("FailedMount", WaitKind::Claim),
    ("FailedAttachVolume", WaitKind::Claim),
    ("no pod can be created", WaitKind::Pods),
    ("pods of the last attempt", WaitKind::LastAttempt),
    ("ImagePullBackOff", WaitKind::Image),
    ("ErrImagePull", WaitKind::Image),
    ("ErrImageNeverPull", WaitKind::Image),
    ("InvalidImageName", WaitKind::Image),
    ("ImageInspectError", WaitKind::Image),
    ("RegistryUnavailable", WaitKind::Image),
    ("Failed to pull image", WaitKind::Image),
    ("nodes are available", WaitKind::Machines),
    ("no nodes available", WaitKind::Machines),
];

/// Everything that keeps a job from running, each once.
pub(super) fn waits_of(report: &JobReport) -> Vec<Wait> {
    let whole = |what, detail: Option<String>, otherwise: &str| {
        let detail = detail.unwrap_or_else(|| otherwise.to_owned());
        vec![Wait { what, replicas: Vec::new(), detail }]
    };
    match report.state {
        JobState::Running | JobState::Complete | JobState::Failed => Vec::new(),
        JobState::Held if report.data.is_some() && report.restarts.is_none() => {
            whole(WaitKind::Data, report.reason.clone(), "the import")
        }
        JobState::Held => whole(WaitKind::Queue, report.reason.clone(), "a queue"),
        JobState::Importing => {
            let detail = report.data.as_ref().and_then(|line| line.detail.clone());
            let what = detail.as_deref().map_or(WaitKind::Data, |detail| match kind_of(detail) {
                WaitKind::Other => WaitKind::Data,
                kind => kind,
            });
            whole(what, detail, "the data is being imported")
        }
        JobState::Starting => group_waits(&report.replicas),
    }
}

/// Replicas that wait for the same are one entry.
fn group_waits(replicas: &[ReplicaReport]) -> Vec<Wait> {
    let mut waits: Vec<Wait> = Vec::new();
    let waiting = replicas
        .iter()
        .filter(|replica| !matches!(replica.phase, ReplicaPhase::Running | ReplicaPhase::Succeeded));
    for replica in waiting {
        let detail = replica.detail.clone().unwrap_or_else(|| match replica.phase {
            ReplicaPhase::Pending if replica.pod.is_none() => "its pod is not created yet".to_owned(),
            ReplicaPhase::Pending => "Kubernetes has not said why it is Pending".to_owned(),
            phase => format!("its pod is {phase}"),
        });
        match waits.iter_mut().find(|wait| wait.detail == detail) {
            Some(wait) => wait.replicas.push(replica.name()),
            None => {
                waits.push(Wait { what: kind_of(&detail), replicas: vec![replica.name()], detail });
            }
        }
    }
    waits
}

fn kind_of(detail: &str) -> WaitKind {
    let lower = detail.to_ascii_lowercase();
    let found = SIGNS.iter().find(|(sign, _)| lower.contains(&sign.to_ascii_lowercase()));
    found.map_or(WaitKind::Other, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::{WaitKind, kind_of};

    #[test]
    fn what_kubernetes_says_is_recognised() {
        let table = [
            ("0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", WaitKind::Machines),
            ("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims.", WaitKind::Claim),
            ("ImagePullBackOff: Back-off pulling image", WaitKind::Image),
            ("its container is not created on gpu-1: FailedMount: mount.nfs: timed out", WaitKind::Claim),
            ("no pod can be created: FailedCreate: exceeded quota: team-a", WaitKind::Pods),
            ("waiting for the pods of the last attempt to terminate", WaitKind::LastAttempt),
            ("CreateContainerConfigError: secret \"wandb\" not found", WaitKind::Other),
        ];
        for (detail, kind) in table {
            assert_eq!(kind_of(detail), kind, "{detail}");
        }
    }
}
