//! What `job why` says: the first cause, what followed, what a job waits for and what to do next.

use schemars::JsonSchema;
use serde::Serialize;

use super::restarts::Restarts;
use super::state::JobState;

/// Why a job is in its state. The exit code of `job why` is 3 if `state` is `failed`, 0 otherwise.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobExplanation {
    /// The name of the job.
    pub name: String,
    /// The namespace of the job.
    pub namespace: String,
    /// The name of the run.
    pub run: String,
    /// The state of the whole job.
    pub state: JobState,
    /// Why the job is in this state, if there is something to say.
    pub reason: Option<String>,
    /// How often the whole group was restarted; null for a job that an earlier version of infra submitted.
    pub restarts: Option<Restarts>,
    /// What the job failed of, or what restarted its group last; null if nothing did, the job is complete, or it is not known.
    pub first_cause: Option<Cause>,
    /// What ended the attempts before that one, oldest first.
    pub earlier: Vec<Cause>,
    /// What a job that does not run waits for.
    pub waits_for: Vec<Wait>,
    /// What Kubernetes reported about the job's pods and their nodes, oldest first. It forgets after an hour.
    pub events: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
}

/// The replica whose end ended an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    /// The attempt of the group, counted from 0.
    pub attempt: u32,
    /// The role of the replica, or `data` for the import.
    pub role: String,
    /// The index of the replica.
    pub index: u32,
    /// How the replica ended.
    pub kind: CauseKind,
    /// What it exited with; null if it did not, or it is not known.
    pub exit_code: Option<i64>,
    /// How the replica ended, in words.
    pub detail: String,
    /// The node it was on; null if it is not known.
    pub node: Option<String>,
    /// When it ended, in UTC; null if it is not known.
    pub at: Option<String>,
    /// The last lines that it printed.
    pub last_lines: Vec<String>,
    /// What the other replicas did then.
    pub others: Others,
}

/// How a replica ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CauseKind {
    /// The program exited with a code.
    Exited,
    /// The program exited with 64, which ends the job.
    Misconfigured,
    /// The program used more memory than its limit.
    OutOfMemory,
    /// The deadline of the job passed.
    Deadline,
    /// Kubernetes terminated the pod: its node was drained, shut down or lost, or the pod was evicted.
    Disrupted,
    /// The replica ended without a word: it was killed, or its machine was lost.
    Silent,
    /// The pod could not be started, or Kubernetes gave another reason.
    Other,
}

/// How many of the other replicas did what after the first one ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Others {
    /// Failed too.
    pub failed: u32,
    /// Were terminated.
    pub terminated: u32,
    /// Had succeeded.
    pub succeeded: u32,
}

/// Something that replicas wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wait {
    /// What it is.
    pub what: WaitKind,
    /// The replicas that wait, as `worker-2`; none if the whole job does.
    pub replicas: Vec<String>,
    /// What Kubernetes says.
    pub detail: String,
}

/// What a replica waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WaitKind {
    /// The import of the data.
    Data,
    /// A queue of Kueue.
    Queue,
    /// A machine with room.
    Machines,
    /// The image.
    Image,
    /// The claim or its volume.
    Claim,
    /// Permission to create pods: a quota or an admission rule refuses them.
    Pods,
    /// The end of the pods of the last attempt.
    LastAttempt,
    /// Something else.
    Other,
}

impl WaitKind {
    /// What is waited for, in words.
    #[must_use]
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Data => "its data",
            Self::Queue => "its queue",
            Self::Machines => "machines",
            Self::Image => "the image",
            Self::Claim => "the claim",
            Self::Pods => "its pods to be allowed",
            Self::LastAttempt => "the end of the last attempt",
            Self::Other => "something else",
        }
    }
}
