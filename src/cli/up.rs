//! `infra up`: brings the cluster to what cluster.yaml says.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::aws_access::{AwsOptions, api_address, block_on};
use super::deployment::{Deployment, certificate_expiries, choose_image, choose_s3_uri, write_lock};
use super::exit::Exit;
use super::failure::Refusal;
use super::interruption::{until_detached, until_interrupted};
use super::plan::{explain_all_user_data, show_plan};
use super::preflight::print_caller;

use super::progress_view::ProgressView;
use super::question::ask_on_thread;
use super::rotation::print_deployed_steps;
use super::session::Session;
use crate::aws::Clients;
use crate::config::values::{PoolName, S3Uri};
use crate::deploy::preflight::{Preflight, Severity};
use crate::deploy::{
    ChosenImage, Consent, DeployError, Event, ImageOrigin, Inputs, LiveCluster, NodeRollout, PlanOptions,
    Prepared, Progress, Run, Up, UpOptions, WaitFor, disrupted_jobs, load_balancer, pools_losing_nodes,
    prepare,
};
use crate::kube::{Address, ApiServer};
use crate::plural::count_of;

/// Bring the cluster up, or bring it to what cluster.yaml says now
///
/// Checks the account first (preflight), uploads what machines boot from, then creates and updates stacks in parallel, points the public
/// name at the API, and waits until every node is Ready. Safe to run again at any time and from any state: what is right is kept, and an
/// operation in progress is followed. What would be replaced or deleted is shown, and needs your consent.
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
    let view = ProgressView::new(session.output, session.printer.clone(), session.verbose == 0);
    let progress = view.progress();
    let preparing = Box::pin(prepare_plan(arguments, session, deployment, &clients, &progress));
    let (prepared, inputs, image) = until_interrupted(preparing).await?;
    let origin = image.origin.as_ref();
    let agreeing =
        Box::pin(ask_for_consent(arguments, session, deployment, &prepared, origin, &clients, options));
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
    view.finish();
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
    let image = choose_image(session, clients, &deployment.project, &live, arguments.upgrade_os).await?;
    if arguments.skip_preflight {
        session.printer.warning("preflight is skipped: what it would have found now fails later, and slowly");
    } else {
        let certificates = certificate_expiries(session)?;
        let preflight = Preflight {
            blueprint,
            s3_uri: Some(&s3_uri),
            create_bucket: arguments.create_bucket,
            image: Some(&image.lock.image),
            certificates: &certificates,
            live: &live,
        };
        check_account(preflight, clients, session, progress).await?;
    }
    let options = PlanOptions {
        pool: arguments.pool.clone(),
        allow_replace: arguments.allow_replace.iter().cloned().collect(),
    };
    let inputs = deployment.inputs(s3_uri, image.choice.clone());
    let prepared = prepare(clients, &inputs, live, options).await?;
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
    if report.refuses() {
        let refused = report.findings.into_iter().filter(|finding| finding.severity == Severity::Refused);
        return Err(DeployError::Preflight(refused.collect()).into());
    }
    Ok(())
}

/// Shows what would change, and asks where something would be lost.
async fn ask_for_consent(
    arguments: &UpArguments,
    session: &Session,
    deployment: &Deployment,
    prepared: &Prepared,
    image: Option<&ImageOrigin>,
    clients: &Clients,
    options: &UpOptions,
) -> anyhow::Result<Consent> {
    let plan = &prepared.plan;
    let user_data = explain_all_user_data(clients, &deployment.project.blueprint, plan, deployment).await?;
    show_plan(session, deployment, prepared, image, &user_data);
    let cluster = &deployment.project.blueprint.cluster;
    let mut disrupted = pools_losing_nodes(plan, cluster, &prepared.live);
    let deletions: Vec<String> = plan.deletions().map(|stack| stack.part.to_string()).collect();
    let mut consent = Consent { delete_dropped_pools: arguments.prune };
    if !deletions.is_empty() && !arguments.prune {
        let question = format!("Delete {}, no longer in cluster.yaml?", deletions.join(", "));
        // Without a yes the pools are kept, and everything else continues.
        let agreed = ask_on_thread(&question, "--prune", &session.printer).await.is_ok();
        consent.delete_dropped_pools = agreed;
        if !agreed {
            session
                .printer
                .warning("pools that are no longer in cluster.yaml are kept; `--prune` deletes them");
            disrupted.retain(|pool| cluster.pool(pool).is_some());
        }
    }
    let jobs = name_jobs(session, deployment, prepared, &disrupted, options).await;
    if let Some(question) = losses_question(plan.losses(), jobs)
        && !session.yes
    {
        ask_on_thread(&question, "--yes", &session.printer).await?;
    }
    Ok(consent)
}

/// The question about what would be lost; none if nothing would be. `jobs` is none if the number is not known.
fn losses_question(losses: usize, jobs: Option<usize>) -> Option<String> {
    let resources =
        (losses > 0).then(|| format!("{} will be replaced or deleted.", count_of(losses, "resource")));
    let jobs = match jobs {
        Some(0) => None,
        Some(count) => Some(format!("{} will be terminated.", count_of(count, "job pod"))),
        None => Some("Jobs may be running on nodes that will be terminated.".to_owned()),
    };
    let sentences: Vec<String> = resources.into_iter().chain(jobs).collect();
    (!sentences.is_empty()).then(|| format!("{} Continue?", sentences.join(" ")))
}

/// Prints the job pods on nodes that would be terminated; returns how many there are, none if that is not known.
async fn name_jobs(
    session: &Session,
    deployment: &Deployment,
    prepared: &Prepared,
    pools: &[PoolName],
    options: &UpOptions,
) -> Option<usize> {
    if pools.is_empty() {
        return Some(0);
    }
    let found = match connect_api(deployment, &prepared.live, options.api_address.as_ref()) {
        Some(Ok(api)) => disrupted_jobs(&api, pools).await.map_err(anyhow::Error::from),
        Some(Err(error)) => Err(error),
        // Without an API there are no jobs.
        None => return Some(0),
    };
    match found {
        Ok(pods) => {
            for pod in &pods {
                session.printer.warning(format_args!(
                    "job {}/{} runs on {} (pod {}), which will be terminated",
                    pod.namespace, pod.job, pod.node, pod.name
                ));
            }
            Some(pods.len())
        }
        Err(error) => {
            session.printer.warning(format_args!(
                "nodes of {} will be terminated, and jobs may be running there: {error}",
                pools.iter().map(PoolName::as_str).collect::<Vec<_>>().join(", ")
            ));
            None
        }
    }
}

fn connect_api(
    deployment: &Deployment,
    live: &LiveCluster,
    address: Option<&Address>,
) -> Option<anyhow::Result<ApiServer>> {
    let target = load_balancer(&live.outputs())?;
    let name = deployment.project.blueprint.cluster.external_dns_name.to_string();
    let api = ApiServer::of_cluster(&deployment.credentials, &name, &target.name, address);
    Some(api.map_err(Into::into))
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

    use super::{losses_question, parse_duration};

    #[test]
    fn a_question_counts_rightly_and_says_nothing_of_zero() {
        assert_eq!(losses_question(0, Some(0)), None);
        let question = |losses, jobs| losses_question(losses, jobs).unwrap_or_default();
        assert_eq!(question(1, Some(0)), "1 resource will be replaced or deleted. Continue?");
        assert_eq!(question(0, Some(1)), "1 job pod will be terminated. Continue?");
        assert_eq!(
            question(2, Some(3)),
            "2 resources will be replaced or deleted. 3 job pods will be terminated. Continue?"
        );
        assert_eq!(question(0, None), "Jobs may be running on nodes that will be terminated. Continue?");
    }

    #[test]
    fn durations_are_read_and_nonsense_is_not() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_hours(2)));
        for nonsense in ["", "5", "m", "-1m", "1d", "0s", "999999999999999h", "1.5h"] {
            assert!(parse_duration(nonsense).is_err(), "{nonsense}");
        }
    }
}
