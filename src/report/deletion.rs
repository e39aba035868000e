//! The section about `infra destroy`: what it would delete, in this order, and what it would keep.

use super::markup::{HtmlElement, element};
use super::page::Section;
use super::table::{code_cell, html_table, note_paragraph, paragraph, row_head, text_cell};
use crate::blueprint::{Blueprint, StackPart};
use crate::config::FileSystemSource;
use crate::config::values::S3Uri;
use crate::deploy::destroy::DestroyPlan;
use crate::deploy::event::DestroyItem;

type Line = [String; 3];

const UNLESS: &str = "data: deleted only with --delete-data";

/// The section; without a plan from AWS it says what follows from cluster.yaml.
pub(super) fn deletion_section(
    blueprint: &Blueprint,
    plan: Option<&DestroyPlan>,
    s3_uri: Option<&S3Uri>,
) -> Section {
    let section = Section::new("destroy", "What infra destroy would do");
    let line = |item: &DestroyItem| {
        let resource = &item.resource;
        [resource.kind.name().to_owned(), resource.id.clone(), item.why.clone()]
    };
    let Some(plan) = plan else {
        return section
            .part(note_paragraph("As cluster.yaml says; `infra report --online` lists what exists."))
            .parts(deletion_lists(&deleted_by_destroy(blueprint), &kept_by_destroy(blueprint, s3_uri)));
    };
    let [delete, keep, foreign] =
        [&plan.delete, &plan.keep, &plan.foreign].map(|items| items.iter().map(line).collect::<Vec<Line>>());
    let section = if delete.is_empty() {
        section.part(paragraph("Nothing of this cluster is left to delete."))
    } else {
        section
    };
    let section = section.parts(deletion_lists(&delete, &keep));
    if foreign.is_empty() {
        return section;
    }
    section
        .part(element("h3").text("Foreign resources in its network; they are kept, and block its deletion"))
        .part(list("Foreign resources", &foreign))
}

fn deletion_lists(delete: &[Line], keep: &[Line]) -> Vec<HtmlElement> {
    let mut parts = Vec::new();
    for (title, lines) in [("Deleted, in this order", delete), ("Kept", keep)] {
        if !lines.is_empty() {
            parts.extend([element("h3").text(title), list(title, lines)]);
        }
    }
    parts
}

fn list(name: &str, lines: &[Line]) -> HtmlElement {
    let rows = lines.iter().map(|[kind, id, why]| vec![row_head(kind), code_cell(id), text_cell(why)]);
    html_table(name, &["What", "Which", "Why"], rows)
}

fn deleted_by_destroy(blueprint: &Blueprint) -> Vec<Line> {
    let cluster = &blueprint.cluster;
    let stack =
        |part: &StackPart, why: &str| ["stack".to_owned(), part.stack_name(&cluster.name), why.to_owned()];
    let mut lines: Vec<Line> = cluster
        .pools
        .iter()
        .map(|pool| stack(&StackPart::Pool(pool.name.clone()), "machines and their IAM role"))
        .collect();
    if cluster.dns.manage {
        let name = cluster.external_dns_name.to_string();
        lines.push(["public record".to_owned(), name, "if it still points at this cluster".to_owned()]);
    }
    lines.push(stack(&StackPart::ControlPlane, "controllers, etcd members and load balancers"));
    if cluster.file_system.is_some() {
        lines.push(stack(&StackPart::Storage, "mount targets; the file system itself is kept"));
    }
    lines.push([
        "uploaded assets".to_owned(),
        cluster.name.to_string(),
        "boot configs and templates".to_owned(),
    ]);
    lines.push(stack(&StackPart::Network, "subnets, security groups and the private hosted zone"));
    lines
}

fn kept_by_destroy(blueprint: &Blueprint, s3_uri: Option<&S3Uri>) -> Vec<Line> {
    let cluster = &blueprint.cluster;
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |what: &str, which: String, why: &str| lines.push([what.to_owned(), which, why.to_owned()]);
    match cluster.file_system.as_ref().map(|system| &system.source) {
        Some(FileSystemSource::Created { .. }) => {
            add("file system", blueprint.names.file_system.clone(), UNLESS);
        }
        Some(FileSystemSource::Adopted { id, .. }) => {
            add("file system", id.to_string(), "existed before the cluster");
        }
        None => {}
    }
    add("snapshots of etcd", "in the bucket, and of etcd's disks".to_owned(), UNLESS);
    if let Some(s3_uri) = s3_uri {
        add("bucket", s3_uri.bucket().to_owned(), "may hold more than this cluster's objects");
    }
    add("KMS key", cluster.kms_key.to_string(), "never deleted by infra");
    if let Some(vpc) = &blueprint.network.adopted_vpc {
        add("VPC", vpc.to_string(), "existed before the cluster");
    }
    lines
}
