//! `infra job submit`: submits a job and follows it to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

use super::code::{planned_code, short_digest, upload_code};
use super::dry_run::{add_machines, print_plan};
use super::objects::fetch_data;
use super::status::table;
use super::submission_view::SubmissionView;
use super::target::{JobFileOptions, parse_run_name, run_name, scripts_of, seconds_now};
use crate::cli::aws_access::{AwsOptions, block_on};
use crate::cli::exit::Exit;
use crate::cli::interruption::{DETACHING, Interrupted, until_second_interruption};
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::Output;
use crate::cli::up::parse_duration;
use crate::job::code::read_code;
use crate::job::life::{
    Followed, JobReport, JobState, Precondition, ReplicaPhase, ReplicaReport, Submission, SubmitRequest,
    follow, record_state,
};
use crate::job::values::RunName;
use crate::job::{Workload, decide, tcp_notice};
use crate::kube::ApiServer;
use crate::waiting::Waiting;

/// Submit a job to the cluster and follow it to its end
///
/// Every submission is a run with a directory of its own. Code is uploaded and data imported first, while no GPU is held. Run again, it attaches to the
/// job that exists. Ctrl-C stops following; the job continues (exit 5). Data in S3 (`data.url: s3://bucket/key`) is fetched by links that your AWS credentials
/// sign: until it has arrived, Ctrl-C ends that, and the same command continues; nothing else here needs AWS.
#[derive(Args, Debug)]
pub(super) struct SubmitArguments {
    #[command(flatten)]
    job: JobFileOptions,
    /// Delete an existing job of this name first, even if it is the same; its files stay. Asks if that job is not finished
    #[arg(long)]
    replace: bool,
    /// Do not follow the job: exit as soon as training may begin. Refused while data is missing that must be fetched from S3
    #[arg(long)]
    detach: bool,
    /// Only say what would be used, whether it fits now and what it would wait for; nothing is written
    #[arg(long, conflicts_with_all = ["detach", "timeout"])]
    dry_run: bool,
    /// A name for this run; by default the time and a few random digits
    #[arg(long, value_name = "NAME", value_parser = parse_run_name)]
    run: Option<RunName>,
    /// Continue in the directory of this earlier run, from its checkpoints
    #[arg(long, value_name = "RUN", value_parser = parse_run_name, conflicts_with = "run")]
    resume: Option<RunName>,
    /// Follow for at most this long, such as 90m or 24h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &SubmitArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = TargetCluster::find(session)?;
    if cluster.blueprint().is_some() {
        session.printer.note(format_args!("cluster {}", cluster.name));
    }
    let api = &cluster.api;
    let job = arguments.job.load_for(&cluster, session)?;
    if let Some(notice) = cluster.blueprint().and_then(|blueprint| tcp_notice(&job, blueprint)) {
        session.printer.note(notice);
    }
    let scripts = scripts_of(session)?;
    let mut code = read_code(&arguments.job.path(session)?, &job)?;
    let named = arguments.resume.as_ref().or(arguments.run.as_ref());
    let run = named.cloned().map_or_else(run_name, Ok)?;
    let (interrupter, waiting) = session.begin_waiting(arguments.timeout);
    let is_moving = AtomicBool::new(false);
    let work = async {
        let known = cluster.read_facts().await?;
        let mut keys = job.keys.clone();
        keys.extend(code.as_ref().map(|code| ("code".to_owned(), short_digest(code))));
        let request = SubmitRequest {
            workload: decide(&job, code.as_ref(), known.facts(), &scripts),
            run,
            is_run_named: named.is_some(),
            is_resumed: arguments.resume.is_some(),
            now: seconds_now,
            replace: arguments.replace,
            keys,
        };
        let submission = Submission::plan(api, request, known.facts()).await?;
        if arguments.dry_run {
            let mut plan = submission.describe(named.is_some());
            add_machines(&mut plan, &job, &cluster, session);
            plan.code = code.as_ref().map(|code| planned_code(code, submission.workload()));
            plan.fetches_from = job.objects().map(|(source, _)| source.to_string());
            return print_plan(&plan, session);
        }
        show_preconditions(submission.preconditions(), session);
        submission.check()?;
        let workload = submission.workload();
        if let Some(state) = submission.interrupts().filter(|_| !session.yes) {
            let question = format!(
                "Job '{}' is {}. It will be deleted and started again. Continue?",
                workload.name,
                state.name()
            );
            ask_on_thread(&question, "--yes", &session.printer).await?;
        }
        session.printer.note(format_args!("run {}", submission.run()));
        let view = SubmissionView::new(&workload.name, session);
        let brings_files = code.is_some() || job.objects().is_some();
        if brings_files && !submission.is_there() {
            submission.create_storage(api, &waiting, &|event| view.show(&event)).await?;
            is_moving.store(true, Ordering::Relaxed);
            let cluster = (api, known.facts(), &scripts);
            if let Some(code) = &mut code {
                upload_code(code, &job, workload, cluster, session).await?;
            }
            fetch_data(&job, workload, cluster, (&arguments.aws, !arguments.detach), session).await?;
            is_moving.store(false, Ordering::Relaxed);
        }
        submission.start(api, &waiting, &|event| view.show(&event)).await?;
        mention_tensorboard(workload, session);
        if arguments.detach {
            session.printer.note(format_args!(
                "`infra job logs -f {0}` and `infra job status {0}` show its progress",
                workload.name
            ));
            return Ok(Exit::Done);
        }
        watch_job(api, workload, &waiting, &view, session).await
    };
    let leave = || {
        // A transfer ends at once.
        if !is_moving.load(Ordering::Relaxed) {
            session.printer.note(DETACHING);
        }
    };
    block_on(until_second_interruption(work, &interrupter, leave, Interrupted::WhileJobRuns))
}

/// What keeps the job from running is shown all at once, after what its author should know.
fn show_preconditions(preconditions: &[Precondition], session: &Session) {
    for precondition in preconditions {
        if let Precondition::Remark(remark) | Precondition::Warning(remark) = precondition {
            session.printer.warning(remark);
        }
    }
    for precondition in preconditions {
        if let Precondition::Unmet(reason) = precondition {
            session.printer.note(format_args!("- {reason}"));
        }
    }
}

async fn watch_job(
    api: &ApiServer,
    workload: &Workload,
    waiting: &Waiting,
    view: &SubmissionView<'_>,
    session: &Session,
) -> anyhow::Result<Exit> {
    let followed =
        follow(api, &workload.namespace, &workload.name, waiting, &|event| view.show(&event)).await;
    if followed.is_ok() {
        view.finish();
    }
    let Followed { report, culprit, last_lines } = followed?;
    if let Err(error) = record_state(api, &report).await {
        session.printer.warning(format_args!("`infra job runs` does not know how it ended: {error}"));
    }
    match session.output {
        Output::Json => session.printer.json(&report)?,
        Output::Text | Output::Markdown | Output::Html => session.printer.data(table(&report))?,
    }
    if report.state == JobState::Complete {
        session.printer.note(format_args!("`infra job fetch {}` downloads the results", report.name));
        return Ok(Exit::Done);
    }
    let reason = report.reason.clone().unwrap_or_else(|| "no reason was given".to_owned());
    session.printer.error(format_args!("job '{}' failed: {reason}", report.name));
    if let Some(replica) = &culprit {
        let place = replica.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        let how = replica.detail.as_deref().unwrap_or("failed");
        session.printer.note(format_args!("  {} {}{place}: {how}", replica.role, replica.index));
    }
    if !last_lines.is_empty() {
        session.printer.note("  the last lines of its log:");
        for line in &last_lines {
            session.printer.note(format_args!("    {line}"));
        }
    }
    session.printer.help(suggest_next_step(&report, culprit.as_ref()));
    Ok(Exit::Failed)
}

fn suggest_next_step(report: &JobReport, culprit: Option<&ReplicaReport>) -> String {
    let name = &report.name;
    let logs = match culprit {
        Some(replica) => {
            format!(
                "`infra job logs {name} --role {} --index {}` shows its whole log",
                replica.role, replica.index
            )
        }
        None => format!("`infra job why {name}` explains it"),
    };
    // JobSet terminates the others itself.
    let is_alone = report.restarts.is_none();
    if is_alone && report.replicas.iter().any(|replica| replica.phase == ReplicaPhase::Running) {
        format!(
            "{logs}; the other replicas end by themselves; `infra job delete {name}` terminates them at once"
        )
    } else {
        format!("{logs}; `infra job submit --replace` starts it again")
    }
}

fn mention_tensorboard(workload: &Workload, session: &Session) {
    if workload.tensorboard.is_some() {
        session.printer.note(format_args!("`infra job tensorboard {}` shows its TensorBoard", workload.name));
    }
}
