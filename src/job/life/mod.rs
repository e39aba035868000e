//! A job's life through the Kubernetes API: submit, follow, report, fetch, delete.
//!
//! In: a run, and the API server. Out: reports and events. No state is kept here: the API holds all of it, and every step can be retried.

mod error;
mod event;
mod fetch;
mod follow;
mod gpu_check;
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

pub use error::JobError;
pub use event::JobEvent;
pub use fetch::{FetchSource, FetchTarget, Reader};
pub use follow::{Followed, follow};
pub use gpu_check::{GpuCheck, NodeGpus};
pub use precondition::Precondition;
pub use removal::{removal_of, remove_job};
pub use replica::{ReplicaPhase, ReplicaReport};
pub use report::JobReport;
pub use state::JobState;
pub use submission::{REMOVAL_LIMIT, Submission, SubmitRequest};
