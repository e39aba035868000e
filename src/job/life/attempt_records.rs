//! How the attempts of a run ended, as its launchers wrote it to the claim: a pod reads it there, and its log brings it here.

use serde::Deserialize;

use super::error::JobError;
use super::reader_pod::{MOUNT_PATH, READER_ROLE, ReaderPod};
use super::report::JobReport;
use super::stall::explain_pods;
use crate::job::names::{JOB_LABEL, ROLE_LABEL};
use crate::kube::{ApiServer, LogPart, ObjectName, Pod, PodPhase, Toleration};
use crate::waiting::{Pace, WaitEnd, Waiting};

/// Twenty attempts with 120 lines each, and room for escapes.
const LONGEST_TEXT: usize = 8 << 20;

/// How a record reader runs.
#[derive(Clone, Debug)]
pub(crate) struct RecordTarget {
    /// The image of the reader.
    pub image: String,
    /// The program it runs.
    pub script: String,
    /// Distinguishes this reader from others at the same time.
    pub mark: String,
    /// Taints it tolerates.
    pub tolerations: Vec<Toleration>,
}

/// The end of an attempt: the replica that the others followed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptRecord {
    /// The attempt, counted from 0.
    pub attempt: u32,
    /// The role of the replica.
    pub role: String,
    /// The index of the replica.
    pub index: u32,
    /// How it ended.
    pub how: RecordedEnd,
    /// What its program exited with.
    pub exit_code: Option<i64>,
    /// When, in UTC.
    pub at: String,
    /// The last lines of its log.
    pub last_lines: Vec<String>,
    /// How many others failed too.
    pub others_failed: u32,
    /// How many others did not.
    pub others_terminated: u32,
}

/// How a replica ended, from the last lines of its log.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RecordedEnd {
    /// Its program exited.
    Exited,
    /// The deadline passed.
    Late,
    /// Its pod was terminated.
    Terminated,
    /// Its log just ends.
    Silent,
}

#[derive(Deserialize)]
struct Records {
    attempts: Vec<AttemptRecord>,
}

/// A pod that reads the records of a run. It must be deleted afterwards.
#[derive(Debug)]
pub(crate) struct RecordReader<'a> {
    api: &'a ApiServer,
    job: String,
    pod: ObjectName,
}

impl<'a> RecordReader<'a> {
    /// Starts a reader.
    pub(crate) async fn start(
        api: &'a ApiServer,
        report: &JobReport,
        target: &RecordTarget,
    ) -> Result<Self, JobError> {
        let name = format!("{}-reader-{}", report.name, target.mark);
        let pod = ReaderPod {
            name: &name,
            namespace: &report.namespace,
            job: &report.name,
            claim: &report.claim,
            image: &target.image,
            script: &target.script,
            variables: &[
                ("ATTEMPTS_CLAIM", MOUNT_PATH.to_owned()),
                ("ATTEMPTS_RUN", format!("{MOUNT_PATH}/{}", report.directory)),
                ("ATTEMPTS_JOBSET_UID", report.set_uid.clone().unwrap_or_default()),
            ],
            tolerations: &target.tolerations,
        };
        api.apply(&pod.object()).await?;
        let pod = ObjectName::new("Pod", &report.namespace, &name);
        Ok(Self { api, job: report.name.clone(), pod })
    }

    /// Waits until the pod has read everything, and returns the attempts, oldest first.
    pub(crate) async fn read(
        &self,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<Vec<AttemptRecord>, JobError> {
        let mut pace = Pace::of_moment();
        let mut told = None;
        loop {
            let pod = self.find_pod().await?;
            let detail = pod.as_ref().and_then(|pod| pod.detail.clone());
            match pod.map(|pod| pod.phase) {
                Some(PodPhase::Succeeded) => return self.parse_log().await,
                Some(PodPhase::Failed) => {
                    let detail = detail.unwrap_or_else(|| "no reason was given".to_owned());
                    return Err(self.unreadable(format!("the pod that reads them ended: {detail}")));
                }
                _ if detail.is_some() && detail != told => {
                    tell(detail.clone().unwrap_or_default());
                    told = detail;
                }
                _ => {}
            }
            if let Err(end) = waiting.pause(pace.next_pause()).await {
                let waits_for = told.map(|detail| format!(": {detail}")).unwrap_or_default();
                return Err(self.unreadable(match end {
                    WaitEnd::TimedOut => format!("the pod that reads them did not end in time{waits_for}"),
                    WaitEnd::Interrupted => "interrupted".to_owned(),
                }));
            }
        }
    }

    async fn find_pod(&self) -> Result<Option<Pod>, JobError> {
        let selector = format!("{JOB_LABEL}={},{ROLE_LABEL}={READER_ROLE}", self.job);
        let mut pods = self.api.pods(Some(&self.pod.namespace), &selector).await?;
        pods.retain(|pod| pod.name == self.pod.name);
        explain_pods(self.api, &mut pods).await;
        Ok(pods.pop())
    }

    async fn parse_log(&self) -> Result<Vec<AttemptRecord>, JobError> {
        let mut body = self.api.pod_log(&self.pod.namespace, &self.pod.name, LogPart::default()).await?;
        let text = String::from_utf8_lossy(&body.beginning(LONGEST_TEXT).await?).into_owned();
        let records = text.lines().rev().find_map(|line| serde_json::from_str::<Records>(line).ok());
        let records = records
            .ok_or_else(|| self.unreadable("the pod that reads them printed something else".to_owned()))?;
        Ok(records.attempts)
    }

    /// Deletes the reader pod.
    pub(crate) async fn remove(self) -> Result<(), JobError> {
        self.api.delete_object(&self.pod).await?;
        Ok(())
    }

    fn unreadable(&self, reason: String) -> JobError {
        JobError::Records { name: self.job.clone(), reason }
    }
}
