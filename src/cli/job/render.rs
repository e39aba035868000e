//! `infra job render`: the objects of a job, without a cluster.

use clap::Args;
use serde_json::json;

use super::objects::mention_objects;
use super::target::{JobFileOptions, blueprint_of, parse_run_name, scripts_of};
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::cli::terminal::printer::Output;
use crate::document::write_yaml;
use crate::job::code::read_code;
use crate::job::values::RunName;
use crate::job::{ClusterFacts, Run, decide, objects_of};

/// Print the Kubernetes objects of a job
///
/// Needs no cluster and no network; the same file gives the same objects. If there is a cluster.yaml, its pools are checked too. Only
/// `infra job submit` knows when a run begins: in rendered objects the deadline is that of one attempt.
#[derive(Args, Debug)]
pub(super) struct RenderArguments {
    #[command(flatten)]
    job: JobFileOptions,
    /// A name for the run, which has a directory of its own; by default the digest of the job
    #[arg(long, value_name = "NAME", value_parser = parse_run_name)]
    run: Option<RunName>,
}

pub(super) fn run(arguments: &RenderArguments, session: &Session) -> anyhow::Result<Exit> {
    let blueprint = blueprint_of(session)?;
    let job = arguments.job.load(session, blueprint.as_ref())?;
    mention_objects(&job, session);
    let code = read_code(&arguments.job.path(session)?, &job)?;
    let workload =
        decide(&job, code.as_ref(), ClusterFacts::of_blueprint(blueprint.as_ref()), &scripts_of(session)?);
    let objects = objects_of(&Run::rendered(workload, arguments.run.clone()));
    match session.output {
        Output::Json => {
            session.printer.foreign_json(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?;
        }
        Output::Text | Output::Markdown | Output::Html => {
            let documents: Result<Vec<String>, _> = objects.iter().map(write_yaml).collect();
            session.printer.file(&documents?.join("---\n"))?;
        }
    }
    Ok(Exit::Done)
}
