//! Which job a command is about, and the cluster it runs on.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand;
use clap::Args;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::blueprint::Blueprint;
use crate::cli::failure::Refusal;
use crate::cli::session::Session;
use crate::cli::target_cluster::{TargetCluster, default_namespace};
use crate::cli::terminal::printer::Printer;
use crate::document::{Fault, Loaded};
use crate::hexadecimal::hexadecimal;
use crate::job::life::{JobError, JobReport, ReplicaReport};
use crate::job::values::RunName;
use crate::job::{self, Scripts, TrainingJob};
use crate::render::Templates;

const DEFAULT_FILE: &str = "job.yaml";

/// Which job file.
#[derive(Args, Debug)]
pub(super) struct JobFileOptions {
    /// The job file
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
}

impl JobFileOptions {
    /// Where the job file is: relative names are relative to the directory of cluster.yaml.
    pub(super) fn path(&self, session: &Session) -> anyhow::Result<PathBuf> {
        Ok(session.assets.named_file(&self.file)?)
    }

    /// The job, checked against the cluster too if one is known, after its warnings were printed.
    pub(super) fn load(
        &self,
        session: &Session,
        blueprint: Option<&Blueprint>,
    ) -> anyhow::Result<TrainingJob> {
        let Loaded { value: job, warnings } = job::load(&self.path(session)?, blueprint)?;
        if !warnings.list().is_empty() {
            session.printer.note(&warnings);
        }
        Ok(job)
    }

    /// As [`JobFileOptions::load`], for a cluster whose kubeconfig may say which namespace is meant where the file names none.
    pub(super) fn load_for(&self, cluster: &TargetCluster, session: &Session) -> anyhow::Result<TrainingJob> {
        let mut job = self.load(session, cluster.blueprint())?;
        if let Some(namespace) = cluster.namespace.as_ref().filter(|_| !job.namespace.is_written()) {
            job.namespace.value = namespace
                .parse()
                .map_err(|fault: Fault| Refusal::invalid(format!("the kubeconfig: {fault}")))?;
        }
        Ok(job)
    }
}

/// Which job that may be there already.
#[derive(Args, Debug)]
pub(super) struct JobNameOptions {
    /// The name of the job; by default that of the job file
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    place: JobPlaceOptions,
}

/// Where a job is, whatever its name.
#[derive(Args, Debug)]
pub(super) struct JobPlaceOptions {
    /// The namespace of the job; by default that of the job file, of the kubeconfig, or default
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The job file
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
}

/// A job by its name.
pub(super) struct JobTarget {
    pub(super) name: String,
    pub(super) namespace: String,
    /// What the job file says, if it is about this job.
    pub(super) job: Option<TrainingJob>,
}

impl JobNameOptions {
    /// The job that is meant. A file is only needed if no name is given.
    pub(super) fn resolve(&self, session: &Session) -> anyhow::Result<JobTarget> {
        self.place.resolve(self.name.as_deref(), session)
    }
}

impl JobPlaceOptions {
    /// The job of a name, or that of the job file.
    pub(super) fn resolve(&self, name: Option<&str>, session: &Session) -> anyhow::Result<JobTarget> {
        let file = session.assets.named_file(&self.file)?;
        let Some(name) = name else {
            let job = job::load(&file, None)?.value;
            let namespace = self.namespace_of(Some(&job), session)?;
            return Ok(JobTarget { name: job.name.to_string(), namespace, job: Some(job) });
        };
        let job = job::load(&file, None).ok().map(|loaded| loaded.value);
        let job = job.filter(|job| job.name.as_str() == name);
        let namespace = self.namespace_of(job.as_ref(), session)?;
        Ok(JobTarget { name: name.to_owned(), namespace, job })
    }

    fn namespace_of(&self, job: Option<&TrainingJob>, session: &Session) -> anyhow::Result<String> {
        let written = job.filter(|job| job.namespace.is_written()).map(|job| job.namespace.value.to_string());
        match self.namespace.clone().or(written) {
            Some(namespace) => Ok(namespace),
            None => default_namespace(session),
        }
    }
}

/// The replica of a number, of the role or of those that train.
pub(super) fn find_replica<'a>(
    report: &'a JobReport,
    role: Option<&str>,
    index: u32,
) -> Result<&'a ReplicaReport, Refusal> {
    report.replica(role, index).ok_or_else(|| {
        let what = role.map_or_else(|| "replica".to_owned(), |role| format!("replica of role {role}"));
        Refusal::new(format!("job '{}' has no {what} with number {index}", report.name))
            .help(format!("`infra job status {}` lists its replicas", report.name))
    })
}

/// The namespace of the job file, if there is one that can be read and has one, or the usual one.
pub(in crate::cli) fn job_namespace(session: &Session) -> anyhow::Result<String> {
    let file = session.assets.named_file(Path::new(DEFAULT_FILE))?;
    let job = job::load(&file, None).ok().map(|loaded| loaded.value);
    match job.filter(|job| job.namespace.is_written()) {
        Some(job) => Ok(job.namespace.value.to_string()),
        None => default_namespace(session),
    }
}

/// The cluster, if the directory describes one.
pub(super) fn blueprint_of(session: &Session) -> anyhow::Result<Option<Blueprint>> {
    if !session.assets.has_cluster_file()? {
        return Ok(None);
    }
    Ok(Some(Blueprint::new(session.assets.load_cluster()?.value)?))
}

/// The scripts that pods run, some of them possibly the team's own.
pub(in crate::cli) fn scripts_of(session: &Session) -> anyhow::Result<Scripts> {
    let templates = Templates::new(&session.assets.read_overrides()?)?;
    Ok(Scripts::new(|name| templates.plain(name).map(str::to_owned)))
}

/// Warns only: what cannot be deleted at the end is deleted by Kubernetes later.
pub(super) fn warn_if_not_removed(result: Result<(), JobError>, what: &str, printer: &Printer) {
    if let Err(error) = result {
        printer.warning(format_args!("{what} could not be deleted: {error}"));
    }
}

/// The name of a run, as an argument.
pub(super) fn parse_run_name(text: &str) -> Result<RunName, String> {
    text.parse().map_err(|fault: Fault| fault.to_string())
}

/// The name of a new run: later runs come later in a list, and two in one second differ.
pub(super) fn run_name() -> anyhow::Result<RunName> {
    let second = format_description!("[year][month][day]-[hour][minute][second]");
    let name = format!("{}-{}", OffsetDateTime::now_utc().format(second)?, random_digits::<2>()?);
    name.parse().map_err(|fault: Fault| Refusal::new(fault.to_string()).into())
}

/// The time now, in seconds since 1970.
pub(super) fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A few random letters and digits that distinguish pods.
pub(in crate::cli) fn random_mark() -> anyhow::Result<String> {
    random_digits::<4>()
}

fn random_digits<const BYTES: usize>() -> anyhow::Result<String> {
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).map_err(|_| Refusal::new("this machine provides no random numbers"))?;
    Ok(hexadecimal(&bytes))
}
