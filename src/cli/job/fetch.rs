//! `infra job fetch`: downloads a job's results.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::target::{JobNameOptions, JobTarget, parse_run_name, random_mark, scripts_of};
use crate::cli::aws_access::block_on;
use crate::cli::claim::{ClaimAccess, download};
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::job::data::{DataError, GetRequest, Pattern, SOURCE_FILE};
use crate::job::life::JobReport;
use crate::job::values::RunName;
use crate::job::{OUTPUT_DIRECTORY, run_directory};
use crate::kube::ApiServer;

/// Download a job's results
///
/// This is `infra data get` of a run's output: through a short-lived pod and the Kubernetes API, by content. Run again, it downloads what is
/// missing or has changed; a directory with anything else in it is refused. Links that lead out of the directory, pipes and devices are
/// left out and named; modes follow your umask. Interrupted, the same command continues (exit 5).
#[derive(Args, Debug)]
pub(super) struct FetchArguments {
    #[command(flatten)]
    job: JobNameOptions,
    /// Write to this directory; by default results/NAME beside cluster.yaml
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Download this directory of the run instead of output; `.` means all of it
    #[arg(long, value_name = "DIR", default_value = OUTPUT_DIRECTORY, value_parser = parse_path)]
    path: String,
    /// The run; by default that of the job on the cluster
    #[arg(long, value_name = "RUN", value_parser = parse_run_name)]
    run: Option<RunName>,
    /// Only files whose name fits, such as '*.pt' or 'pass-1/**'; may be given several times
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// The image of the pod that mounts the claim, if the usual one cannot be pulled; it needs python3
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

pub(super) fn run(arguments: &FetchArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let directory = match &arguments.to {
        Some(directory) => {
            session.assets.refuse_reserved(directory)?;
            directory.clone()
        }
        None => session.assets.results_directory(&target.name)?,
    };
    let cluster = TargetCluster::find(session)?;
    let api = &cluster.api;
    let (scripts, mark) = (scripts_of(session)?, random_mark()?);
    block_on(async {
        let results = find_results(api, &target, arguments).await?;
        let source = format!("{}/{}/{}\n", target.namespace, results.claim, results.path);
        expect_same_source(&directory, &source)?;
        let known = cluster.read_facts().await?;
        let (parts, image) = ((api, known.facts(), &scripts), arguments.image.clone());
        let access = ClaimAccess::new(parts, &target.namespace, &results.claim, image, mark);
        let request = GetRequest {
            remote: format!("{}/", results.path).parse().map_err(Refusal::invalid)?,
            directory: directory.clone(),
            include: arguments.include.iter().map(|text| Pattern::new(text)).collect(),
            mark: Some((SOURCE_FILE, source)),
        };
        download(&access, &request, session).await.map_err(|error| explain_missing(error, &target.name))
    })
}

/// The location of results.
struct Results {
    claim: String,
    path: String,
}

fn parse_path(text: &str) -> Result<String, String> {
    if text.split('/').any(|part| part == "..") {
        return Err("it is outside of the job's directory".to_owned());
    }
    Ok(text.to_owned())
}

/// Refuses a directory with files that were not fetched from here.
fn expect_same_source(directory: &Path, source: &str) -> anyhow::Result<()> {
    let is_empty = match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).with_context(|| format!("reading {}", directory.display())),
    };
    if is_empty || std::fs::read_to_string(directory.join(SOURCE_FILE)).is_ok_and(|found| found == source) {
        return Ok(());
    }
    Err(Refusal::new(format!("{} holds files that are not of this run", directory.display()))
        .help("`--to DIR` names another directory; what is there is not touched")
        .into())
}

/// Finds the results: those of the job on the cluster, or of the run that is named.
async fn find_results(
    api: &ApiServer,
    target: &JobTarget,
    arguments: &FetchArguments,
) -> anyhow::Result<Results> {
    let (claim, directory) = match (&target.job, &arguments.run) {
        (Some(job), Some(run)) => {
            let directory = format!("{}/{}", job.storage.path, run_directory(run.as_str()));
            (job.storage.claim.to_string(), directory)
        }
        (_, run) => {
            let report = JobReport::read(api, &target.namespace, &target.name).await?;
            match run {
                Some(run) => (report.claim, format!("{}/{}", report.path, run_directory(run.as_str()))),
                None => (report.claim, report.directory),
            }
        }
    };
    let below = arguments.path.split('/').filter(|part| !matches!(*part, "" | "."));
    let path = [directory.as_str()].into_iter().chain(below).collect::<Vec<_>>().join("/");
    Ok(Results { claim, path })
}

/// A job that has written nothing has no directory.
fn explain_missing(error: anyhow::Error, name: &str) -> anyhow::Error {
    match error.downcast_ref::<DataError>() {
        Some(DataError::Missing { path, claim }) => Refusal::new(format!(
            "the results of job '{name}' cannot be read: there is no directory {path} on the claim {claim}"
        ))
        .help("has the job written anything yet? `--path DIR` names another directory of the job, `--path .` all of it")
        .into(),
        _ => error,
    }
}
