//! Assets and AWS into a running cluster: what is there, what would change, doing it, and telling how it went.
//!
//! In: a blueprint, its assets and clients. Out: AWS as cluster.yaml wants it, events on the way, one cause when it fails. The state
//! of a deployment is what CloudFormation says; nothing is kept here, so that any run can be killed and begun again.

mod change_preview;
mod comparison;
mod cost_estimate;
mod credential_digests;
mod description;
mod desired;
mod destroy;
mod disk_grant;
mod endangered;
mod evidence;
mod failure;
mod failure_report;
mod follow;
#[cfg(test)]
mod follow_tests;
mod graph;
mod hint;
mod image_lock;
mod image_source;
mod launches;
mod live;
mod means;
mod node_logs;
mod node_rollout;
mod plan;
mod policy;
mod pool_launches;
mod pool_size;
pub mod preflight;
mod progress;
mod protection;
mod public_record;
mod readiness;
mod refusal;
mod rollback;
mod root_cause;
mod settings;
mod stack_deletion;
mod stack_run;
mod stack_status;
mod status_report;
mod status_shape;
mod taken_away;
mod template_upload;
mod template_values;
#[cfg(test)]
mod test_work;
mod up;
mod upload;

mod user_data_change;
mod work;
mod zone_balance;

pub use change_preview::refine_plan;
pub use comparison::{PropertyChange, ResourceAction, ResourceChange};
pub use cost_estimate::{CostEstimate, estimate_costs};
pub use description::describe_resource;
pub use destroy::{
    BACKUP, DestroyItem, DestroyOptions, DestroyPlan, DestroyTarget, FILE_SYSTEM, Found, Leftover, Remains,
    audit, destroy,
};
pub use endangered::{endangered_jobs, pools_losing_nodes};
pub use evidence::console_evidence;
pub use failure::{DeployError, Evidence, FailedResource, FailureReport};
pub use hint::{FailureKind, Hint, hint_for};
pub use image_lock::{ImageLock, LockedImage};
pub use live::{LiveCluster, LiveStack};
pub use means::Means;
pub use node_logs::{NodeLog, read_log};
pub use node_rollout::replace_outdated;
pub use plan::{Plan, StackAction, StackPlan};
pub use policy::{Policy, operator_policies};
pub use progress::{Event, Progress, RecordState, StackOperation};
pub use refusal::Refusal;
pub use rollback::roll_back;
pub use root_cause::is_echo;
pub use settings::ImageChoice;
pub use stack_deletion::Stuck;
pub use status_report::StatusSources;
pub use status_shape::{AbsentCluster, CertificateState, StatusDocument, StatusReport};
pub use up::{
    Prepared, Sources, UpOptions, WaitFor, apply, live_place, load_balancer, prepare, wait_for_nodes,
};
pub use upload::boot_objects;
pub use user_data_change::{FileChange, TextChange, explain_user_data};
pub use work::Work;
