//! Reads a job's results: a pod that serves them, and a stream of bytes through the API server.

use std::time::Duration;

use serde_json::Value;

use super::error::JobError;
use super::reader_pod::{MOUNT_PATH, READER_ROLE, ReaderPod};
use super::stall::explain_pods;
use crate::hexadecimal::hexadecimal;
use crate::job::names::{JOB_LABEL, ROLE_LABEL};
use crate::kube::{ApiServer, Body, KubeError, ObjectName, PodPhase, Toleration};
use crate::waiting::{Pace, WaitEnd, Waiting};

const PORT: u16 = 8080;
/// Before a reader answers how much there is, it has looked at every file.
const COUNTING_LIMIT: Duration = Duration::from_mins(10);
const OPENING_LIMIT: Duration = Duration::from_mins(2);
/// More than a number needs.
const LONGEST_NUMBER: usize = 64;

/// The location of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchSource {
    /// The job.
    pub name: String,
    /// The namespace of the job.
    pub namespace: String,
    /// The claim.
    pub claim: String,
    /// The directory there.
    pub path: String,
}

/// How results are read.
#[derive(Clone, Debug)]
pub(crate) struct FetchTarget {
    /// The image of the reader.
    pub image: String,
    /// The program it runs.
    pub script: String,
    /// Distinguishes this reader from others at the same time.
    pub mark: String,
    /// What a request must say; the pod itself knows only its digest.
    pub token: String,
    /// Taints it tolerates.
    pub tolerations: Vec<Toleration>,
}

/// A pod that serves results. It must be deleted afterwards.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    api: &'a ApiServer,
    source: &'a FetchSource,
    token: String,
    pod: ObjectName,
}

impl<'a> Reader<'a> {
    /// Starts a reader.
    pub(crate) async fn start(
        api: &'a ApiServer,
        source: &'a FetchSource,
        target: &FetchTarget,
    ) -> Result<Self, JobError> {
        let name: String = format!("{}-reader-{}", source.name, target.mark);
        let pod = ObjectName::new("Pod", &source.namespace, &name);
        api.apply(&reader_pod(source, target, &name)).await?;
        Ok(Self { api, source, token: target.token.clone(), pod })
    }

    /// Waits until the reader pod serves, and returns the number of bytes.
    pub(crate) async fn wait_until_ready(
        &self,
        waiting: &Waiting,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<u64, JobError> {
        let mut pace = Pace::of_moment();
        let mut told = None;
        loop {
            let selector = format!("{JOB_LABEL}={},{ROLE_LABEL}={READER_ROLE}", self.source.name);
            let mut pods = self.api.pods(Some(&self.source.namespace), &selector).await?;
            pods.retain(|pod| pod.name == self.pod.name);
            explain_pods(self.api, &mut pods).await;
            let pod = pods.first();
            match pod.map(|pod| pod.phase) {
                Some(PodPhase::Running) => {
                    if let Some(bytes) = self.ask_size().await? {
                        return Ok(bytes);
                    }
                }
                Some(PodPhase::Failed | PodPhase::Succeeded) => {
                    let detail = pod.and_then(|pod| pod.detail.clone());
                    let detail = detail.unwrap_or_else(|| "no reason was given".to_owned());
                    return Err(self.unreadable(format!("its reader pod ended: {detail}"), None));
                }
                _ => {
                    let detail = pod.and_then(|pod| pod.detail.clone());
                    if detail.is_some() && detail != told {
                        tell(detail.clone().unwrap_or_default());
                        told = detail;
                    }
                }
            }
            if let Err(end) = waiting.pause(pace.next_pause()).await {
                let waits_for = told.map(|detail| format!(": {detail}")).unwrap_or_default();
                return Err(match end {
                    WaitEnd::TimedOut => {
                        let help = "it needs a node that is Ready; `--image` names another image for it";
                        self.unreadable(
                            format!("its reader pod did not start in time{waits_for}"),
                            Some(help),
                        )
                    }
                    WaitEnd::Interrupted => self.unreadable("interrupted".to_owned(), None),
                });
            }
        }
    }

    /// The size of the results; nothing if the server is not up yet.
    async fn ask_size(&self) -> Result<Option<u64>, JobError> {
        match self.open_page("ready", COUNTING_LIMIT).await {
            Ok(mut body) => {
                let text = body.beginning(LONGEST_NUMBER).await?;
                let number = String::from_utf8_lossy(&text).trim().parse();
                number.map(Some).map_err(|_| {
                    self.unreadable("its reader pod did not say how much there is".to_owned(), None)
                })
            }
            // The reader's own 404, not the API's for a deleted reader.
            Err(KubeError::Refused { status: 404, reason, .. }) if reason != "NotFound" => {
                let help = "has the job written anything yet? `--path DIR` names another directory of the job, `--path .` all of it";
                let (path, claim) = (&self.source.path, &self.source.claim);
                Err(self.unreadable(format!("there is no directory {path} on the claim {claim}"), Some(help)))
            }
            Err(error) if matches!(error.status(), Some(500..=599)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The results as one tar archive.
    pub(crate) async fn open(&self) -> Result<Body, JobError> {
        Ok(self.open_page("archive.tar", OPENING_LIMIT).await?)
    }

    async fn open_page(&self, page: &str, limit: Duration) -> Result<Body, KubeError> {
        let page = format!("{page}?token={}", self.token);
        self.api.open_pod_page(&self.source.namespace, &self.pod.name, PORT, &page, limit).await
    }

    /// Deletes the reader pod.
    pub(crate) async fn remove(self) -> Result<(), JobError> {
        self.api.delete_object(&self.pod).await?;
        Ok(())
    }

    fn unreadable(&self, reason: String, help: Option<&str>) -> JobError {
        JobError::Results { name: self.source.name.clone(), reason, help: help.map(str::to_owned) }
    }
}

fn reader_pod(source: &FetchSource, target: &FetchTarget, name: &str) -> Value {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, target.token.as_bytes());
    let pod = ReaderPod {
        name,
        namespace: &source.namespace,
        job: &source.name,
        claim: &source.claim,
        image: &target.image,
        script: &target.script,
        variables: &[
            ("ARCHIVE_CLAIM", MOUNT_PATH.to_owned()),
            ("ARCHIVE_ROOT", format!("{MOUNT_PATH}/{}", source.path)),
            ("ARCHIVE_PORT", PORT.to_string()),
            ("ARCHIVE_TOKEN_SHA256", hexadecimal(digest.as_ref())),
        ],
        port: Some(PORT),
        tolerations: &target.tolerations,
    };
    pod.object()
}
