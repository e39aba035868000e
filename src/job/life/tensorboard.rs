//! The TensorBoard of a job: whether it can be seen, and if not, why.

use super::error::JobError;
use super::stall::explain_stalls;
use crate::job::names::{JOB_LABEL, ROLE_LABEL, TENSORBOARD_PORT, TENSORBOARD_ROLE};
use crate::kube::{ApiServer, Job, JobEnd, Pod, PodPhase, PodPort};

/// The state of a TensorBoard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TensorboardState {
    /// The job has none, or it was deleted.
    Absent,
    /// It does not answer yet.
    Waiting {
        /// What for.
        reason: String,
    },
    /// It answers.
    Ready(PodPort),
    /// It has ended, as it does a day after its job.
    Complete,
    /// It failed too often.
    Failed {
        /// Why TensorBoard failed.
        reason: String,
    },
}

/// Reads the state of a job's TensorBoard.
pub(crate) async fn read_tensorboard(
    api: &ApiServer,
    namespace: &str,
    job: &str,
) -> Result<TensorboardState, JobError> {
    let selector = format!("{JOB_LABEL}={job},{ROLE_LABEL}={TENSORBOARD_ROLE}");
    let (mut jobs, mut pods) = tokio::try_join!(
        Box::pin(api.jobs(Some(namespace), &selector)),
        Box::pin(api.pods(Some(namespace), &selector))
    )?;
    explain_stalls(api, &mut jobs, &mut pods).await;
    Ok(state_of(jobs.first(), &pods))
}

fn state_of(job: Option<&Job>, pods: &[Pod]) -> TensorboardState {
    let Some(job) = job.filter(|job| !job.leaving) else { return TensorboardState::Absent };
    let newest =
        pods.iter().max_by(|one, other| (&one.created, &one.name).cmp(&(&other.created, &other.name)));
    let detail = newest.and_then(|pod| pod.detail.clone());
    match &job.end {
        Some(JobEnd::Complete) => return TensorboardState::Complete,
        Some(JobEnd::Failed { reason, .. }) => {
            return TensorboardState::Failed { reason: detail.unwrap_or_else(|| reason.clone()) };
        }
        None => {}
    }
    let answers = |pod: &&Pod| pod.phase == PodPhase::Running && pod.is_ready && !pod.leaving;
    if let Some(pod) = pods.iter().find(answers) {
        return TensorboardState::Ready(PodPort {
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            port: TENSORBOARD_PORT,
        });
    }
    let reason = match newest {
        None => job.detail.clone().unwrap_or_else(|| "its pod is not created yet".to_owned()),
        Some(pod) if pod.phase.is_over() => {
            format!("it is started again; {}", detail.unwrap_or_else(|| "its pod ended".to_owned()))
        }
        Some(pod) if pod.leaving => "its pod is being terminated".to_owned(),
        Some(pod) if pod.phase == PodPhase::Running => "it runs, and does not answer yet".to_owned(),
        Some(_) => detail.unwrap_or_else(|| "its pod is being started".to_owned()),
    };
    TensorboardState::Waiting { reason }
}
