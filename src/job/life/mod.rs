//! A job's life through the Kubernetes API: submitted, watched, read, fetched, removed.
//!
//! Nothing is kept here: what the API holds is the only state, and every step can be taken again.

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
