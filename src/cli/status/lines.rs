//! A status as lines: what, its state, and details. Each line knows what it is about, so that two of them can be compared.

use std::fmt::Write as _;

use crate::cli::terminal::printer::align_columns;
use crate::config::values::ClusterName;
use crate::deploy::{
    BlockPhase, EtcdState, ImageState, NodesState, PoolBlock, ScheduleState, SnapshotState, StatusReport,
    snapshot_age_in_words,
};
use crate::plural::count_of;

/// A status on one screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusLines {
    pub(super) title: String,
    pub(super) lines: Vec<StatusLine>,
    /// What is wrong, and what will be: the mark in front, and the text.
    pub(super) remarks: Vec<(char, String)>,
}

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusLine {
    /// What it is about; no two lines are about the same.
    pub(super) about: String,
    pub(super) cells: [String; 3],
    /// Whether its state changes with every minute or day, which is no news.
    pub(super) is_age: bool,
}

impl StatusLine {
    /// What is news when it changes.
    pub(super) fn fact(&self) -> (&str, &str) {
        let [_, state, detail] = &self.cells;
        (if self.is_age { "" } else { state }, detail)
    }
}

impl StatusLines {
    pub(super) fn of(report: Option<&StatusReport>, name: &ClusterName) -> Self {
        match report {
            Some(report) => Self::of_report(report),
            None => {
                let title = format!("{name}: there is no such cluster; `infra up` creates it");
                Self { title, ..Self::default() }
            }
        }
    }

    /// All of it, as it is printed once.
    pub(super) fn text(&self) -> String {
        let cells: Vec<[String; 3]> = self.lines.iter().map(|line| line.cells.clone()).collect();
        let mut text = self.title.clone();
        if !cells.is_empty() {
            let _ = write!(text, "\n{}", align_columns(&cells));
        }
        for (mark, remark) in &self.remarks {
            let _ = write!(text, "\n{mark} {remark}");
        }
        text
    }

    fn of_report(report: &StatusReport) -> Self {
        let verdict = if report.healthy { "healthy" } else { "NOT HEALTHY" };
        let problems = report.problems.iter().map(|problem| ('!', problem.clone()));
        let warnings = report.warnings.iter().map(|warning| ('?', warning.clone()));
        Self {
            title: format!("{}: {verdict}", report.cluster),
            lines: lines_of(report),
            remarks: problems.chain(warnings).collect(),
        }
    }
}

fn lines_of(report: &StatusReport) -> Vec<StatusLine> {
    let mut lines = Vec::new();
    let mut add = |of: &str, cells: [String; 3]| {
        let about = format!("{}/{of}", cells[0]);
        lines.push(StatusLine { about, cells, is_age: false });
    };
    let line = |what: &str, state: String, detail: String| [what.to_owned(), state, detail];
    for stack in &report.stacks {
        add(&stack.name, line("stack", stack.status.to_string(), stack.name.clone()));
    }
    let api = &report.api;
    let detail = match &api.reason {
        Some(reason) => format!("{} ({reason})", api.endpoint),
        None => api.endpoint.clone(),
    };
    add("", line("API", api.state.to_string(), detail));
    let addresses = if report.dns.resolves_to.is_empty() {
        "does not resolve from here".to_owned()
    } else {
        report.dns.resolves_to.join(", ")
    };
    add("", line("name", report.dns.record.to_string(), format!("{} → {addresses}", report.dns.name)));
    add("", etcd_line(&report.etcd));
    for nodes in &report.nodes {
        add(&nodes.pool, nodes_line(nodes));
        if let Some(schedule) = &nodes.schedule {
            add(&nodes.pool, clock_line(nodes, schedule));
        }
        if let Some(block) = &nodes.block {
            add(&nodes.pool, block_line(block));
        }
    }
    let mut add_age = |of: &str, cells: [String; 3]| {
        let about = format!("{}/{of}", cells[0]);
        lines.push(StatusLine { about, cells, is_age: true });
    };
    for image in &report.images {
        add_age(&image.id, image_line(image));
    }
    if let Some(snapshot) = &report.snapshot {
        add_age("", snapshot_line(snapshot));
    }
    if let Some(system) = &report.file_system {
        let claim = system.claim.as_deref().unwrap_or("unknown");
        let targets = count_of(system.mount_targets, "mount target");
        let detail = format!("{}, {targets}, claim {claim}", system.id);
        let cells = line("files", system.state.clone(), detail);
        lines.push(StatusLine { about: "files/".to_owned(), cells, is_age: false });
    }
    if let Some(first) = &report.certificates {
        let cells = line("keys", count_of(first.days_left, "day"), format!("{} expires first", first.name));
        lines.push(StatusLine { about: "keys/".to_owned(), cells, is_age: true });
    }
    if let Some(cost) = &report.cost {
        let cells = line("cost", cost.hourly(), cost.basis());
        lines.push(StatusLine { about: "cost/".to_owned(), cells, is_age: false });
    }
    lines
}

fn nodes_line(nodes: &NodesState) -> [String; 3] {
    let mut detail = nodes.pool.clone();
    if nodes.gpus > 0 {
        let _ = write!(detail, ", {}", count_of(nodes.gpus, "GPU"));
    }
    if nodes.outdated > 0 {
        let _ = write!(detail, ", {} outdated", nodes.outdated);
    }
    ["nodes".to_owned(), format!("{}/{} Ready", nodes.ready, nodes.wanted), detail]
}

/// What AWS does to a pool by the clock, the next change only.
fn clock_line(nodes: &NodesState, schedule: &ScheduleState) -> [String; 3] {
    let state = match schedule.held_by {
        Some(_) => format!("held at {}", nodes.wanted),
        None => "not held".to_owned(),
    };
    let mut detail = nodes.pool.clone();
    if let Some(by) = schedule.held_by {
        let _ = write!(detail, ", by {}", by.name());
    }
    // To a pool that is held, the same size again is no change: nor is an end that has passed, a year later.
    let stays = |machines: u32| schedule.held_by.is_some() && machines as usize == nodes.wanted;
    let next = schedule.actions.iter().find(|action| !action.machines.is_some_and(stays));
    if let Some(next) = next {
        let _ = match next.machines {
            _ if next.is_end => write!(detail, "; ends"),
            Some(machines) => write!(detail, "; then {}", count_of(machines, "machine")),
            None => write!(detail, "; then"),
        };
        let rule = format!("{} {}", next.at, next.time_zone);
        let _ = match &next.next_minute {
            Some(minute) => write!(detail, " on {minute} ({rule})"),
            None => write!(detail, " at {rule}"),
        };
    }
    ["clock".to_owned(), state, detail]
}

fn block_line(block: &PoolBlock) -> [String; 3] {
    let state = match block.phase {
        BlockPhase::ToCome => "to come",
        BlockPhase::Open => "open",
        BlockPhase::Over => "over",
    };
    let detail = format!("{}, {}; {}", block.pool, block.id, block.times());
    ["block".to_owned(), state.to_owned(), detail]
}

fn etcd_line(etcd: &EtcdState) -> [String; 3] {
    let missing = etcd.members.iter().filter(|member| !member.in_service);
    let missing: Vec<String> = missing
        .map(|member| match &member.state {
            Some(state) => format!("{} is {state}", member.name),
            None => format!("{} has no machine", member.name),
        })
        .collect();
    let detail = if missing.is_empty() { "members in service".to_owned() } else { missing.join(", ") };
    ["etcd".to_owned(), format!("{}/{}", etcd.in_service, etcd.wanted), detail]
}

fn image_line(image: &ImageState) -> [String; 3] {
    let state = match image.age_days {
        Some(days) if image.state == "available" => count_of(days, "day"),
        _ => image.state.clone(),
    };
    let mut detail = image.name.clone().unwrap_or_else(|| image.id.clone());
    if let Some(day) = &image.deleted_about {
        let _ = write!(detail, ", Flatcar deletes it about {day}");
    } else if let Some(day) = &image.deprecated {
        let _ = write!(detail, ", deprecated from {day}");
    }
    ["image".to_owned(), state, detail]
}

fn snapshot_line(snapshot: &SnapshotState) -> [String; 3] {
    let (state, detail) = match &snapshot.newest {
        Some(newest) => (
            format!("{} ago", snapshot_age_in_words(newest.age_minutes)),
            format!("etcd's newest snapshot: {}", newest.key),
        ),
        None => ("never".to_owned(), format!("etcd's snapshots: {}", snapshot.address)),
    };
    ["saved".to_owned(), state, detail]
}
