//! `infra status`: whether the cluster works, on one screen.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use time::OffsetDateTime;

use super::aws_access::{AwsOptions, api_address, block_on};
use super::deployment::certificate_expiries;
use super::exit::Exit;
use super::prices::prices_of;
use super::printer::{Output, columns};
use super::session::Session;
use crate::blueprint::Blueprint;
use crate::credentials::Credentials;
use crate::deploy::{
    AbsentCluster, CertificateState, EtcdState, ImageState, NodesState, ScheduleState, SnapshotState,
    StatusDocument, StatusReport, StatusSources, age,
};
use crate::plural::count_of;

/// How often `--watch` prints the status.
const INTERVAL: Duration = Duration::from_secs(10);

/// Show whether the cluster works: stacks, API, name, etcd, nodes by pool, image, snapshots, file system, certificates, cost
///
/// Exits with 3 if something is wrong or there is no such cluster. What is marked with ? will be wrong later, or could not be read, and is no reason for that. `infra schema status` describes what `--output json` prints.
#[derive(Args, Debug)]
pub(super) struct StatusArguments {
    /// Print the status again every ten seconds until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &StatusArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project_quietly()?;
    let prices = prices_of(&project, session);
    let blueprint = project.blueprint;
    let credentials = read_credentials(session, &blueprint)?;
    block_on(async {
        let clients = arguments.aws.connect(&blueprint.cluster, session).await;
        loop {
            let sources = StatusSources {
                clients: &clients,
                blueprint: &blueprint,
                credentials: credentials.as_ref(),
                api_address: api_address()?,
                now: OffsetDateTime::now_utc(),
                certificates: first_to_end(session)?,
                prices: prices.as_ref(),
            };
            let report = Box::pin(StatusReport::read(sources)).await?;
            let exit = print_status(report, &blueprint, session)?;
            if !arguments.watch {
                return Ok(exit);
            }
            tokio::select! {
                () = tokio::time::sleep(session.tempo.shorten(INTERVAL)) => {}
                _ = tokio::signal::ctrl_c() => return Ok(exit),
            }
        }
    })
}

/// Without keys everything but the API can be read.
pub(super) fn read_credentials(
    session: &Session,
    blueprint: &Blueprint,
) -> anyhow::Result<Option<Credentials>> {
    if !session.assets.has_credentials()? {
        return Ok(None);
    }
    let store = session.open_existing_credentials()?;
    Ok(Some(Credentials::read(&store, &blueprint.identities)?))
}

/// The certificate on disk that expires first.
pub(super) fn first_to_end(session: &Session) -> anyhow::Result<Option<CertificateState>> {
    let first = certificate_expiries(session)?.into_iter().min_by_key(|expiry| expiry.days_left);
    Ok(first.map(|expiry| CertificateState { name: expiry.name, days_left: expiry.days_left }))
}

fn print_status(
    report: Option<StatusReport>,
    blueprint: &Blueprint,
    session: &Session,
) -> anyhow::Result<Exit> {
    let name = &blueprint.cluster.name;
    let healthy = report.as_ref().is_some_and(|report| report.healthy);
    match (session.output, report) {
        (Output::Json, Some(report)) => session.printer.json(&StatusDocument::Report(Box::new(report)))?,
        (Output::Json, None) => {
            session.printer.json(&StatusDocument::Absent(AbsentCluster::new(name.as_str())))?;
        }
        (Output::Text | Output::Markdown | Output::Html, Some(report)) => {
            session.printer.data(status_screen(&report))?;
        }
        (Output::Text | Output::Markdown | Output::Html, None) => {
            session.printer.data(format_args!("{name}: there is no such cluster; `infra up` creates it"))?;
        }
    }
    Ok(if healthy { Exit::Done } else { Exit::Unhealthy })
}

fn status_screen(report: &StatusReport) -> String {
    let line = |what: &str, state: String, detail: String| [what.to_owned(), state, detail];
    let mut lines = Vec::new();
    for stack in &report.stacks {
        lines.push(line("stack", stack.status.to_string(), stack.name.clone()));
    }
    let api = &report.api;
    let detail = match &api.reason {
        Some(reason) => format!("{} ({reason})", api.endpoint),
        None => api.endpoint.clone(),
    };
    lines.push(line("API", api.state.to_string(), detail));
    let addresses = if report.dns.resolves_to.is_empty() {
        "does not resolve from here".to_owned()
    } else {
        report.dns.resolves_to.join(", ")
    };
    lines.push(line("name", report.dns.record.to_string(), format!("{} → {addresses}", report.dns.name)));
    lines.push(etcd_line(&report.etcd));
    for nodes in &report.nodes {
        let mut detail = nodes.pool.clone();
        if nodes.gpus > 0 {
            let _ = write!(detail, ", {}", count_of(nodes.gpus, "GPU"));
        }
        if nodes.outdated > 0 {
            let _ = write!(detail, ", {} outdated", nodes.outdated);
        }
        lines.push(line("nodes", format!("{}/{} Ready", nodes.ready, nodes.wanted), detail));
        lines.extend(nodes.schedule.as_ref().map(|schedule| clock_line(nodes, schedule)));
    }
    lines.extend(report.images.iter().map(image_line));
    lines.extend(report.snapshot.as_ref().map(snapshot_line));
    if let Some(system) = &report.file_system {
        let claim = system.claim.as_deref().unwrap_or("unknown");
        let targets = count_of(system.mount_targets, "mount target");
        let detail = format!("{}, {targets}, claim {claim}", system.id);
        lines.push(line("files", system.state.clone(), detail));
    }
    if let Some(first) = &report.certificates {
        lines.push(line("keys", count_of(first.days_left, "day"), format!("{} expires first", first.name)));
    }
    if let Some(cost) = &report.cost {
        lines.push(line("cost", cost.hourly(), cost.basis()));
    }
    let verdict = if report.healthy { "healthy" } else { "NOT HEALTHY" };
    let mut text = format!("{}: {verdict}\n{}", report.cluster, columns(&lines));
    for problem in &report.problems {
        let _ = write!(text, "\n! {problem}");
    }
    for warning in &report.warnings {
        let _ = write!(text, "\n? {warning}");
    }
    text
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
        Some(newest) => {
            (format!("{} ago", age(newest.age_minutes)), format!("etcd's newest snapshot: {}", newest.key))
        }
        None => ("never".to_owned(), format!("etcd's snapshots: {}", snapshot.address)),
    };
    ["saved".to_owned(), state, detail]
}
