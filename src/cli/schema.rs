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
        Shape::Events => schema_of_document::<TimedEvent<'_>>(),
        Shape::Status => schema_of_document::<StatusDocument>(),
        Shape::List => schema_of_document::<ClusterList>(),
        Shape::Drift => schema_of_document::<DriftReport>(),
        Shape::Plan => schema_of_document::<PlanDocument>(),
        Shape::DestroyPlan => schema_of_document::<DestroyPlan>(),
        Shape::Validate => schema_of_document::<ValidateDocument<'_>>(),
        Shape::Render => schema_of_document::<RenderDocument>(),
        Shape::Certificates => schema_of_document::<CertificatesDocument>(),
        Shape::Cost => schema_of_document::<CostDocument>(),
        Shape::Lock => schema_of_document::<LockedImage>(),
        Shape::Logs => schema_of_document::<LogDocument>(),
        Shape::JobStatus => schema_of_document::<JobReport>(),
        Shape::JobDryRun => schema_of_document::<SubmissionPlan>(),
        Shape::JobWhy => schema_of_document::<JobExplanation>(),
        Shape::JobRuns => schema_of_document::<Vec<RunReport>>(),
        Shape::JobList => schema_of_document::<Vec<JobReport>>(),
        Shape::JobLint => schema_of_document::<Vec<LintDocument>>(),
        Shape::GpuCheck => schema_of_document::<Vec<NodeGpus>>(),
        Shape::NcclCheck => schema_of_document::<NcclCheckReport>(),
        Shape::Transfer => schema_of_document::<TimedTransfer>(),
        Shape::DataList => schema_of_document::<Vec<RemoteEntry>>(),
        Shape::SecretList => schema_of_document::<Vec<SecretReport>>(),
        Shape::TeamList => schema_of_document::<Vec<TeamReport>>(),
        Shape::UserList => schema_of_document::<Vec<UserReport>>(),
    }
}

fn schema_of_document<T: Document>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(close_schema_objects);
    settings.into_generator().into_root_schema_for::<T>()
}
