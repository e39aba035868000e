//! A job's life through the Kubernetes API: submit, follow, report, fetch, delete.
//!
//! In: a run, and the API server. Out: reports and events. No state is kept here: the API holds all of it, and every step can be retried.

mod advice;
mod attempt_records;
mod cause;
mod coming_machines;
mod error;
mod event;
mod explanation;
mod follow;
mod gpu_check;
mod group;
mod helper_pod;
mod job_events;
mod log_tail;
mod nccl_check;
mod precondition;
mod preconditions;
mod quota;
mod removal;
mod replica;
mod report;
mod restarts;
mod room;
mod run_records;
mod runs;
mod secrets;
mod stall;
mod state;
mod submission;
mod submission_plan;
mod submit;
mod tensorboard;
mod waits;
mod why;

pub(crate) use attempt_records::{AttemptRecord, RecordReader, RecordTarget};
pub(crate) use error::JobError;
pub(crate) use event::JobEvent;
pub(crate) use explanation::{Cause, JobExplanation, Others, Wait};
pub(crate) use follow::{Followed, follow};
pub(crate) use gpu_check::{GpuCheck, NodeGpus};
pub(crate) use helper_pod::{HelperPod, PodWait, helper_selector, wait_for_helper};
pub(crate) use nccl_check::{
    Backend, MachineBandwidth, NcclCheck, NcclCheckProgress, NcclCheckReport, NcclCheckSettings, choose_pool,
    gigabytes_in_words,
};
pub(crate) use precondition::Precondition;
pub(crate) use preconditions::check_preconditions;
pub(crate) use removal::{removal_limit, removal_of, remove_job};
pub(crate) use replica::{ReplicaPhase, ReplicaReport};
pub(crate) use report::{JobReport, parse_seconds};
pub(crate) use restarts::Restarts;
pub(crate) use run_records::{record_deletion, record_state};
pub(crate) use runs::{RunReport, RunState, read_runs};
pub(crate) use state::JobState;
pub(crate) use submission::{Submission, SubmitRequest};
pub(crate) use submission_plan::{PlannedAction, PlannedCode, PlannedRole, SubmissionPlan};
pub(crate) use tensorboard::{TensorboardState, read_tensorboard};
pub(crate) use why::{explain_job, needs_records};
