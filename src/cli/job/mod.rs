//! `infra job`: training jobs, one file per command.

mod all_logs;
mod attempt_log;
mod code;
mod delete;
mod dry_run;
mod fetch;
mod gpu_check;
mod init;
mod lint;
mod list;
mod log_progress;
mod logs;
mod nccl_check;
mod objects;
mod pod_log;
mod render;
mod runs;
mod schema;
mod shell;
mod status;
mod submission_view;
mod submit;
mod target;
mod tensorboard;
mod why;

use clap::{Args, Subcommand};

pub(super) use lint::LintDocument;
pub(super) use target::{job_namespace, random_mark, scripts_of};

use super::exit::Exit;
use super::session::Session;
use crate::cli::cluster_options::ClusterOptions;

const ORDER: &str = "\
Usual order:
  infra job init --framework pytorch      writes job.yaml
  infra job lint                          checks it, with the cluster's pools
  infra job submit                        imports data, trains, and follows
  infra job why                           explains it: what failed or is waited for, and what to do
  infra job shell                         opens a shell in a replica that runs
  infra job fetch                         downloads the results
  infra job delete                        deletes the job; files stay";

/// Run training jobs on the cluster: write, check, submit, watch, fetch, delete
#[derive(Args, Debug)]
#[command(after_help = ORDER)]
pub(super) struct JobArguments {
    #[command(flatten)]
    cluster: ClusterOptions,
    #[command(subcommand)]
    command: JobCommand,
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    Init(init::InitArguments),
    Render(render::RenderArguments),
    Lint(lint::LintArguments),
    Submit(submit::SubmitArguments),
    Status(status::StatusArguments),
    Logs(logs::LogsArguments),
    Why(why::WhyArguments),
    Shell(shell::ShellArguments),
    Tensorboard(tensorboard::TensorboardArguments),
    Runs(runs::RunsArguments),
    Fetch(fetch::FetchArguments),
    Delete(delete::DeleteArguments),
    List(list::ListArguments),
    GpuCheck(gpu_check::GpuCheckArguments),
    NcclCheck(nccl_check::NcclCheckArguments),
    Schema(schema::SchemaArguments),
}

pub(super) fn run(arguments: &JobArguments, session: &Session) -> anyhow::Result<Exit> {
    let session = &session.with_cluster(&arguments.cluster);
    match &arguments.command {
        JobCommand::Init(arguments) => init::run(arguments, session),
        JobCommand::Render(arguments) => render::run(arguments, session),
        JobCommand::Lint(arguments) => lint::run(arguments, session),
        JobCommand::Submit(arguments) => submit::run(arguments, session),
        JobCommand::Status(arguments) => status::run(arguments, session),
        JobCommand::Logs(arguments) => logs::run(arguments, session),
        JobCommand::Why(arguments) => why::run(arguments, session),
        JobCommand::Shell(arguments) => shell::run(arguments, session),
        JobCommand::Tensorboard(arguments) => tensorboard::run(arguments, session),
        JobCommand::Runs(arguments) => runs::run(arguments, session),
        JobCommand::Fetch(arguments) => fetch::run(arguments, session),
        JobCommand::Delete(arguments) => delete::run(arguments, session),
        JobCommand::List(arguments) => list::run(arguments, session),
        JobCommand::GpuCheck(arguments) => gpu_check::run(arguments, session),
        JobCommand::NcclCheck(arguments) => nccl_check::run(arguments, session),
        JobCommand::Schema(arguments) => schema::run(arguments, session),
    }
}
