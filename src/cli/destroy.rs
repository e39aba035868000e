//! `infra destroy`: deletes the cluster.

use std::time::Duration;

use clap::Args;

use super::aws_access::{AwsOptions, api_address, block_on};
use super::exit::Exit;
use super::failure::Refusal;
use super::interruption::{until_detached, until_interrupted};
use super::progress_view::ProgressView;
use super::session::Session;
use super::up::parse_duration;
use crate::aws::Clients;
use crate::blueprint::Blueprint;
use crate::cli::question::{ask_on_thread, ask_word_on_thread};
use crate::cli::terminal::printer::{Output, align_columns};
use crate::cli::terminal::screen::Stream;
use crate::config::Cluster;
use crate::config::values::{ClusterName, S3Uri};
use crate::credentials::Credentials;
use crate::deploy::{
    DestroyItem, DestroyOptions, DestroyOutcome, DestroyPlan, DestroyScope, DestroyTarget, Event,
    ResourceKind, Run, audit_destroyed_cluster, destroy_cluster, load_balancer, plan_destroy,
};
use crate::kube::ApiServer;

/// Delete the cluster, and report what is kept
///
/// First lists what is deleted, in order, what is kept, and which foreign resources are in the network; then asks. Files in the shared
/// file system and snapshots of etcd are kept unless `--delete-data` is given; the bucket and the key are always kept. Can be run again
/// from any state, also when cluster.yaml or the credentials are lost. Ends with an audit: 7 if anything is left that should not be.
#[derive(Args, Debug)]
pub(super) struct DestroyArguments {
    /// Show what would be deleted and what would be kept, and change nothing
    #[arg(long)]
    plan_only: bool,
    /// Delete files and snapshots too; asks for the cluster's name
    #[arg(long)]
    delete_data: bool,
    /// The cluster's name, for --delete-data without a terminal
    #[arg(long, value_name = "NAME", requires = "delete_data")]
    confirm: Option<String>,
    /// Delete mount targets of other file systems in this cluster's subnets
    #[arg(long)]
    delete_foreign_mount_targets: bool,
    /// The cluster, when cluster.yaml is lost; needs --region
    #[arg(long, value_name = "NAME", requires = "region")]
    cluster_name: Option<ClusterName>,
    /// Where assets are, if neither cluster.yaml nor a stack says so; the S3 URI that the network stack names is used too
    #[arg(long, value_name = "URI")]
    s3_uri: Option<S3Uri>,
    /// How long to wait in total; AWS continues after that
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &DestroyArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = match &arguments.cluster_name {
        Some(_) => None,
        None => Some(session.load_project_quietly()?.blueprint.cluster),
    };
    block_on(Box::pin(plan_and_destroy(arguments, session, cluster)))
}

async fn plan_and_destroy(
    arguments: &DestroyArguments,
    session: &Session,
    cluster: Option<Cluster>,
) -> anyhow::Result<Exit> {
    let clients =
        arguments.aws.connect_to(cluster.as_ref().map(|cluster| cluster.region.as_str()), session).await;
    let reading = Box::pin(read_scope(arguments, &clients, cluster));
    let scope = until_interrupted(reading).await?;
    let target = &scope.target;
    let plan = plan_destroy(&scope);
    if arguments.plan_only || session.output != Output::Json {
        show_plan(&plan, target, session)?;
    }
    if arguments.plan_only {
        return Ok(Exit::Done);
    }
    let view = ProgressView::new(session.output, session.printer.clone(), session.can_redraw(Stream::Stderr));
    if plan.delete.is_empty() {
        let auditing = Box::pin(async { Ok(audit_destroyed_cluster(&clients, &scope).await?) });
        let outcome = until_interrupted(auditing).await?;
        session.printer.note(format_args!("nothing of {} is left to delete", target.name));
        warn_of_unknown_s3_uri(target, session);
        return Ok(report_result(&outcome, target, &plan, &view, session));
    }
    until_interrupted(Box::pin(confirm_data_deletion(arguments, session, target))).await?;
    warn_of_unknown_s3_uri(target, session);
    let (interrupter, waiting) = session.begin_waiting(Some(arguments.timeout));
    let run = Run {
        clients,
        cluster: target.cluster.clone(),
        progress: view.progress(),
        waiting,
        cancel_on_interrupt: false,
    };
    let api = connect_api(session, &scope).unwrap_or_else(|error| {
        // Keys that cannot be read or do not fit are no reason to keep a cluster.
        session.printer.warning(format_args!(
            "skipping the Kubernetes API: {error:#}; load balancers of Services are deleted by tag instead"
        ));
        None
    });
    let working = Box::pin(async { Ok(Box::pin(destroy_cluster(&run, &scope, api.as_ref())).await?) });
    let result = until_detached(working, &interrupter, &view, &session.printer).await;
    view.finish(result.as_ref().is_ok_and(DestroyOutcome::is_complete));
    Ok(report_result(&result?, target, &plan, &view, session))
}

async fn read_scope(
    arguments: &DestroyArguments,
    clients: &Clients,
    cluster: Option<Cluster>,
) -> anyhow::Result<DestroyScope> {
    let named =
        arguments.cluster_name.clone().or_else(|| cluster.as_ref().map(|cluster| cluster.name.clone()));
    let name = named
        .ok_or_else(|| Refusal::invalid("which cluster? `--cluster-name NAME --region REGION` names it"))?;
    let options = DestroyOptions {
        delete_data: arguments.delete_data,
        delete_foreign_mount_targets: arguments.delete_foreign_mount_targets,
    };
    let s3_uri = arguments.s3_uri.clone();
    Ok(Box::pin(DestroyScope::read(clients, name, cluster, s3_uri, options)).await?)
}

fn show_plan(plan: &DestroyPlan, target: &DestroyTarget, session: &Session) -> anyhow::Result<()> {
    if session.output == Output::Json {
        return session.printer.json(plan);
    }
    let lines = |items: &[DestroyItem]| {
        let rows: Vec<[String; 3]> = items
            .iter()
            .map(|item| {
                let resource = &item.resource;
                [format!("  {}", resource.kind.name()), resource.id.clone(), item.why.clone()]
            })
            .collect();
        align_columns(&rows)
    };
    if !plan.delete.is_empty() {
        session.printer.data(format_args!("To be deleted, in this order:\n{}", lines(&plan.delete)))?;
    }
    if !plan.keep.is_empty() {
        session.printer.data(format_args!("To be kept:\n{}", lines(&plan.keep)))?;
    }
    if !plan.foreign.is_empty() {
        session.printer.data(format_args!(
            "Foreign resources in the network of {}; they are kept, and block its deletion:\n{}",
            target.name,
            lines(&plan.foreign)
        ))?;
    }
    Ok(())
}

async fn confirm_data_deletion(
    arguments: &DestroyArguments,
    session: &Session,
    target: &DestroyTarget,
) -> anyhow::Result<()> {
    if arguments.delete_data {
        // A yes is typed too quickly where nothing can be undone.
        return match &arguments.confirm {
            Some(name) if name == target.name.as_str() => Ok(()),
            Some(name) => {
                Err(Refusal::new(format!("--confirm says '{name}', the cluster is '{}'", target.name)).into())
            }
            None => {
                let question =
                    "Files and snapshots will be deleted for good. Type the cluster's name to continue:";
                ask_word_on_thread(question, target.name.as_str(), "--confirm NAME", &session.printer).await
            }
        };
    }
    if session.yes {
        return Ok(());
    }
    ask_on_thread(&format!("{} will be deleted. Continue?", target.name), "--yes", &session.printer).await
}

/// The Kubernetes API, if there may be one and its keys are here.
fn connect_api(session: &Session, scope: &DestroyScope) -> anyhow::Result<Option<ApiServer>> {
    let Some(cluster) = &scope.target.cluster else { return Ok(None) };
    let Some(balancer) = load_balancer(&scope.found.live.outputs()) else { return Ok(None) };
    if !session.assets.has_credentials()? {
        return Ok(None);
    }
    let blueprint = Blueprint::new(cluster.clone())?;
    let store = session.open_existing_credentials()?;
    let credentials = Credentials::read(&store, &blueprint.identities)?;
    let (name, address) = (cluster.external_dns_name.to_string(), api_address()?);
    Ok(Some(ApiServer::of_cluster(&credentials, &name, &balancer.name, address.as_ref())?))
}

/// Uploads can only be deleted from a known S3 URI.
fn warn_of_unknown_s3_uri(target: &DestroyTarget, session: &Session) {
    if target.s3_uris.is_empty() {
        session.printer.warning(format_args!(
            "the S3 URI of {}'s uploads is not known; `--s3-uri s3://BUCKET/PREFIX` deletes them too",
            target.name
        ));
    }
}

fn report_result(
    outcome: &DestroyOutcome,
    target: &DestroyTarget,
    plan: &DestroyPlan,
    view: &ProgressView,
    session: &Session,
) -> Exit {
    let printer = &session.printer;
    for stuck in &outcome.stuck {
        printer.error(format_args!("stack {} could not be deleted", stuck.stack));
        for left in &stuck.resources {
            printer.note(format_args!("  {} {}: {}", left.resource, left.id, left.reason));
        }
    }
    for name in &outcome.created_meanwhile {
        printer.error(format_args!(
            "stack {name} was created meanwhile: another process is bringing {} up",
            target.name
        ));
    }
    for blocker in &outcome.blockers {
        printer.note(format_args!("  blocked by: {blocker}"));
    }
    for left in &outcome.leftovers {
        printer.error(format_args!("left over: {left}"));
        printer.note(format_args!("  {}", left.fix));
    }
    for id in &outcome.kept_file_systems {
        let line = target.adoption_line(id);
        printer.note(format_args!("files are kept in {id}; `{line}` in cluster.yaml uses them again"));
    }
    for kept in plan.keep.iter().filter(|item| item.resource.kind == ResourceKind::Backup) {
        printer.note(format_args!("AWS Backup keeps {}: {}", kept.resource.id, kept.why));
    }
    for kept in plan.keep.iter().filter(|item| outcome.created_keys.contains(&item.resource.id)) {
        printer.note(format_args!("{} is kept: {}", kept.resource, kept.why));
    }
    view.progress().report(Event::Destroyed {
        cluster: target.name.to_string(),
        complete: outcome.is_complete(),
        stuck: outcome.stuck.clone(),
        created_meanwhile: outcome.created_meanwhile.clone(),
        blockers: outcome.blockers.clone(),
        leftovers: outcome.leftovers.clone(),
        kept: plan.keep.clone(),
    });
    if !outcome.is_complete() {
        printer.help(if outcome.created_meanwhile.is_empty() {
            "delete what is listed above, then run `infra destroy` again"
        } else {
            "wait until the other `infra up` has ended, or stop it, then run `infra destroy` again"
        });
        return Exit::LeftBehind;
    }
    if !plan.delete.is_empty() {
        printer.note(format_args!("{} is deleted", target.name));
    }
    Exit::Done
}
