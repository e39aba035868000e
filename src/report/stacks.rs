//! The sections about stacks, and about what of them was read in AWS: status, nodes, images.

use time::Date;
use time::macros::format_description;

use super::markup::{HtmlElement, element};
use super::page::Section;
use super::sources::{LiveSources, PageImage};
use super::table::{
    code_cell, code_element, html_table, note_paragraph, number_cell, paragraph, row_head, text_cell,
};
use crate::blueprint::{Blueprint, StackPart};
use crate::config::PoolImage;
use crate::deploy::status::shape::{ImageState, StatusReport};
use crate::deploy::status::snapshot::snapshot_age_in_words;
use crate::plural::count_of;

/// The section about stacks: their status if AWS was read, else what each holds.
pub(super) fn stacks_section(blueprint: &Blueprint, live: Option<&LiveSources<'_>>) -> Section {
    let section = Section::new("stacks", "Stacks");
    let Some(live) = live else {
        return section
            .part(note_paragraph("AWS was not read for this page. `infra report --online` adds the status of stacks and nodes."))
            .part(planned_stacks_table(blueprint));
    };
    match live.status {
        None => section
            .part(paragraph("Nothing of this cluster exists in AWS; `infra up` creates these stacks."))
            .part(planned_stacks_table(blueprint)),
        Some(report) => section
            .part(health_verdict(report))
            .parts(status_messages(report))
            .part(stack_status_table(report)),
    }
}

/// What each stack holds, and which ones it needs.
fn planned_stacks_table(blueprint: &Blueprint) -> HtmlElement {
    let cluster = &blueprint.cluster;
    let parts = StackPart::of_cluster(cluster);
    let rows = parts.iter().map(|part| {
        let needs = part.needs().iter().filter(|needed| parts.contains(needed));
        let needs: Vec<String> = needs.map(ToString::to_string).collect();
        let holds = match part {
            StackPart::Network if blueprint.network.adopted_vpc.is_some() => {
                "security groups, private hosted zone"
            }
            StackPart::Network => "VPC, subnets, security groups, private hosted zone",
            StackPart::Storage => "the shared file system and its mount targets",
            StackPart::ControlPlane => "etcd members, controllers, load balancers, IAM roles",
            StackPart::Pool(_) => "the nodes of the pool, and their IAM role",
        };
        let needs = if needs.is_empty() { "–".to_owned() } else { needs.join(", ") };
        vec![row_head(part.stack_name(&cluster.name)), text_cell(holds), text_cell(needs)]
    });
    html_table("Stacks of the cluster", &["Stack", "Holds", "Needs"], rows)
}

fn health_verdict(report: &StatusReport) -> HtmlElement {
    let (class, word) =
        if report.healthy { ("pill good", "✓ healthy") } else { ("pill bad", "! not healthy") };
    element("p")
        .child(element("span").class(class).text(word))
        .text(" API ")
        .text(report.api.state)
        .text(" at ")
        .child(code_element(&report.api.endpoint))
}

fn status_messages(report: &StatusReport) -> Option<HtmlElement> {
    let line = |class: &str, sign: &str, text: &String| {
        element("li")
            .child(element("span").class(format!("sign {class}")).text(sign))
            .child(element("span").text(text))
    };
    let problems = report.problems.iter().map(|text| line("bad", "!", text));
    let warnings = report.warnings.iter().map(|text| line("warning", "?", text));
    let lines: Vec<HtmlElement> = problems.chain(warnings).collect();
    (!lines.is_empty()).then(|| element("ul").class("lines").children(lines))
}

fn stack_status_table(report: &StatusReport) -> HtmlElement {
    let rows = report.stacks.iter().map(|stack| {
        let (class, sign) = if stack.good { ("pill good", "✓") } else { ("pill bad", "!") };
        let status = element("span").class(class).text(format!("{sign} {}", stack.status));
        vec![row_head(&stack.name), element("td").child(status)]
    });
    html_table("Stacks and their status", &["Stack", "Status"], rows)
}

/// The section about nodes and etcd as AWS and the API report them.
pub(super) fn nodes_section(report: &StatusReport) -> Section {
    let members = format!("{} of {} in service", report.etcd.in_service, report.etcd.wanted);
    let etcd = vec![row_head("etcd members"), text_cell(members), text_cell("–"), text_cell("")];
    let nodes = report.nodes.iter().map(|nodes| {
        let gpus = if nodes.gpus == 0 { "–".to_owned() } else { nodes.gpus.to_string() };
        let mut remarks = nodes.not_ready.clone();
        if nodes.outdated > 0 {
            remarks.push(format!("{} outdated", count_of(nodes.outdated, "machine")));
        }
        let name =
            if nodes.pool == "controllers" { nodes.pool.clone() } else { format!("pool {}", nodes.pool) };
        let ready = format!("{} of {} Ready", nodes.ready, nodes.wanted);
        vec![row_head(name), text_cell(ready), number_cell(gpus), text_cell(remarks.join("; "))]
    });
    let head = ["Role", "State", "GPUs", "Remarks"];
    let mut section = Section::new("nodes", "Nodes now").part(html_table(
        "Nodes by role",
        &head,
        std::iter::once(etcd).chain(nodes),
    ));
    if let Some(snapshot) = &report.snapshot {
        section = section.part(paragraph(match &snapshot.newest {
            Some(newest) => {
                format!("The newest snapshot of etcd is {} old.", snapshot_age_in_words(newest.age_minutes))
            }
            None => format!("There is no snapshot of etcd below {} yet.", snapshot.address),
        }));
    }
    if let Some(system) = &report.file_system {
        let targets = count_of(system.mount_targets, "mount target");
        section = section
            .part(paragraph(format!("The file system {} is {}, with {targets}.", system.id, system.state)));
    }
    section
}

/// The section about the images of the operating systems.
pub(super) fn image_section(
    blueprint: &Blueprint,
    images: &[PageImage],
    status: Option<&StatusReport>,
    today: Date,
) -> Section {
    let section = Section::new("image", "Images");
    let section = if images.is_empty() {
        section.part(paragraph("There is no infra.lock yet: `infra lock` or the first `infra up` writes it."))
    } else {
        let row = |image: &PageImage| {
            let age = day_in_name(image).map_or_else(
                || "–".to_owned(),
                |day| format!("{}, by its name", count_of((today - day).whole_days(), "day")),
            );
            vec![
                row_head(&image.name),
                code_cell(&image.id),
                text_cell(booted_by(blueprint, image.system)),
                text_cell(age),
            ]
        };
        let head = ["Image in infra.lock", "Id", "Booted by", "Age"];
        section.part(html_table("Images in infra.lock", &head, images.iter().map(row)))
    };
    let is_missing = |system: PoolImage| {
        let is_needed = blueprint.cluster.pools.iter().any(|pool| pool.image == system);
        is_needed && !images.is_empty() && images.iter().all(|image| image.system != system)
    };
    let section = if is_missing(PoolImage::DeepLearning) {
        section.part(note_paragraph(
            "infra.lock does not name the Deep Learning image yet; `infra lock` looks it up.",
        ))
    } else {
        section
    };
    let Some(status) = status else {
        return section
            .part(note_paragraph("Only AWS knows when an image was created that has no day in its name: `infra report --online` reads it."));
    };
    let row = |image: &ImageState| {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
        let age = image.age_days.map_or_else(|| image.state.clone(), |days| count_of(days, "day"));
        vec![
            row_head(image.name.as_ref().unwrap_or(&image.id)),
            number_cell(age),
            text_cell(text(&image.created)),
            text_cell(text(&image.deleted_about)),
            code_cell(image.stacks.join(", ")),
        ]
    };
    let head = ["Image in use", "Age", "Created", "Deleted by its publisher about", "Stacks"];
    section.part(html_table("Images in use", &head, status.images.iter().map(row)))
}

/// The machines that boot an image.
fn booted_by(blueprint: &Blueprint, system: PoolImage) -> String {
    let others = if system == PoolImage::Flatcar { &["etcd members", "controllers"][..] } else { &[] };
    let pools = blueprint.cluster.pools.iter().filter(|pool| pool.image == system);
    let names = others.iter().map(ToString::to_string);
    let names: Vec<String> = names.chain(pools.map(|pool| format!("pool {}", pool.name))).collect();
    if names.is_empty() { "no machine".to_owned() } else { names.join(", ") }
}

/// The day of a Deep Learning image, with which its name ends. Flatcar's names have a version.
fn day_in_name(image: &PageImage) -> Option<Date> {
    let day = image.name.rsplit(' ').next().filter(|_| image.system == PoolImage::DeepLearning)?;
    Date::parse(day, format_description!("[year][month][day]")).ok()
}
