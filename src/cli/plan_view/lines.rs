//! A plan as lines without colour or markup, from which the views for terminals and pull requests are made.

use serde_json::Value;

use super::view::{PlanView, is_user_data, mask_user_data};
use crate::aws::SCHEDULED_ACTION_TYPE;
use crate::blueprint::StackPart;
use crate::cli::terminal::foreign_text::clean_line;
use crate::deploy::{
    FileChange, ImageOrigin, PropertyChange, ResourceAction, ResourceChange, StackAction, StackPlan,
    TextChange,
};
use crate::plural::count_of;

/// The longest value that is not shortened.
const LONGEST_VALUE: usize = 60;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Text without a meaning of its own.
    Plain,
    /// A line of a file that does not change.
    Context,
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

/// A line and its indentation.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) depth: usize,
    pub(super) sign: Sign,
    pub(super) text: String,
}

impl Line {
    pub(super) fn new(depth: usize, sign: Sign, text: impl Into<String>) -> Self {
        Self { depth, sign, text: text.into() }
    }
}

/// What happens to a stack, in a few words.
pub(super) fn stack_action_in_words(stack: &StackPlan) -> String {
    let resources = count_of(stack.changes_beyond_tags().count(), "resource");
    match stack.action {
        StackAction::Unchanged => "no changes".to_owned(),
        StackAction::Create => format!("create ({resources})"),
        StackAction::Recreate => format!("remove what a failed creation left, create ({resources})"),
        StackAction::Update if stack.changes_beyond_tags().next().is_some() => {
            format!("update ({resources})")
        }
        StackAction::Update if !stack.tags.is_empty() => "update (tags only)".to_owned(),
        StackAction::Update => "update (outputs)".to_owned(),
        StackAction::Delete => format!("DELETE ({resources}); deleted only with --prune or a yes"),
    }
}

/// What happens to a stack, in one line; for one that gets other tags only, all of it.
pub(super) fn plan_headline(stack: &StackPlan) -> String {
    let text = format!("{}: {}", stack.part, stack_action_in_words(stack));
    if !has_other_tags_only(stack) {
        return text;
    }
    format!("{}: {})", text.trim_end_matches(')'), tag_text(stack))
}

fn has_other_tags_only(stack: &StackPlan) -> bool {
    !stack.tags.is_empty() && stack.changes_beyond_tags().next().is_none()
}

/// The tags of a stack that change, in one line.
fn tag_text(stack: &StackPlan) -> String {
    stack.tags.iter().map(property_text).collect::<Vec<_>>().join(", ")
}

/// What happens in a stack; `all` also lists the resources of stacks that are created or deleted as a whole.
pub(super) fn stack_lines(view: &PlanView<'_>, stack: &StackPlan, all: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    let is_shown = |change: &&ResourceChange| view.verbose || !stack.changes_only_stack_tags_of(change);
    for change in stack.resources.iter().filter(is_shown) {
        // When machines come and go is worth a line also in a stack that is created.
        let is_listed = all
            || stack.action == StackAction::Update
            || stack.action != StackAction::Delete && change.kind == SCHEDULED_ACTION_TYPE;
        if is_listed {
            lines.push(resource_line(view, stack, change));
        }
        lines.extend(describe_loss(change).map(|text| Line::new(2, Sign::Warning, text)));
        if stack.action == StackAction::Update {
            let files = view.files(stack, change);
            let properties = change.properties.iter();
            lines.extend(properties.flat_map(|property| property_lines(property, files, view.image)));
        }
    }
    // Without other changes they are in the headline.
    if !stack.tags.is_empty() && (all || !has_other_tags_only(stack)) {
        let text = format!("tags of the stack and of everything in it: {}", tag_text(stack));
        lines.push(Line::new(1, Sign::Change, text));
    }
    if !stack.after.is_empty() {
        let name = |stack: &String| {
            let part = StackPart::from_stack_name(&view.cluster.name, stack);
            part.map_or_else(|| stack.clone(), |part| part.to_string())
        };
        let names: Vec<String> = stack.after.iter().map(name).collect();
        let that = if names.len() == 1 { "that is" } else { "those are" };
        let text = format!("after {}: may change more once {that} done", names.join(", "));
        lines.push(Line::new(1, Sign::Plain, text));
    }
    lines
}

/// The resources that are replaced or deleted, with the consequences.
pub(super) fn plan_warnings(view: &PlanView<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for stack in &view.plan.stacks {
        match stack.action {
            StackAction::Delete => {
                warnings.push(format!("{}: {}", stack.part, stack_action_in_words(stack)));
                warnings.extend(stack.resources.iter().filter_map(describe_loss));
            }
            StackAction::Update => {
                for change in &stack.resources {
                    let word = match change.action {
                        ResourceAction::Replace => "REPLACED",
                        ResourceAction::Delete => "DELETED",
                        ResourceAction::Create | ResourceAction::Change => continue,
                    };
                    let mut text =
                        format!("{word}: {} ({})", view.describe(stack, change), change.logical_id);
                    if let Some(consequence) = describe_loss(change) {
                        text = format!("{text}: {consequence}");
                    }
                    warnings.push(text);
                }
            }
            StackAction::Create | StackAction::Recreate | StackAction::Unchanged => {}
        }
    }
    warnings
}

fn resource_line(view: &PlanView<'_>, stack: &StackPlan, change: &ResourceChange) -> Line {
    let (sign, word) = match change.action {
        ResourceAction::Create => (Sign::Add, ""),
        ResourceAction::Change => (Sign::Change, ""),
        ResourceAction::Replace => (Sign::Replace, "REPLACED: "),
        ResourceAction::Delete => (Sign::Remove, ""),
    };
    let description = view.describe(stack, change);
    Line::new(1, sign, format!("{word}{description} ({}, {})", change.logical_id, change.kind))
}

/// The consequence of losing a resource that holds data or an address.
fn describe_loss(change: &ResourceChange) -> Option<String> {
    let replaced = match change.action {
        ResourceAction::Replace => true,
        ResourceAction::Delete => false,
        ResourceAction::Create | ResourceAction::Change => return None,
    };
    let member = etcd_member(&change.logical_id);
    match (change.kind.as_str(), member) {
        ("AWS::EC2::Volume", Some(member)) => Some(format!("etcd member {member} loses its disk")),
        ("AWS::EC2::Volume", None) => Some("what is on the disk is lost".to_owned()),
        ("AWS::EFS::FileSystem", _) if replaced => {
            Some("all files in the shared file system are left behind in the old one".to_owned())
        }
        ("AWS::EFS::FileSystem", _) => {
            Some("the cluster loses all files in the shared file system".to_owned())
        }
        ("AWS::ElasticLoadBalancingV2::LoadBalancer", _) => Some("clients lose the API's address".to_owned()),
        ("AWS::AutoScaling::AutoScalingGroup", Some(member)) if replaced => {
            Some(format!("etcd member {member} is unavailable until its new machine has joined"))
        }
        ("AWS::AutoScaling::AutoScalingGroup", Some(member)) => {
            Some(format!("etcd member {member} is deleted"))
        }
        _ => None,
    }
}

/// The number of the etcd member that a resource belongs to.
fn etcd_member(logical_id: &str) -> Option<u32> {
    let name = logical_id.strip_prefix("Etcd")?;
    name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

fn property_lines(
    property: &PropertyChange,
    files: Option<&[FileChange]>,
    image: Option<&ImageOrigin>,
) -> Vec<Line> {
    if !is_user_data(&property.path) {
        let origin = image.filter(|image| property.to.as_ref().and_then(Value::as_str) == Some(&image.id));
        let origin = origin.map(|ImageOrigin { name, owner, .. }| {
            let text = format!("{} of account {owner}", shorten_value(&name.as_str().into()));
            Line::new(3, Sign::Plain, text)
        });
        return std::iter::once(Line::new(2, Sign::Plain, property_text(property))).chain(origin).collect();
    }
    let what = match files {
        Some([]) => "changes, but no file does",
        Some(_) => "these files change",
        None => "changes",
    };
    let text = format!("{}: {what}{}", property.path, is_replacement(property));
    let mut lines = vec![Line::new(2, Sign::Plain, text)];
    lines.extend(files.into_iter().flatten().flat_map(file_lines));
    lines
}

fn file_lines(file: &FileChange) -> Vec<Line> {
    let path = &file.path;
    let (sign, text, inside) = match &file.change {
        TextChange::Added => (Sign::Add, path.clone(), &[][..]),
        TextChange::Removed => (Sign::Remove, path.clone(), &[][..]),
        TextChange::Masked => (Sign::Change, format!("{path}: holds keys: changed"), &[][..]),
        TextChange::Binary => (Sign::Change, format!("{path}: no text: changed"), &[][..]),
        TextChange::Unknown { reason } => (Sign::Change, format!("{path}: not known: {reason}"), &[][..]),
        TextChange::Lines(lines) => (Sign::Change, path.clone(), lines.as_slice()),
    };
    let inside = inside.iter().map(|line| {
        let signs = [('+', Sign::Add), ('-', Sign::Remove), (' ', Sign::Context)];
        let found = signs.iter().find_map(|(mark, sign)| Some((*sign, line.strip_prefix(*mark)?)));
        let (sign, text) = found.unwrap_or((Sign::Plain, line));
        Line::new(4, sign, text)
    });
    std::iter::once(Line::new(3, sign, text)).chain(inside).collect()
}

/// A property as `path: from → to`; a new property has only its value.
fn property_text(property: &PropertyChange) -> String {
    let value = |value: &Value| shorten_value(&mask_user_data(&property.path, value));
    let change = match (&property.from, &property.to) {
        (Some(from), Some(to)) => format!("{} → {}", value(from), value(to)),
        (Some(from), None) => format!("{} → removed", value(from)),
        (None, Some(to)) => value(to),
        (None, None) => "changes".to_owned(),
    };
    format!("{}: {change}{}", property.path, is_replacement(property))
}

fn is_replacement(property: &PropertyChange) -> &'static str {
    if property.replaces { " (replaces)" } else { "" }
}

fn shorten_value(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = clean_line(&text);
    if text.chars().count() <= LONGEST_VALUE {
        return text;
    }
    text.chars().take(LONGEST_VALUE - 1).chain(['…']).collect()
}
