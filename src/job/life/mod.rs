//! A job's life through the Kubernetes API: submit, follow, report, fetch, delete.
//!
//! In: a run, and the API server. Out: reports and events. No state is kept here: the API holds all of it, and every step can be retried.

mod error;
mod event;
mod follow;
mod gpu_check;
mod group;
mod log_tail;
mod precondition;
mod preconditions;
mod removal;
mod replica;
mod report;
mod room;
mod stall;
mod state;
mod submission;
mod submit;

pub(crate) use error::JobError;
pub(crate) use event::JobEvent;
pub(crate) use follow::{Followed, follow};
pub(crate) use gpu_check::{GpuCheck, NodeGpus};
pub(crate) use group::Restarts;
pub(crate) use precondition::Precondition;
pub(crate) use removal::{removal_of, remove_job};
pub(crate) use replica::{ReplicaPhase, ReplicaReport};
pub(crate) use report::JobReport;
pub(super) use stall::explain_pods;
pub(crate) use state::JobState;
pub(crate) use submission::{REMOVAL_LIMIT, Submission, SubmitRequest};
