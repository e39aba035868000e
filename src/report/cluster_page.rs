//! The page about a cluster, section by section.

use super::connections::{Origin, connections_between_machines, port_in_words, short_name};
use super::deletion::deletion_section;
use super::machines::{gpu_count, machine_count, machines_section};
use super::markup::{HtmlElement, element};
use super::page::{Page, Section};
use super::picture::{Marks, cluster_picture};
use super::policies::{costs_section, policies_section};
use super::sources::ReportSources;
use super::stacks::{image_section, nodes_section, stacks_section};
use super::table::{html_table, note_paragraph, number_cell, scrolling_box, text_cell};

use crate::blueprint::{Blueprint, Rule, Source};
use crate::plural::noun_for;

/// The page as text.
pub(crate) fn cluster_page(sources: &ReportSources<'_>) -> String {
    let blueprint = sources.blueprint;
    let cluster = &blueprint.cluster;
    let live = sources.live.as_ref();
    let status = live.and_then(|live| live.status);
    let mut sections = vec![
        picture_section(blueprint),
        connections_section(blueprint),
        machines_section(blueprint),
        stacks_section(blueprint, live),
    ];
    sections.extend(status.map(nodes_section));
    sections.extend([
        image_section(blueprint, sources.images, status, sources.now.date()),
        sources.certificates.section(),
        costs_section(sources.costs, sources.prices, sources.now.date()),
        policies_section(sources.policies),
        deletion_section(blueprint, live.map(|live| live.destroy), sources.s3_uri),
    ]);
    let when = sources.now.date();
    let read = if live.is_some() { "with what AWS reported" } else { "from files alone, without AWS" };
    Page {
        kind: "infra report",
        heading: cluster.name.to_string(),
        subtitle: format!(
            "{} · Kubernetes {} · https://{}",
            cluster.region, cluster.kubernetes.version, cluster.external_dns_name
        ),
        figures: cluster_figures(sources),
        sections,
        foot: format!(
            "Made on {when} by infra {}, {read}. No part of this page is fetched.",
            sources.version
        ),
    }
    .write()
}

fn cluster_figures(sources: &ReportSources<'_>) -> Vec<(String, String)> {
    let blueprint = sources.blueprint;
    let mut figures: Vec<(String, String)> = Vec::new();
    let mut add = |value: String, what: &str| figures.push((value, what.to_owned()));
    if let Some(live) = &sources.live {
        add(
            match live.status {
                Some(report) if report.healthy => "healthy".to_owned(),
                Some(_) => "not healthy".to_owned(),
                None => "not created".to_owned(),
            },
            "health",
        );
    }
    let machines = machine_count(blueprint);
    add(machines.to_string(), &noun_for(machines, "machine"));
    let gpus = gpu_count(blueprint);
    if gpus > 0 {
        add(gpus.to_string(), &noun_for(gpus, "GPU"));
    }
    let zones = blueprint.cluster.availability_zones.len();
    add(zones.to_string(), &noun_for(zones, "availability zone"));
    if let Some(days) = sources.certificates.first_days_left() {
        add(days.to_string(), &format!("{} until a certificate expires", noun_for(days, "day")));
    }
    figures
}

fn picture_section(blueprint: &Blueprint) -> Section {
    Section::new("picture", "The cluster")
        .part(scrolling_picture(cluster_picture(blueprint, &Marks::default())))
        .part(note_paragraph(
            "Columns are availability zones, bands are security groups, squares are machines. AWS spreads the machines of controllers and of a pool over its availability zones; the picture shows an even spread.",
        ))
}

/// The picture in a box that scrolls.
pub(super) fn scrolling_picture(picture: HtmlElement) -> HtmlElement {
    scrolling_box("Picture of the cluster", element("div").class("drawing").child(picture))
}

/// The table beside the picture.
pub(super) fn connections_section(blueprint: &Blueprint) -> Section {
    let connections = connections_between_machines(blueprint);
    let from = |rule: &Rule, origin: Origin| match &rule.from {
        Source::Range(range) => range.to_string(),
        Source::SecurityGroup(_) => origin.name().to_owned(),
    };
    let rows = connections.iter().flat_map(|connection| {
        connection.rules.iter().map(move |rule| {
            vec![
                element("th").with("scope", "row").class("number-cell").text(connection.number),
                text_cell(from(rule, connection.from)),
                text_cell(short_name(connection.to)),
                number_cell(port_in_words(rule)),
                text_cell(rule.why),
            ]
        })
    });
    let head = ["Arrow", "From", "To", "Port", "Why"];
    Section::new("connections", "Who may talk to whom")
        .part(html_table("Every allowed connection", &head, rows))
        .part(note_paragraph("Everything else is refused by the security groups. Machines may open connections to the internet."))
}
