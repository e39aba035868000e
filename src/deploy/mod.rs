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
#[cfg(test)]
mod test_stack;
pub(crate) mod up;

pub(crate) use destroy::{
    DestroyOptions, DestroyOutcome, DestroyPlan, DestroyScope, DestroyTarget, audit_destroyed_cluster,
    destroy_cluster, plan_destroy,
};
pub(crate) use error::DeployError;
pub(crate) use event::{
    BlockPhase, DestroyItem, DisruptedJob, Event, Evidence, HeldPool, Holder, MachineAction, MachineChange,
    MachinePlan, MachineState, PlannedMachines, PlannedStack, PoolBlock, Progress, ResourceKind, Service,
    StackOperation,
};
pub(crate) use explain::hint::hint_for;
pub(crate) use explain::operation_events::is_echo;
pub(crate) use inputs::Inputs;
pub(crate) use inputs::capacity_block::PoolBlocks;
pub(crate) use inputs::image_choice::{ChosenImage, ImageChoice, ImageNotice, ImageOrigin};
pub(crate) use inputs::image_lock::{ImageLock, LockedImage};
pub(crate) use inputs::lock_renewal::RenewedLock;
pub(crate) use inputs::s3_uri_choice::ChosenS3Uri;
pub(crate) use machines::evidence::console_evidence;
pub(crate) use machines::node_logs::read_log;
pub(crate) use machines::node_rollout::NodeRollout;
pub(crate) use plan::change_preview::refine_plan;
pub(crate) use plan::comparison::{PropertyChange, ResourceAction, ResourceChange};
pub(crate) use plan::disruption::{disrupted_jobs, plan_machines, pools_losing_machines};
pub(crate) use plan::pool_end::find_wrong_pool_ends;
pub(crate) use plan::preparation::{PlanOptions, Prepared, prepare_deployment};
pub(crate) use plan::user_data_change::{FileChange, TextChange, explain_user_data};
pub(crate) use plan::{Plan, StackAction, StackPlan};
pub(crate) use run::Run;
pub(crate) use stack::roll_back::roll_back;
pub(crate) use state::charges::planned_charges;
pub(crate) use state::description::describe_resource;
pub(crate) use state::desired::{DesiredStack, s3_uri_in_use};
pub(crate) use state::image_parameters::images_in_use;
pub(crate) use state::live::LiveCluster;
pub(crate) use state::public_name::load_balancer;
pub(crate) use status::drift::{
    DriftKind, DriftReport, DriftVerdict, DriftedResource, PropertyDrift, StackDrift, detect_drift,
};
pub(crate) use status::list::shape::{ClusterList, ListedCluster, MachinesState};
pub(crate) use status::list::{Listing, RegionPrices, list_region, list_regions};
pub(crate) use status::prometheus::{PrometheusState, read_prometheus};
pub(crate) use status::report::StatusSources;
pub(crate) use status::schedule::ScheduleState;
pub(crate) use status::shape::{
    AbsentCluster, CertificateState, EtcdState, ImageState, NodesState, SnapshotState, StatusDocument,
    StatusReport,
};
pub(crate) use status::snapshot::snapshot_age_in_words;
pub(crate) use up::{Consent, Up, UpOptions, WaitFor};
