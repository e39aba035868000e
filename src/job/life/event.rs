//! What happens while a job is submitted and runs, as the caller shows it.

use super::report::JobReport;
use super::restarts::Restarts;
use super::state::JobState;
use crate::kube::{Contact, ObjectName};

/// What happens while a job is submitted and runs.
#[derive(Clone, Debug)]
pub(crate) enum JobEvent {
    /// The same job exists and is not over; it is followed instead of created.
    Attached(JobState),
    /// The job that exists is being deleted.
    Deleting(JobState),
    /// Pods of the deleted job have not terminated yet.
    Terminating(Vec<ObjectName>),
    /// The run could not be added to the list of runs.
    NotRecorded(String),
    /// An object was applied.
    Applied(ObjectName),
    /// The data is being imported.
    Importing,
    /// The import waits for something.
    ImportWaits(String),
    /// The import was restarted.
    ImportRestarted(Restarts),
    /// The data is imported, and training begins.
    Imported,
    /// The API stopped answering, or answers again.
    Contact(Contact),
    /// The state of the job or of a replica changed.
    Changed(Box<JobReport>),
}
