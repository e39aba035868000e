//! `infra schema`: the JSON Schemas of cluster.yaml and of what `--output json` prints.

use clap::{Args, ValueEnum};
use schemars::Schema;
use schemars::generate::SchemaSettings;

use super::certificates::CertificatesDocument;
use super::claim::TimedTransfer;
use super::closed_schema::close_schema_objects;
use super::cost::CostDocument;
use super::document::Document;
use super::exit::Exit;
use super::job::LintDocument;
use super::logs::LogDocument;
use super::plan_view::PlanDocument;
use super::progress_view::TimedEvent;
use super::render::RenderDocument;
use super::session::Session;
use super::validate::ValidateDocument;
use crate::config;
use crate::deploy::{ClusterList, DestroyPlan, DriftReport, LockedImage, StatusDocument};
use crate::job::data::RemoteEntry;
use crate::job::life::{JobExplanation, JobReport, NcclCheckReport, NodeGpus, RunReport, SubmissionPlan};
use crate::people::{SecretReport, TeamReport, UserReport};

/// Print the JSON Schema of cluster.yaml, or of what a command prints with `--output json`
///
/// For the YAML language server, save the schema of cluster.yaml as cluster.schema.json, and begin cluster.yaml with
/// `# yaml-language-server: $schema=cluster.schema.json`.
///
/// The schemas of output describe this version, and refuse unknown fields, so that a test notices a new one. Programs should ignore
/// unknown fields: later versions add fields, and never delete, rename or change one.
#[derive(Args, Debug)]
pub(super) struct SchemaArguments {
    /// The document to describe: a file, or the output of a command with `--output json`
    #[arg(value_enum, value_name = "SHAPE", default_value_t = Shape::Cluster)]
    shape: Shape,
}

/// A document that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// cluster.yaml
    Cluster,
    /// Each line of `up`, `rollback` and `destroy`
    Events,
    /// `status`
    Status,
    /// `list`
    List,
    /// `drift`
    Drift,
    /// `plan`
    Plan,
    /// `destroy --plan-only`
    DestroyPlan,
    /// `validate`
    Validate,
    /// `render`
    Render,
    /// `certificates`
    Certificates,
    /// `cost`
    Cost,
    /// `lock`
    Lock,
    /// `logs`
    Logs,
    /// `job status`, and the end of `job submit`
    JobStatus,
    /// `job submit --dry-run`
    JobDryRun,
    /// `job why`
    JobWhy,
    /// `job runs`
    JobRuns,
    /// `job list`
    JobList,
    /// `job lint`
    JobLint,
    /// `job gpu-check`
    GpuCheck,
    /// `job nccl-check`
    NcclCheck,
    /// `data put`, `data get`, `job fetch`, uploads of `job submit`
    Transfer,
    /// `data ls`
    DataList,
    /// `secret list`
    SecretList,
    /// `team list`
    TeamList,
    /// `user list`
    UserList,
}

impl Document for CertificatesDocument {}
impl Document for ClusterList {}
impl Document for CostDocument {}
impl Document for DestroyPlan {}
impl Document for DriftReport {}
impl Document for JobExplanation {}
impl Document for JobReport {}
impl Document for LockedImage {}
impl Document for LogDocument {}
impl Document for NcclCheckReport {}
impl Document for PlanDocument {}
impl Document for RenderDocument {}
impl Document for StatusDocument {}
impl Document for SubmissionPlan {}
impl Document for TimedEvent<'_> {}
impl Document for TimedTransfer {}
impl Document for ValidateDocument<'_> {}
impl Document for Vec<JobReport> {}
impl Document for Vec<LintDocument> {}
impl Document for Vec<NodeGpus> {}
impl Document for Vec<RemoteEntry> {}
impl Document for Vec<RunReport> {}
impl Document for Vec<SecretReport> {}
impl Document for Vec<TeamReport> {}
impl Document for Vec<UserReport> {}

pub(super) fn run(arguments: &SchemaArguments, session: &Session) -> anyhow::Result<Exit> {
    session.printer.foreign_json(&schema_of_shape(arguments.shape))?;
    Ok(Exit::Done)
}

fn schema_of_shape(shape: Shape) -> Schema {
    match shape {
        Shape::Cluster => config::schema(),
        Shape::Events => printed::<TimedEvent<'_>>(),
        Shape::Status => printed::<StatusDocument>(),
        Shape::List => printed::<ClusterList>(),
        Shape::Drift => printed::<DriftReport>(),
        Shape::Plan => printed::<PlanDocument>(),
        Shape::DestroyPlan => printed::<DestroyPlan>(),
        Shape::Validate => printed::<ValidateDocument<'_>>(),
        Shape::Render => printed::<RenderDocument>(),
        Shape::Certificates => printed::<CertificatesDocument>(),
        Shape::Cost => printed::<CostDocument>(),
        Shape::Lock => printed::<LockedImage>(),
        Shape::Logs => printed::<LogDocument>(),
        Shape::JobStatus => printed::<JobReport>(),
        Shape::JobDryRun => printed::<SubmissionPlan>(),
        Shape::JobWhy => printed::<JobExplanation>(),
        Shape::JobRuns => printed::<Vec<RunReport>>(),
        Shape::JobList => printed::<Vec<JobReport>>(),
        Shape::JobLint => printed::<Vec<LintDocument>>(),
        Shape::GpuCheck => printed::<Vec<NodeGpus>>(),
        Shape::NcclCheck => printed::<NcclCheckReport>(),
        Shape::Transfer => printed::<TimedTransfer>(),
        Shape::DataList => printed::<Vec<RemoteEntry>>(),
        Shape::SecretList => printed::<Vec<SecretReport>>(),
        Shape::TeamList => printed::<Vec<TeamReport>>(),
        Shape::UserList => printed::<Vec<UserReport>>(),
    }
}

fn schema_of_document<T: Document>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(close);
    settings.into_generator().into_root_schema_for::<T>()
}
