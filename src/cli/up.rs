//! `infra up`: brings the cluster to what cluster.yaml says.

use std::time::Duration;

use clap::{Args, ValueEnum};
use time::OffsetDateTime;

use super::aws_access::{AwsOptions, api_address, block_on};
use super::deployment::{
    Deployment, certificate_expiries, choose_image, choose_s3_uri, read_blocks, read_lock, write_lock,
};
use super::exit::Exit;
use super::failure::Refusal;
use super::interruption::{until_detached, until_interrupted};
use super::plan::{explain_all_user_data, show_plan};
use super::progress_view::ProgressView;
use super::session::Session;
use crate::aws::Clients;
use crate::cli::deployment::consent::ask_for_consent;
use crate::cli::deployment::disruption::{connect_api, read_disruption};
use crate::cli::deployment::preflight::print_caller;
use crate::cli::deployment::prices::require_budget;
use crate::cli::deployment::rotation::print_deployed_steps;
use crate::cli::terminal::screen::Stream;
use crate::config::values::{PoolName, S3Uri};
use crate::deploy::preflight::{Preflight, Severity};
use crate::deploy::{
    ChosenImage, Consent, DeployError, Event, Inputs, LiveCluster, MachinePlan, NodeRollout, PlanOptions,
    Prepared, Progress, Run, Up, UpOptions, WaitFor, find_wrong_pool_ends, prepare_deployment,
};
use crate::plural::count_of;

/// Bring the cluster up, or bring it to what cluster.yaml says now
///
/// Checks the account first (preflight), uploads what machines boot from, then creates and updates stacks in parallel, points the public
/// name at the API, and waits until every node is Ready. Safe to run again at any time and from any state: what is right is kept, and an
/// operation in progress is followed. Which machines are replaced is shown first. What would be replaced or deleted needs your consent, and
/// so does an API that is unavailable meanwhile.
#[derive(Args, Debug)]
#[command(visible_alias = "update")]
pub(super) struct UpArguments {
    /// Where assets are uploaded: s3://bucket/prefix; wins over s3URI in cluster.yaml
    #[arg(long, value_name = "URI")]
    s3_uri: Option<S3Uri>,
    /// Create the bucket if it is missing: encrypted, versioned, private, TLS only
    #[arg(long)]
    create_bucket: bool,
    /// Create or update this pool only
    #[arg(long, value_name = "NAME")]
    pool: Option<PoolName>,
    /// Replace the pool's outdated machines, one by one, each after its jobs have ended
    #[arg(long, requires = "pool")]
    replace_nodes: bool,
    /// Replace at most this many
    #[arg(long, value_name = "N", requires = "replace_nodes")]
    max: Option<usize>,
    /// Move to the newest image of the operating system; its machines are replaced
    #[arg(long)]
    upgrade_os: bool,
    /// Delete pools that are no longer in cluster.yaml, without asking
    #[arg(long)]
    prune: bool,
    /// Allow this resource to be replaced or deleted; may be given several times
    #[arg(long, value_name = "LOGICAL_ID")]
    allow_replace: Vec<String>,
    /// Replace an existing record of externalDNSName that points elsewhere
    #[arg(long)]
    adopt_record: bool,
    /// Apply a cluster that may cost more than budget.perHour, or whose prices are not known
    #[arg(long)]
    over_budget: bool,
    /// Continue without checking the account first
    #[arg(long)]
    skip_preflight: bool,
    /// What to wait for
    #[arg(long, value_enum, default_value_t = Wait::Nodes)]
    wait: Wait,
    /// How long to wait in total; AWS continues after that
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = parse_duration)]
    timeout: Duration,
    /// Let Ctrl-C undo the operation in progress, instead of leaving it to AWS
    #[arg(long)]
    cancel_on_interrupt: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wait {
    /// Until every node is Ready and GPUs can be used
    Nodes,
    /// Until the stacks are done
    Stacks,
    /// For nothing that AWS does without infra
    None,
}

pub(super) fn run(arguments: &UpArguments, session: &Session) -> anyhow::Result<Exit> {
    let deployment = Deployment::load(session)?;
    if let Some(pool) = &arguments.pool {
        deployment.project.check_pool_exists(pool)?;
    }
    let cluster = &deployment.project.blueprint.cluster;
    let ends = find_wrong_pool_ends(cluster, arguments.pool.as_ref(), OffsetDateTime::now_utc());
    if let Some(wrong) = ends.first() {
        return Err(Refusal::new(wrong.to_string()).help(wrong.fix()).into());
    }
    let lock = read_lock(&deployment.project)?;
    require_budget(&deployment.project.blueprint, lock.as_ref(), arguments.over_budget, session)?;
    let options = UpOptions {
        create_bucket: arguments.create_bucket,
        adopt_record: arguments.adopt_record,
        wait: match arguments.wait {
            // The nodes that are replaced may be those that never get Ready.
            Wait::Nodes if arguments.replace_nodes => WaitFor::Stacks,
            Wait::Nodes => WaitFor::Nodes,
            Wait::Stacks => WaitFor::Stacks,
            Wait::None => WaitFor::None,
        },
        api_address: api_address()?,
    };
    block_on(Box::pin(bring_up(arguments, session, &deployment, &options)))
}

async fn bring_up(
    arguments: &UpArguments,
    session: &Session,
    deployment: &Deployment,
    options: &UpOptions,
) -> anyhow::Result<Exit> {
    let clients = arguments.aws.connect(&deployment.project.blueprint.cluster, session).await;
    let view = ProgressView::new(session.output, session.printer.clone(), session.can_redraw(Stream::Stderr));
    let progress = view.progress();
    let preparing = Box::pin(prepare_plan(arguments, session, deployment, &clients, &progress));
    let (prepared, inputs, image) = until_interrupted(preparing).await?;
    let blocks = inputs.blocks.clone();
    let address = options.api_address.as_ref();
    let reading = Box::pin(read_disruption(deployment, &prepared.plan, &prepared, address));
    let machines = until_interrupted(async { Ok(reading.await) }).await?;
    if !machines.machines.is_empty() || !machines.held.is_empty() || !machines.blocks.is_empty() {
        progress.report(Event::Machines { plan: machines.clone() });
    }
    let agreeing =
        Box::pin(show_and_ask(arguments, session, deployment, &prepared, machines, &image, &clients));
    let consent = until_interrupted(agreeing).await?;
    write_lock(&deployment.project, &image.lock, &session.printer)?;
    let (interrupter, waiting) = session.begin_waiting(Some(arguments.timeout));
    let run = Run {
        clients,
        cluster: Some(deployment.project.blueprint.cluster.clone()),
        progress,
        waiting,
        cancel_on_interrupt: arguments.cancel_on_interrupt,
    };
    let up = Up { run: &run, inputs: &inputs, options };
    let working = Box::pin(async {
        up.apply(&prepared, consent).await?;
        if arguments.replace_nodes {
            replace_nodes(arguments, session, deployment, up, &prepared).await?;
        }
        Ok(())
    });
    let result = until_detached(working, &interrupter, &view, &session.printer).await;
    view.finish(result.is_ok());
    // Whatever became of the run: the block is paid for by the hour, and an error has the last word.
    for block in blocks.begun_since(OffsetDateTime::now_utc()) {
        session.printer.warning(format_args!(
            "the capacity block {} of pool {} has begun meanwhile: run `infra up` again if the pool has no machines",
            block.id, block.pool
        ));
    }
    result?;
    if arguments.pool.is_none() && arguments.wait != Wait::None {
        print_deployed_steps(deployment.credentials.all_keys_in_use(), session);
    }
    let name = &deployment.project.blueprint.cluster.external_dns_name;
    session.printer.note(format_args!("done: https://{name}; `infra kubeconfig --merge` lets kubectl in"));
    Ok(Exit::Done)
}

/// Reads everything that the plan needs, before anything is changed.
async fn prepare_plan<'a>(
    arguments: &UpArguments,
    session: &Session,
    deployment: &'a Deployment,
    clients: &Clients,
    progress: &Progress,
) -> anyhow::Result<(Prepared, Inputs<'a>, ChosenImage)> {
    let blueprint = &deployment.project.blueprint;
    let live = LiveCluster::read(clients, &blueprint.cluster.name, Some(&blueprint.cluster)).await?;
    let s3_uri = choose_s3_uri(arguments.s3_uri.as_ref(), blueprint, &live, &session.printer)?;
    let mut image = choose_image(session, clients, &deployment.project, &live, arguments.upgrade_os).await?;
    let blocks = read_blocks(clients, &deployment.project, &mut image.lock).await?;
    if arguments.skip_preflight {
        session.printer.warning("preflight is skipped: what it would have found now fails later, and slowly");
    } else {
        let certificates = certificate_expiries(session)?;
        let preflight = Preflight {
            blueprint,
            s3_uri: Some(&s3_uri),
            create_bucket: arguments.create_bucket,
            image: Some(&image.lock.image),
            blocks: &image.lock.capacity_blocks,
            now: OffsetDateTime::now_utc(),
            certificates: &certificates,
            live: &live,
        };
        check_account(preflight, clients, session, progress).await?;
    }
    let options = PlanOptions {
        pool: arguments.pool.clone(),
        allow_replace: arguments.allow_replace.iter().cloned().collect(),
    };
    let inputs = deployment.inputs(s3_uri, image.choice.clone(), blocks);
    let prepared = prepare_deployment(clients, &inputs, live, options).await?;
    Ok((prepared, inputs, image))
}

async fn check_account(
    preflight: Preflight<'_>,
    clients: &Clients,
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<()> {
    let report = preflight.run(clients).await?;
    print_caller(&report, session);
    for finding in &report.findings {
        progress.report(Event::Preflight { finding: finding.clone() });
    }
    if report.has_refusal() {
        let refused = report.findings.into_iter().filter(|finding| finding.severity == Severity::Refused);
        return Err(DeployError::Preflight(refused.collect()).into());
    }
    Ok(())
}

/// Shows what would change, machines first, and asks where something would be lost or unavailable.
async fn show_and_ask(
    arguments: &UpArguments,
    session: &Session,
    deployment: &Deployment,
    prepared: &Prepared,
    machines: MachinePlan,
    image: &ChosenImage,
    clients: &Clients,
) -> anyhow::Result<Consent> {
    let (blueprint, plan) = (&deployment.project.blueprint, &prepared.plan);
    let user_data = explain_all_user_data(clients, blueprint, plan, deployment).await?;
    show_plan(session, deployment, prepared, &machines, image, &user_data);
    ask_for_consent(session, deployment, prepared, machines, arguments.prune).await
}

async fn replace_nodes(
    arguments: &UpArguments,
    session: &Session,
    deployment: &Deployment,
    up: Up<'_>,
    prepared: &Prepared,
) -> anyhow::Result<()> {
    let Some(pool) = &arguments.pool else { return Ok(()) };
    let api = connect_api(deployment, &prepared.live, up.options.api_address.as_ref());
    let api = api.ok_or_else(|| Refusal::new("the cluster has no API server yet"))??;
    let rollout =
        NodeRollout { run: up.run, cluster: &deployment.project.blueprint.cluster, api: &api, pool };
    let left = rollout.replace_outdated(arguments.max).await?;
    if left > 0 {
        session
            .printer
            .note(format_args!("{} left; run the same command again", count_of(left, "outdated machine")));
    } else if arguments.wait == Wait::Nodes {
        up.wait_for_nodes(prepared).await?;
    }
    Ok(())
}

/// A duration like `90s`, `30m` or `2h`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("'{text}' is not a duration like 90s, 30m or 2h");
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let count: u64 = number.parse().map_err(|_| fault())?;
    let seconds = match &text[number.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(fault()),
    };
    let duration = count.checked_mul(seconds).filter(|total| (1..=7 * 24 * 3600).contains(total));
    duration.map(Duration::from_secs).ok_or_else(|| format!("'{text}' is not between 1s and 168h"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse_duration;

    #[test]
    fn durations_are_read_and_nonsense_is_not() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_hours(2)));
        for nonsense in ["", "5", "m", "-1m", "1d", "0s", "999999999999999h", "1.5h"] {
            assert!(parse_duration(nonsense).is_err(), "{nonsense}");
        }
    }
}
