//! Assets and AWS into a running cluster: what exists, what would change, applying it, and reporting the result.
//!
//! In: a blueprint, its assets and clients. Out: AWS as cluster.yaml describes it, events on the way, one cause of a failure. The state
//! of a deployment is what CloudFormation reports; nothing is stored here, so any run can be killed and started again.

pub(crate) mod destroy;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod explain;
pub(crate) mod inputs;
pub(crate) mod machines;
pub(crate) mod plan;
pub(crate) mod preflight;
pub(crate) mod run;
pub(crate) mod stack;
pub(crate) mod state;
pub(crate) mod status;
#[cfg(test)]
mod test_run;
pub(crate) mod up;

pub use destroy::{
    DestroyOptions, DestroyOutcome, DestroyPlan, DestroyScope, DestroyTarget, audit, destroy, plan_destroy,
};
pub use error::DeployError;
pub use event::{
    DestroyItem, Event, Evidence, FailedResource, FailureKind, FailureReport, Hint, Leftover, Progress,
    RecordState, Refusal, Resource, ResourceKind, StackOperation, Stuck,
};
pub use explain::hint::hint_for;
pub use explain::operation_events::is_echo;
pub use inputs::Inputs;
pub use inputs::image_choice::{ChosenImage, ImageChoice, ImageNotice};
pub use inputs::image_lock::{ImageLock, LockedImage};
pub use inputs::s3_uri_choice::ChosenS3Uri;
pub use machines::evidence::console_evidence;
pub use machines::node_logs::{NodeLog, read_log};
pub use machines::node_rollout::NodeRollout;
pub use plan::change_preview::refine_plan;
pub use plan::comparison::{PropertyChange, ResourceAction, ResourceChange};
pub use plan::disruption::{disrupted_jobs, pools_losing_nodes};
pub use plan::preparation::{PlanOptions, Prepared, prepare};
pub use plan::user_data_change::{FileChange, TextChange, explain_user_data};
pub use plan::{Plan, StackAction, StackPlan};
pub use run::Run;
pub use stack::roll_back::roll_back;
pub use state::description::describe_resource;
pub use state::desired::s3_uri_in_use;
pub use state::live::{LiveCluster, LiveStack};
pub use state::public_name::load_balancer;
pub use status::report::StatusSources;
pub use status::shape::{AbsentCluster, CertificateState, StatusDocument, StatusReport};
pub use up::{Consent, Up, UpOptions, WaitFor};
