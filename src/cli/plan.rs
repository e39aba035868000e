//! `infra plan`: what `infra up` would do.

use std::collections::BTreeMap;

use clap::Args;
use time::OffsetDateTime;

use super::aws_access::{AwsOptions, api_address, block_on};
use super::deployment::{Deployment, choose_image, choose_s3_uri, read_blocks};
use super::exit::Exit;
use super::interruption::{until_cleaned_up, until_interrupted};
use super::plan_view::{CostChange, PlanView};
use super::progress_view::ProgressView;
use super::session::Session;
use crate::aws::Clients;
use crate::blueprint::{Blueprint, Charge, Cost, CostSummary, Prices, StackPart};
use crate::cli::deployment::disruption::read_disruption;
use crate::cli::deployment::prices::{budget_notice, print_how_to_get_prices, today};
use crate::cli::terminal::printer::Output;
use crate::config::values::{PoolName, S3Uri};
use crate::deploy::{
    ChosenImage, FileChange, ImageLock, ImageOrigin, LiveCluster, MachinePlan, Plan, PlanOptions, Prepared,
    Run, explain_user_data, find_wrong_pool_ends, planned_charges, prepare_deployment, refine_plan,
};
use crate::render::boot_objects;
use crate::waiting::Waiting;

/// Show what `infra up` would create, change, replace and delete
///
/// Compares the live stacks with cluster.yaml and asks CloudFormation what it would do; nothing is left behind in AWS. Before the first
/// `infra up` everything is computed from the templates.
#[derive(Args, Debug)]
pub(super) struct PlanArguments {
    /// Where assets are uploaded: s3://bucket/prefix
    #[arg(long, value_name = "URI")]
    s3_uri: Option<S3Uri>,
    /// Plan for one pool only
    #[arg(long, value_name = "NAME")]
    pool: Option<PoolName>,
    /// Plan with the newest image of the operating system
    #[arg(long)]
    upgrade_os: bool,
    /// Allow this resource to be replaced or deleted; may be given several times
    #[arg(long, value_name = "LOGICAL_ID")]
    allow_replace: Vec<String>,
    /// Exit with 3 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &PlanArguments, session: &Session) -> anyhow::Result<Exit> {
    let deployment = Deployment::load(session)?;
    if let Some(pool) = &arguments.pool {
        deployment.project.check_pool_exists(pool)?;
    }
    let cluster = &deployment.project.blueprint.cluster;
    for end in find_wrong_pool_ends(cluster, arguments.pool.as_ref(), OffsetDateTime::now_utc()) {
        session.printer.warning(format_args!("{end}; `infra up` will refuse it"));
    }
    block_on(async {
        let (interrupter, waiting) = session.begin_waiting(None);
        let preparing = Box::pin(prepare_plan(arguments, session, &deployment, waiting));
        let (run, prepared, image, lock) = until_interrupted(preparing).await?;
        let asking = Box::pin(async { Ok(refine_plan(&run, &prepared).await?) });
        let plan = until_cleaned_up(asking, &interrupter, &session.printer).await?;
        let blueprint = &deployment.project.blueprint;
        let explaining = Box::pin(explain_all_user_data(&run.clients, blueprint, &plan, &deployment));
        let user_data = until_interrupted(explaining).await?;
        let address = api_address()?;
        let reading = Box::pin(read_disruption(&deployment, &plan, &prepared, address.as_ref()));
        let machines = until_interrupted(async { Ok(reading.await) }).await?;
        let view = PlanView {
            plan: &plan,
            machines: &machines,
            cluster: &deployment.project.blueprint.cluster,
            image: image.as_ref(),
            user_data: &user_data,
            cost: lock.prices.as_ref().map(|prices| cost_change(&deployment, &prepared, prices)),
            verbose: session.verbose > 0,
        };
        match session.output {
            Output::Json => session.printer.json(&view.document())?,
            Output::Html => session.printer.file(&view.html(&deployment.project.blueprint))?,
            Output::Markdown => session.printer.data(view.markdown())?,
            Output::Text => session.printer.data(view.text())?,
        }
        if lock.prices.is_none() && plan.has_changes() {
            print_how_to_get_prices(session);
        }
        if let Some(notice) = budget_notice(blueprint, Some(&lock)) {
            session.printer.warning(notice);
        }
        let changed = arguments.detailed_exitcode && plan.has_changes();
        Ok(if changed { Exit::HasChanges } else { Exit::Done })
    })
}

/// The files inside user data that change, by stack and resource.
pub(super) type UserDataChanges = BTreeMap<(String, String), Vec<FileChange>>;

/// Reads everything that the plan needs, before CloudFormation previews it. The lock is the one that `infra up` would write.
async fn prepare_plan(
    arguments: &PlanArguments,
    session: &Session,
    deployment: &Deployment,
    waiting: Waiting,
) -> anyhow::Result<(Run, Prepared, Option<ImageOrigin>, ImageLock)> {
    let blueprint = &deployment.project.blueprint;
    let clients = arguments.aws.connect(&blueprint.cluster, session).await;
    let live = LiveCluster::read(&clients, &blueprint.cluster.name, Some(&blueprint.cluster)).await?;
    let s3_uri = choose_s3_uri(arguments.s3_uri.as_ref(), blueprint, &live, &session.printer)?;
    let mut image = choose_image(session, &clients, &deployment.project, &live, arguments.upgrade_os).await?;
    let blocks = read_blocks(&clients, &deployment.project, &mut image.lock).await?;
    let options = PlanOptions {
        pool: arguments.pool.clone(),
        allow_replace: arguments.allow_replace.iter().cloned().collect(),
    };
    let inputs = deployment.inputs(s3_uri, image.choice, blocks);
    let prepared = prepare_deployment(&clients, &inputs, live, options).await?;
    let view = ProgressView::new(Output::Text, session.printer.clone(), false);
    let run = Run {
        clients,
        cluster: Some(blueprint.cluster.clone()),
        progress: view.progress(),
        waiting,
        cancel_on_interrupt: false,
    };
    Ok((run, prepared, image.origin, image.lock))
}

/// What the cluster costs before and after, by prices that are known.
fn cost_change(deployment: &Deployment, prepared: &Prepared, prices: &Prices) -> CostChange {
    let is_deleted = |part: &StackPart| prepared.plan.deletions().any(|stack| stack.part == *part);
    let cluster = &deployment.project.blueprint.cluster;
    let (before, after) = planned_charges(cluster, &prepared.live, &prepared.desired, is_deleted);
    let summary = |charges: &[(u32, Charge)]| {
        let cost = Cost::of(charges.iter().map(|(count, charge)| (*count, charge)), prices);
        CostSummary::new(&cost, prices, today())
    };
    CostChange { before: summary(&before), after: summary(&after) }
}

/// Explains the user data of every launch template that changes.
pub(super) async fn explain_all_user_data(
    clients: &Clients,
    blueprint: &Blueprint,
    plan: &Plan,
    deployment: &Deployment,
) -> anyhow::Result<UserDataChanges> {
    let cluster = blueprint.cluster.name.as_str();
    let objects = boot_objects(cluster, &deployment.assets.boot_configs);
    let mut explained = UserDataChanges::new();
    for stack in &plan.stacks {
        for resource in &stack.resources {
            for property in resource.properties.iter().filter(|property| property.path.ends_with("UserData"))
            {
                let files = explain_user_data(clients, property, &objects).await?;
                explained.insert((stack.stack.clone(), resource.logical_id.clone()), files);
            }
        }
    }
    Ok(explained)
}

/// Shows a plan before it is applied.
pub(super) fn show_plan(
    session: &Session,
    deployment: &Deployment,
    prepared: &Prepared,
    machines: &MachinePlan,
    image: &ChosenImage,
    user_data: &UserDataChanges,
) {
    let prices = image.lock.prices.as_ref();
    let view = PlanView {
        plan: &prepared.plan,
        machines,
        cluster: &deployment.project.blueprint.cluster,
        image: image.origin.as_ref(),
        user_data,
        cost: prices.map(|prices| cost_change(deployment, prepared, prices)),
        verbose: session.verbose > 0,
    };
    session.printer.note(view.text());
}
