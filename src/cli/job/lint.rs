//! `infra job lint`: everything that would keep a job from running, found without a cluster or, with `--online`, on it too.

use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::objects::mention_objects;
use super::target::{JobFileOptions, blueprint_of, scripts_of};
use crate::blueprint::Blueprint;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::Output;
use crate::document::{LoadError, Problem, Problems, Severity, read_text};
use crate::job::code::read_code;
use crate::job::life::{Precondition, check_preconditions};
use crate::job::lint::{LintFinding, lint_objects, parse_objects};
use crate::job::{ClusterFacts, Run, decide, objects_of, validate};

/// Check a job file, or Kubernetes objects of your own
///
/// Finds what the API server would refuse, and what it accepts but cannot work. If there is a cluster.yaml, its pools are
/// checked too; with --online, so is what `submit` needs of the running cluster: machines, claim, JobSet, queue. Exits with 2 if there
/// are findings.
#[derive(Args, Debug)]
pub(super) struct LintArguments {
    /// Files with Kubernetes objects; the job file if none is given
    #[arg(value_name = "OBJECTS")]
    objects: Vec<PathBuf>,
    /// Check the running cluster too
    #[arg(long, conflicts_with = "objects")]
    online: bool,
    #[command(flatten)]
    job: JobFileOptions,
}

/// What was found in one file. The exit code is 0 if no file has a finding or an error, 2 otherwise.
#[derive(Serialize, JsonSchema)]
pub(in super::super) struct LintDocument {
    /// The file.
    file: PathBuf,
    /// What is wrong with it as a document.
    problems: Vec<Problem>,
    /// What is wrong with its objects, or those that it becomes.
    findings: Vec<LintFinding>,
    /// With `--online`, what the job needs and the cluster does not have.
    lacks: Vec<String>,
}

/// What was found in one file.
struct LintedFile {
    path: PathBuf,
    problems: Option<Problems>,
    findings: Vec<LintFinding>,
    lacks: Vec<String>,
}

impl LintedFile {
    fn is_good(&self) -> bool {
        self.findings.is_empty()
            && self.lacks.is_empty()
            && self.problems.as_ref().is_none_or(Problems::can_be_used)
    }
}

pub(super) fn run(arguments: &LintArguments, session: &Session) -> anyhow::Result<Exit> {
    let blueprint = blueprint_of(session)?;
    let mut judged = Vec::new();
    if arguments.objects.is_empty() {
        judged.push(judge_job(arguments, blueprint.as_ref(), session)?);
    }
    for path in &arguments.objects {
        judged.push(judge_objects(path)?);
    }
    match session.output {
        Output::Json => session.printer.json(&judged.iter().map(findings_document).collect::<Vec<_>>())?,
        Output::Text | Output::Markdown | Output::Html => {
            judged.iter().try_for_each(|file| print_findings(file, session))?;
        }
    }
    Ok(if judged.iter().all(LintedFile::is_good) { Exit::Done } else { Exit::Invalid })
}

fn judge_job(
    arguments: &LintArguments,
    blueprint: Option<&Blueprint>,
    session: &Session,
) -> anyhow::Result<LintedFile> {
    let path = arguments.job.path(session)?;
    let text = read_text(&path).map_err(LoadError::from)?;
    let judged = validate(&path, &text, blueprint).and_then(|loaded| {
        let code = read_code(&path, &loaded.value)?;
        Ok((loaded, code))
    });
    let (problems, findings, lacks) = match judged {
        Err(problems) => (problems, Vec::new(), Vec::new()),
        Ok((loaded, code)) => {
            let facts = ClusterFacts::of_blueprint(blueprint);
            mention_objects(&loaded.value, session);
            let rendered = |facts: ClusterFacts<'_>| -> anyhow::Result<Run> {
                Ok(Run::rendered(decide(&loaded.value, code.as_ref(), facts, &scripts_of(session)?), None))
            };
            let lacks = if arguments.online { judge_cluster(&rendered, session)? } else { Vec::new() };
            let run = rendered(facts)?;
            (loaded.warnings, lint_objects(&objects_of(&run)), lacks)
        }
    };
    Ok(LintedFile { path, problems: Some(problems), findings, lacks })
}

/// What a job needs and the running cluster does not have.
fn judge_cluster(
    rendered: &dyn Fn(ClusterFacts<'_>) -> anyhow::Result<Run>,
    session: &Session,
) -> anyhow::Result<Vec<String>> {
    let cluster = TargetCluster::find(session)?;
    let checked = block_on(async {
        let known = cluster.read_facts().await?;
        let run = rendered(known.facts())?;
        Ok(check_preconditions(&cluster.api, &run, known.facts()).await?)
    })?;
    let mut lacks = Vec::new();
    for found in checked.preconditions {
        match found {
            Precondition::Unmet(reason) => lacks.push(reason),
            Precondition::Remark(remark) | Precondition::Warning(remark) => session.printer.warning(remark),
        }
    }
    Ok(lacks)
}

fn judge_objects(path: &Path) -> anyhow::Result<LintedFile> {
    let (problems, findings) = match parse_objects(path, &read_text(path)?) {
        Ok(objects) => (None, lint_objects(&objects)),
        Err(problems) => (Some(problems), Vec::new()),
    };
    Ok(LintedFile { path: path.to_owned(), problems, findings, lacks: Vec::new() })
}

fn findings_document(file: &LintedFile) -> LintDocument {
    let problems = file.problems.as_ref().map(Problems::list).unwrap_or_default();
    LintDocument {
        file: file.path.clone(),
        problems: problems.to_vec(),
        findings: file.findings.clone(),
        lacks: file.lacks.clone(),
    }
}

fn print_findings(file: &LintedFile, session: &Session) -> anyhow::Result<()> {
    if let Some(problems) = file.problems.as_ref().filter(|problems| !problems.list().is_empty()) {
        session.printer.data(problems)?;
    }
    for finding in &file.findings {
        session.printer.data(format_args!(
            "{}: {}: {}: {}",
            file.path.display(),
            finding.object,
            finding.field,
            finding.message
        ))?;
        if let Some(help) = &finding.help {
            session.printer.data(format_args!("  help: {help}"))?;
        }
    }
    for reason in &file.lacks {
        session.printer.data(format_args!("{}: on the cluster: {reason}", file.path.display()))?;
    }
    let warnings =
        file.problems.iter().flat_map(Problems::list).filter(|problem| problem.severity == Severity::Warning);
    let count = file.findings.len() + file.lacks.len() + file.problems.as_ref().map_or(0, Problems::errors);
    match (count, warnings.count()) {
        (0, 0) => session.printer.note(format_args!("{}: good", file.path.display())),
        (0, _) => session.printer.note(format_args!("{}: good, with warnings", file.path.display())),
        (1, _) => session.printer.error(format_args!("{} has 1 problem", file.path.display())),
        (count, _) => session.printer.error(format_args!("{} has {count} problems", file.path.display())),
    }
    Ok(())
}
