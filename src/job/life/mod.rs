//! A job's life through the Kubernetes API: submitted, watched, read, fetched, removed.
//!
//! Nothing is kept here: what the API holds is the only state, and every step can be taken again.

mod error;
mod fetch;
mod follow;
mod gpu_check;
mod preconditions;
mod removal;
mod replica;
mod report;
mod room;
mod stall;
mod state;
mod submit;

pub use error::JobError;
pub use fetch::{FetchSource, FetchTarget, Reader};
pub use follow::{Followed, follow};
pub use gpu_check::{GpuCheck, NodeGpus};
pub use preconditions::{Precondition, check_preconditions};
pub use removal::{expect_no_pods, removal_of, remove_job, remove_leftovers};
pub use replica::ReplicaReport;
pub use report::JobReport;
pub use state::JobState;
pub use submit::{JobEvent, Live, already_there, find_live, submit};
