//! The first lines of a plan: machines, what is unavailable meanwhile, whose jobs they run, and what changes in place.

use super::lines::{Line, Sign};
use super::view::PlanView;
use crate::blueprint::{Role, StackPart};
use crate::cli::deployment::machine_wording::{describe_change, name_service};
use crate::cli::terminal::foreign_text::clean_line;
use crate::deploy::{
    BlockPhase, DisruptedJob, HeldPool, Holder, MachineAction, MachineChange, PoolBlock, ResourceAction,
    Service, StackAction,
};
use crate::plural::count_of;

/// What is said of machines; never nothing.
pub(super) fn machine_lines(view: &PlanView<'_>) -> Vec<Line> {
    let changes = &view.machines.machines;
    let mut lines = Vec::new();
    if changes.is_empty() {
        lines.push(Line::new(1, Sign::Plain, "none is created, replaced or terminated"));
    }
    for alike in changes.chunk_by(is_same_for_members) {
        let alike: Vec<&MachineChange> = alike.iter().collect();
        let Some(change) = alike.first() else { continue };
        let mut text = describe_change(&alike);
        if is_deletion(view, &change.role) {
            text.push_str("; only with --prune or a yes");
        }
        lines.push(Line::new(1, sign_of_machine_action(change.change), text));
        if let Role::Pool(pool) = &change.role
            && change.change.terminates_machines()
        {
            let jobs = view.machines.jobs.iter().flatten().filter(|job| job.pool == *pool);
            lines.extend(jobs.map(job_line));
        }
    }
    lines.extend(view.machines.released.iter().map(|released| {
        let text = format!(
            "pool {} gets its own limits again: {} to {}",
            released.pool,
            released.minimum,
            count_of(released.maximum, "machine")
        );
        Line::new(1, Sign::Change, text)
    }));
    lines.extend(held_lines(view));
    lines.extend(unknown_jobs(view));
    lines.extend(outage_lines(view));
    lines.extend(changes_in_place(view));
    lines
}

/// The pools whose size stays, because the clock holds them, and those with capacity blocks.
pub(super) fn held_lines(view: &PlanView<'_>) -> Vec<Line> {
    let line = |HeldPool { pool, machines, by }: &HeldPool| {
        let until = match by {
            Holder::Schedule => "",
            Holder::Expires => "; another expires, or none, starts it again",
        };
        let machines = count_of(*machines, "machine");
        let text = format!("pool {pool} is held at {machines} by {}: its size stays{until}", by.name());
        Line::new(1, Sign::Plain, text)
    };
    let blocks = view.machines.blocks.iter().map(block_line);
    view.machines.held.iter().map(line).chain(blocks).collect()
}

fn block_line(block: &PoolBlock) -> Line {
    let PoolBlock { pool, id, .. } = block;
    let (doing, next) = match block.phase {
        BlockPhase::ToCome => ("waits for", "; no machines until then"),
        BlockPhase::Open => ("is in", ""),
        BlockPhase::Over => ("is after", "; it has no machines: name another block, or remove the pool"),
    };
    let text = format!("pool {pool} {doing} its capacity block {id}: {}{next}", block.times());
    Line::new(1, Sign::Plain, text)
}

fn is_same_for_members(one: &MachineChange, other: &MachineChange) -> bool {
    let are_members = matches!((&one.role, &other.role), (Role::EtcdMember(_), Role::EtcdMember(_)));
    are_members && one.change == other.change
}

fn is_deletion(view: &PlanView<'_>, role: &Role) -> bool {
    let Role::Pool(pool) = role else { return false };
    view.plan.deletions().any(|stack| stack.part == StackPart::Pool(pool.clone()))
}

fn sign_of_machine_action(change: MachineAction) -> Sign {
    match change {
        MachineAction::Create => Sign::Add,
        MachineAction::Replace { .. } | MachineAction::ReplaceGroup | MachineAction::ReplaceUnfitting => {
            Sign::Replace
        }
        MachineAction::StayOutdated => Sign::Change,
        MachineAction::Terminate => Sign::Remove,
    }
}

fn job_line(DisruptedJob { namespace, job, pod, node, .. }: &DisruptedJob) -> Line {
    let text = format!("job {namespace}/{job} runs on {node} (pod {pod}), which will be terminated");
    Line::new(2, Sign::Warning, clean_line(&text))
}

fn unknown_jobs(view: &PlanView<'_>) -> Option<Line> {
    let reason = view.machines.jobs_unknown.as_deref()?;
    // Whatever an answer of the API says is a piece of code in Markdown.
    let reason = clean_line(reason).replace('`', "'");
    let text = format!("jobs may be running on machines that will be terminated: `{reason}`");
    Some(Line::new(1, Sign::Warning, text))
}

/// Whether the API and etcd's quorum stay available while the control plane's machines are replaced.
fn outage_lines(view: &PlanView<'_>) -> Vec<Line> {
    let machines = view.machines;
    let outages = machines.outages.iter().map(|outage| {
        let what = name_service(outage.of);
        let minutes = count_of(outage.about_minutes, "minute");
        let pods = if outage.of == Service::Api { "; running pods continue" } else { "" };
        let text = format!("{what} is unavailable for about {minutes}: {}{pods}", outage.because);
        Line::new(1, Sign::Warning, text)
    });
    let mut lines: Vec<Line> = outages.collect();
    let of_control_plane =
        |change: &MachineChange| !matches!(change.role, Role::Pool(_)) && change.change.terminates_machines();
    if lines.is_empty() && machines.machines.iter().any(of_control_plane) {
        let text = "the API stays available; requests may fail for seconds";
        lines.push(Line::new(1, Sign::Plain, text));
    }
    lines
}

/// How much changes without a new machine.
fn changes_in_place(view: &PlanView<'_>) -> Option<Line> {
    let updated = || view.plan.stacks.iter().filter(|stack| stack.action == StackAction::Update);
    let of_machines = |id: &String| view.machines.machines.iter().any(|change| change.resources.contains(id));
    let mut parts: Vec<String> = updated()
        .filter_map(|stack| {
            let changed = stack
                .changes_beyond_tags()
                .filter(|change| change.action == ResourceAction::Change && !of_machines(&change.logical_id));
            let count = changed.count();
            (count > 0).then(|| format!("{} of {}", count_of(count, "resource"), stack.part))
        })
        .collect();
    let tagged = updated().filter(|stack| !stack.tags.is_empty()).count();
    if tagged > 0 {
        parts.push(format!("tags of {}", count_of(tagged, "stack")));
    }
    (!parts.is_empty()).then(|| Line::new(1, Sign::Change, format!("in place: {}", parts.join(", "))))
}
