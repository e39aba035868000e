//! The page about a plan: machines first, then the picture of what changes, then each stack with what changes in it.

use super::cluster_page::{connections_section, scrolling_picture};
use super::markup::{HtmlElement, element};
use super::page::{Page, Section};
use super::picture::{Mark, Marks, cluster_picture};
use super::table::{note_paragraph, paragraph, scrolling_box};
use crate::blueprint::Blueprint;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanSign {
    /// Text without a meaning of its own, and lines of files that do not change.
    Plain,
    /// A creation.
    Add,
    /// A change in place.
    Change,
    /// A replacement.
    Replace,
    /// A deletion.
    Remove,
    /// A warning.
    Warning,
}

impl PlanSign {
    fn look(self) -> (&'static str, &'static str) {
        let of = |mark: Mark| (mark.sign(), mark.class());
        match self {
            Self::Plain => ("", ""),
            Self::Add => of(Mark::Create),
            Self::Change => of(Mark::Change),
            Self::Replace => of(Mark::Replace),
            Self::Remove => of(Mark::Delete),
            Self::Warning => ("!", "bad"),
        }
    }
}

/// A line with its depth: 1 is a resource or a role, 2 a property, 3 a file, 4 a line of a file.
#[derive(Clone, Debug)]
pub(crate) struct PlanLine {
    /// How deep the line is.
    pub depth: usize,
    /// What the line is about.
    pub sign: PlanSign,
    /// The line itself.
    pub text: String,
}

/// A stack of the plan.
#[derive(Clone, Debug)]
pub(crate) struct PlanStack {
    /// Which stack it is, and what happens to it.
    pub title: String,
    /// What happens in the stack; nothing if it does not change.
    pub lines: Vec<PlanLine>,
    /// Whether something is lost in the stack.
    pub loses: bool,
}

/// Everything that the page shows.
#[derive(Clone, Debug)]
pub(crate) struct PlanPage<'a> {
    /// The cluster as cluster.yaml describes it.
    pub blueprint: &'a Blueprint,
    /// What the plan does to the things in the picture.
    pub marks: Marks,
    /// The plan in one line.
    pub summary: String,
    /// What changes in the cost of the cluster, in one line, if prices are known.
    pub cost: Option<String>,
    /// Whether anything changes.
    pub changes: bool,
    /// What happens to machines; without changes, the pools that the clock holds.
    pub machines: Vec<PlanLine>,
    /// Resources that are replaced or deleted, with the consequences.
    pub warnings: Vec<String>,
    /// Every stack.
    pub stacks: Vec<PlanStack>,
    /// The version of infra.
    pub version: &'a str,
}

/// The page as text.
pub(crate) fn plan_page(plan: &PlanPage<'_>) -> String {
    let mut sections = Vec::new();
    if plan.changes {
        let warnings = plan.warnings.iter().map(|text| PlanLine {
            depth: 1,
            sign: PlanSign::Warning,
            text: text.clone(),
        });
        let warnings: Vec<PlanLine> = warnings.collect();
        let mut machines =
            with_cost(plan, Section::new("machines", "Machines").part(lines_as_list(&plan.machines)));
        if !warnings.is_empty() {
            machines =
                machines.part(element("h3").text("Replaced or deleted")).part(lines_as_list(&warnings));
        }
        sections.push(machines);
        sections.push(
            Section::new("picture", "What changes")
                .part(scrolling_picture(cluster_picture(plan.blueprint, &plan.marks)))
                .part(legend_of_signs())
                .part(note_paragraph("The cluster as it is after this plan, and pools that it deletes. What is not marked stays as it is.")),
        );
        sections.push(planned_stacks_section(&plan.stacks));
        sections.push(connections_section(plan.blueprint));
    } else {
        let mut machines =
            Section::new("machines", "Machines").part(paragraph("None is created, replaced or terminated."));
        if !plan.machines.is_empty() {
            machines = machines.part(lines_as_list(&plan.machines));
        }
        sections.push(with_cost(plan, machines));
    }
    Page {
        kind: "infra plan",
        heading: plan.blueprint.cluster.name.to_string(),
        subtitle: plan.summary.clone(),
        figures: Vec::new(),
        sections,
        foot: format!("Made by infra {}. No part of this page is fetched.", plan.version),
    }
    .write()
}

fn with_cost(plan: &PlanPage<'_>, section: Section) -> Section {
    match &plan.cost {
        Some(cost) => section.part(paragraph(cost)),
        None => section,
    }
}

/// The signs of the picture and of the lists, with their words.
fn legend_of_signs() -> HtmlElement {
    let words = [Mark::Create, Mark::Change, Mark::Replace, Mark::Delete].map(|mark| {
        let text = format!("{} {}", mark.sign(), mark.class());
        element("span").class(format!("pill {}", mark.class())).text(text)
    });
    let mut paragraph = element("p");
    for word in words {
        paragraph = paragraph.child(word).text(" ");
    }
    paragraph
}

fn planned_stacks_section(stacks: &[PlanStack]) -> Section {
    let mut section = Section::new("stacks", "Stacks");
    let unchanged: Vec<&PlanStack> = stacks.iter().filter(|stack| stack.lines.is_empty()).collect();
    for stack in stacks.iter().filter(|stack| !stack.lines.is_empty()) {
        let mut details = element("details");
        if stack.loses {
            details = details.with("open", "open");
        }
        section = section.part(
            details
                .child(element("summary").text(&stack.title))
                .children(planned_stack_contents(&stack.lines)),
        );
    }
    if unchanged.is_empty() {
        return section;
    }
    let lines = unchanged.iter().map(|stack| element("li").child(element("span").text(&stack.title)));
    section.part(element("ul").class("lines").children(lines))
}

/// The lines of a stack; each file of user data that changes opens by itself.
fn planned_stack_contents(lines: &[PlanLine]) -> Vec<HtmlElement> {
    let mut parts = Vec::new();
    let mut open: Vec<PlanLine> = Vec::new();
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        let inside = after.iter().take_while(|next| line.depth == 3 && next.depth > 3).count();
        let (inside, after) = after.split_at(inside);
        if inside.is_empty() {
            open.push(line.clone());
        } else {
            if !open.is_empty() {
                parts.push(lines_as_list(&std::mem::take(&mut open)));
            }
            parts.push(user_data_file(line, inside));
        }
        rest = after;
    }
    if !open.is_empty() {
        parts.push(lines_as_list(&open));
    }
    parts
}

fn user_data_file(line: &PlanLine, inside: &[PlanLine]) -> HtmlElement {
    let diff = inside.iter().map(|line| {
        let (class, sign) = match line.sign {
            PlanSign::Add => ("add", "+"),
            PlanSign::Remove => ("remove", "-"),
            _ => ("", " "),
        };
        let span = element("span").text(format!("{sign} {}", line.text));
        if class.is_empty() { span } else { span.class(class) }
    });
    let name = format!("How {} changes", line.text);
    let more =
        element("span").class("more").text(format!(" {}", crate::plural::count_of(inside.len(), "line")));
    element("details")
        .child(element("summary").child(element("code").text(&line.text)).child(more))
        .child(scrolling_box(&name, element("pre").class("diff").children(diff)))
}

fn lines_as_list(lines: &[PlanLine]) -> HtmlElement {
    element("ul").class("lines").children(lines.iter().map(|line| {
        let (sign, class) = line.sign.look();
        let depth = match line.depth {
            0 | 1 => "",
            2 => "inner",
            _ => "innermost",
        };
        let mark = element("span").class(format!("sign {class}").trim_end()).text(sign);
        let item = element("li").child(mark).child(element("span").text(&line.text));
        if depth.is_empty() { item } else { item.class(depth) }
    }))
}
