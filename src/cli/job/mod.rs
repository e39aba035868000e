//! `infra job`: training jobs, one file a command.

mod render;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Session;
use super::exit::Exit;
use crate::blueprint::Blueprint;
use crate::job::{self, LoadedJob, Scripts};
use crate::render::Templates;

/// Run training jobs on the cluster: write, check, submit, watch, fetch, remove
#[derive(Args, Debug)]
pub(super) struct JobArguments {
    #[command(subcommand)]
    command: JobCommand,
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    Render(render::RenderArguments),
}

pub(super) fn run(arguments: &JobArguments, session: &Session) -> anyhow::Result<Exit> {
    match &arguments.command {
        JobCommand::Render(arguments) => render::run(arguments, session),
    }
}

/// Which job file a command is about.
#[derive(Args, Debug)]
struct JobFileOptions {
    /// The job file
    #[arg(short, long, value_name = "FILE", default_value = "job.yaml")]
    file: PathBuf,
}

impl JobFileOptions {
    /// The job, judged by the cluster too where there is a cluster.yaml, after its warnings were shown.
    fn load(&self, session: &Session, blueprint: Option<&Blueprint>) -> anyhow::Result<job::TrainingJob> {
        let path = if self.file.is_absolute() {
            self.file.clone()
        } else {
            session.assets.file(&self.file.to_string_lossy())
        };
        let LoadedJob { job, warnings } = job::load(&path, blueprint)?;
        if !warnings.list().is_empty() {
            session.printer.note(&warnings);
        }
        Ok(job)
    }
}

/// The cluster, if the directory describes one.
fn blueprint_of(session: &Session) -> anyhow::Result<Option<Blueprint>> {
    if !session.assets.cluster_file().exists() {
        return Ok(None);
    }
    Ok(Some(Blueprint::new(session.assets.load()?.cluster)?))
}

/// The scripts that pods run, some of them possibly the team's own.
fn scripts_of(session: &Session) -> anyhow::Result<Scripts> {
    let templates = Templates::new(&session.assets.read_overrides()?)?;
    Ok(Scripts::new(|name| templates.plain(name).map(str::to_owned)))
}
