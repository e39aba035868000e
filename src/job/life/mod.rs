//! A job's life through the Kubernetes API: submitted, watched, read, fetched, removed.
//!
//! Nothing is kept here: what the API holds is the only state, and every step can be taken again.

mod error;
mod fetch;
mod gpu_check;
mod preconditions;
mod removal;
mod report;
mod submit;

pub use error::JobError;
pub use fetch::{FetchSource, FetchTarget, Reader};
pub use gpu_check::{GpuCheck, NodeGpus};
pub use preconditions::{Precondition, check_preconditions};
pub use removal::{removal_of, remove_job};
pub use report::{JobReport, JobState, ReplicaReport};
pub use submit::{Followed, JobEvent, Submission, SubmitOptions, follow, submit};
