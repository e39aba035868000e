//! `infra job submit --dry-run`: what a submission would use, whether it fits now, what it would wait for.

use super::code::size_of;
use super::runs::in_units;
use crate::blueprint::{Cost, CostSummary};
use crate::cli::deployment::prices::{any_lock, today};
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::deploy::ImageLock;
use crate::job::life::{PlannedAction, PlannedRole, SubmissionPlan};
use crate::job::{NeededMachines, TrainingJob, needed_machines};
use crate::plural::count_of;

/// Prints the plan of a submission.
pub(super) fn print_plan(plan: &SubmissionPlan, session: &Session) -> anyhow::Result<Exit> {
    match session.output {
        Output::Json => session.printer.json(plan)?,
        Output::Text | Output::Markdown | Output::Html => session.printer.data(submission_plan_text(plan))?,
    }
    session.printer.note("nothing was written");
    Ok(if plan.unmet.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Adds the machines that a job needs, and what they cost by the prices in infra.lock.
pub(super) fn add_machines(
    plan: &mut SubmissionPlan,
    job: &TrainingJob,
    cluster: &TargetCluster,
    session: &Session,
) {
    let Some(blueprint) = cluster.blueprint() else { return };
    let (name, region) = (blueprint.cluster.name.as_str(), blueprint.cluster.region.as_str());
    let lock = any_lock(session).filter(|lock| lock.cluster == name && lock.region == region);
    let blocks = lock.as_ref().map(ImageLock::block_ids).unwrap_or_default();
    plan.machines = needed_machines(job, blueprint, &blocks);
    let prices = lock.and_then(|lock| lock.prices);
    if let (Some(machines), Some(prices)) = (&plan.machines, &prices) {
        let cost = Cost::of(machines.iter().map(|machines| (machines.count, &machines.charge)), prices);
        plan.cost = Some(CostSummary::new(&cost, prices, today()));
    }
}

fn describe_machines(machines: &[NeededMachines]) -> String {
    let of_pool = |machines: &NeededMachines| {
        format!("{} of pool {}", count_of(machines.count, "machine"), machines.pool)
    };
    machines.iter().map(of_pool).collect::<Vec<_>>().join(", ")
}

fn submission_plan_text(plan: &SubmissionPlan) -> String {
    let mut lines = vec![plan_headline(plan), table(plan)];
    let mut facts = vec![match plan.gpus {
        0 => "no GPUs".to_owned(),
        gpus => format!("{} in all", count_of(gpus, "GPU")),
    }];
    facts.push(plan.pool.as_ref().map_or_else(|| "any pool".to_owned(), |pool| format!("pool {pool}")));
    facts.push(match plan.retries {
        0 => "no retries".to_owned(),
        1 => "1 retry".to_owned(),
        retries => format!("{retries} retries"),
    });
    facts.push(
        plan.deadline_seconds
            .map_or_else(|| "no deadline".to_owned(), |seconds| format!("at most {}", in_units(seconds))),
    );
    lines.push(facts.join(", "));
    if let Some(code) = &plan.code {
        let size = size_of(code.files, code.bytes);
        lines.push(format!(
            "code: {size}, at {}; uploaded unless {} is on the claim",
            code.mounted_at, code.directory
        ));
    }
    if let (Some(machines), Some(cost)) = (&plan.machines, &plan.cost) {
        lines.push(format!(
            "fills {}: {} for them alone ({})",
            describe_machines(machines),
            cost.hourly(),
            cost.basis()
        ));
    }
    let own = [
        plan.imports_data.then(|| match &plan.fetches_from {
            Some(source) => {
                format!("its data in {source}, which is fetched by links that your AWS credentials sign, then imported")
            }
            None => "its data, which is imported first".to_owned(),
        }),
        plan.queue.as_ref().map(|queue| format!("queue {queue}, until its quota has room")),
    ];
    let waits: Vec<String> = own.into_iter().flatten().chain(plan.remarks.iter().cloned()).collect();
    let sections =
        [("would wait for:", &waits), ("warnings:", &plan.warnings), ("cannot run now:", &plan.unmet)];
    for (heading, entries) in sections {
        if !entries.is_empty() {
            lines.push(heading.to_owned());
            lines.extend(entries.iter().map(|entry| format!("  {entry}")));
        }
    }
    lines.join("\n")
}

fn plan_headline(plan: &SubmissionPlan) -> String {
    let (namespace, name) = (&plan.namespace, &plan.name);
    let existing = plan.existing.map_or("", |state| state.name());
    let place = match &plan.run {
        Some(run) => format!("run {run} in {} on the claim {}", plan.directory, plan.claim),
        None => format!("a new run in {} on the claim {}", plan.directory, plan.claim),
    };
    match (plan.action, plan.existing) {
        (PlannedAction::Attach, _) => {
            format!("{namespace}/{name} exists and is {existing}: submit would attach to it, {place}")
        }
        (PlannedAction::Replace, Some(_)) => {
            format!(
                "{namespace}/{name} exists and is {existing}: submit would delete it, then create {place}"
            )
        }
        (PlannedAction::Create | PlannedAction::Replace, _) => {
            format!("{namespace}/{name}: submit would create {place}")
        }
    }
}

fn table(plan: &SubmissionPlan) -> String {
    let heading =
        ["ROLE", "REPLICAS", "GPUS EACH", "CPU", "MEMORY", "LIMIT", "FITS NOW", "IMAGE"].map(str::to_owned);
    let line = |role: &PlannedRole| {
        // What cannot be seen may use more.
        let is_upper_bound = !plan.sees_all || role.gpus == 0;
        let at_most = if is_upper_bound { "at most " } else { "" };
        [
            role.role.clone(),
            role.replicas.to_string(),
            role.gpus.to_string(),
            role.cpu.clone(),
            role.memory.clone(),
            role.memory_limit.clone().unwrap_or_else(|| "-".to_owned()),
            role.fits_now
                .map_or_else(|| "-".to_owned(), |fits| format!("{at_most}{fits} of {}", role.replicas)),
            role.image.clone(),
        ]
    };
    let lines: Vec<[String; 8]> = std::iter::once(heading).chain(plan.roles.iter().map(line)).collect();
    align_columns(&lines)
}
