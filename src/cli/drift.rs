//! `infra drift`: what is no longer as the templates of the stacks say.

use std::collections::BTreeSet;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::Value;

use super::aws_access::{AwsOptions, block_on};
use super::exit::Exit;
use super::failure::Refusal;
use super::interruption::until_interrupted;
use super::plan_view::mask_user_data;
use super::progress_view::ProgressView;
use super::session::Session;
use super::up::parse_duration;
use crate::cli::terminal::foreign_text::clean_line;
use crate::cli::terminal::printer::Output;
use crate::cli::terminal::screen::Stream;
use crate::cli::terminal::styled_text::StyledText;
use crate::deploy::{
    DriftKind, DriftReport, DriftVerdict, DriftedResource, PropertyDrift, Run, StackDrift, detect_drift,
};
use crate::plural::{count_of, list_counts};

const BOLD: Style = Style::new().bold();
const DRIFT: Style = AnsiColor::Red.on_default().bold();

/// The longest value that is not shortened: a rule of a security group fits.
const LONGEST_VALUE: usize = 200;

/// What to do about drift. CloudFormation does nothing about it by itself.
const HELP: &str =
    "change it back by hand: `infra up` compares templates, so it does not undo drift (docs/commands.md)";

/// Find what was changed or deleted in AWS by hand
///
/// Has CloudFormation compare every resource of the cluster with its stack's template, all stacks in parallel. This takes a few
/// minutes and changes nothing. For each property it prints the expected and the actual value.
///
/// What the cluster itself changes is listed as "changed by design" and is no drift: the size of pools, rules that Kubernetes adds to
/// security groups for Services. Types that CloudFormation cannot check are counted as "not checked": they may have drifted. Properties that
/// a template does not set are never compared.
///
/// Exits with 3 if there is drift or no such cluster, with 1 if there is none but something could not be checked, with 0 otherwise.
/// `infra schema drift` describes what `--output json` prints.
#[derive(Args, Debug)]
pub(super) struct DriftArguments {
    /// How long to wait for CloudFormation
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &DriftArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = session.load_project_quietly()?.blueprint.cluster;
    block_on(async {
        let clients = arguments.aws.connect(&cluster, session).await;
        // Also with `--output json`: what is printed on stdout is one document.
        let view =
            ProgressView::new(Output::Text, session.printer.clone(), session.can_redraw(Stream::Stderr));
        let (_interrupter, waiting) = session.begin_waiting(Some(arguments.timeout));
        let run = Run {
            clients,
            cluster: Some(cluster.clone()),
            progress: view.progress(),
            waiting,
            cancel_on_interrupt: false,
        };
        let detecting = Box::pin(async { Ok(detect_drift(&run, &cluster).await?) });
        let result = until_interrupted(detecting).await;
        view.finish(result.is_ok());
        let mut report = result?;
        for property in report.properties_mut() {
            mask_secret_properties(property);
        }
        print_report(&report, session)
    })
}

fn mask_secret_properties(property: &mut PropertyDrift) {
    for value in [&mut property.expected, &mut property.actual] {
        *value = value.as_ref().map(|value| mask_user_data(&property.path, value));
    }
}

fn print_report(report: &DriftReport, session: &Session) -> anyhow::Result<Exit> {
    match session.output {
        Output::Json => session.printer.json(report)?,
        Output::Text | Output::Markdown | Output::Html => session.printer.data(drift_text(report))?,
    }
    match report.verdict() {
        DriftVerdict::Absent => Ok(Exit::Unhealthy),
        DriftVerdict::InSync => Ok(Exit::Done),
        DriftVerdict::Unknown => {
            Err(Refusal::new(summarize_unchecked(report)).help(help_for_unknown(report)).into())
        }
        DriftVerdict::Drifted => {
            if !report.complete {
                session.printer.warning(summarize_unchecked(report));
                session.printer.help(help_for_unknown(report));
            }
            session.printer.help(HELP);
            Ok(Exit::HasChanges)
        }
    }
}

fn drift_text(report: &DriftReport) -> StyledText {
    if !report.exists {
        return format!("{}: there is no such cluster; `infra up` creates it", report.cluster).into();
    }
    let mut lines: Vec<StyledText> = report.stacks.iter().flat_map(stack_lines).collect();
    lines.extend([StyledText::default(), StyledText::styled(BOLD, drift_summary(report))]);
    StyledText::lines(lines)
}

fn stack_lines(stack: &StackDrift) -> Vec<StyledText> {
    let name = format!("{}: ", stack.stack);
    let first = match &stack.problem {
        _ if !stack.drifted.is_empty() => StyledText::from(&name).then(StyledText::styled(DRIFT, "drift")),
        Some(problem) => format!("{name}{problem}").into(),
        None if !stack.failed.is_empty() => format!("{name}not everything could be checked").into(),
        None if stack.in_sync == 0 && stack.by_design.is_empty() => {
            format!("{name}nothing could be checked").into()
        }
        None => format!("{name}no drift").into(),
    };
    let mut lines = vec![first];
    if let Some(problem) = stack.problem.as_ref().filter(|_| !stack.drifted.is_empty()) {
        lines.push(format!("  ! {problem}").into());
    }
    lines.extend(stack.drifted.iter().flat_map(resource_lines));
    let mut named = "";
    for change in &stack.by_design {
        if std::mem::replace(&mut named, &change.logical_id) != change.logical_id {
            let resource = resource_name(&change.description, &change.logical_id, &change.kind);
            lines.push(format!("  changed by design: {resource}").into());
        }
        lines.push(format!("    {} ({})", property_text(&change.property), change.cause).into());
    }
    for resource in &stack.failed {
        let reason = resource.reason.as_deref().unwrap_or_default();
        lines.push(
            format!("  ! {} ({}) could not be checked: {reason}", resource.logical_id, resource.kind).into(),
        );
    }
    if !stack.not_checked.is_empty() {
        let kinds: BTreeSet<&str> = stack.not_checked.iter().map(|resource| resource.kind.as_str()).collect();
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
        lines.push(
            format!("  not checked: {} ({kinds})", count_of(stack.not_checked.len(), "resource")).into(),
        );
    }
    lines
}

fn resource_lines(resource: &DriftedResource) -> Vec<StyledText> {
    let name = resource_name(&resource.description, &resource.logical_id, &resource.kind);
    match resource.change {
        DriftKind::Deleted => {
            let text = StyledText::from("  ").then(StyledText::styled(DRIFT, "DELETED:"));
            vec![text.then(format_args!(" {name}: {}", resource.physical_id))]
        }
        DriftKind::Modified => {
            let mut lines = vec![format!("  {name}: {}", resource.physical_id).into()];
            if resource.properties.is_empty() {
                lines.push("    CloudFormation does not say which properties differ".into());
            }
            let properties = resource.properties.iter();
            lines.extend(properties.map(|property| format!("    {}", property_text(property)).into()));
            lines
        }
    }
}

fn resource_name(description: &str, logical_id: &str, kind: &str) -> String {
    format!("{description} ({logical_id}, {kind})")
}

/// A property as `path: expected → actual`.
fn property_text(property: &PropertyDrift) -> String {
    let change = match (&property.expected, &property.actual) {
        (Some(expected), Some(actual)) => {
            format!("{} → {}", shorten_property_value(expected), shorten_property_value(actual))
        }
        (Some(expected), None) => format!("{} → removed", shorten_property_value(expected)),
        (None, Some(actual)) => format!("added {}", shorten_property_value(actual)),
        (None, None) => "differs".to_owned(),
    };
    format!("{}: {change}", property.path)
}

fn shorten_property_value(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = clean_line(&text);
    if text.chars().count() <= LONGEST_VALUE {
        return text;
    }
    text.chars().take(LONGEST_VALUE - 1).chain(['…']).collect()
}

fn drift_summary(report: &DriftReport) -> String {
    let sum = |count: fn(&StackDrift) -> usize| report.stacks.iter().map(count).sum::<usize>();
    let head = match report.verdict() {
        DriftVerdict::Drifted => {
            format!("drift in {}", count_of(sum(|stack| stack.drifted.len()), "resource"))
        }
        DriftVerdict::Unknown => "no drift found, but not everything could be checked".to_owned(),
        DriftVerdict::InSync | DriftVerdict::Absent => "no drift".to_owned(),
    };
    let counts = list_counts(&[
        (sum(|stack| stack.in_sync), "in sync"),
        (sum(|stack| stack.by_design.len()), "changed by design"),
        (sum(|stack| stack.not_checked.len()), "not checked"),
        (sum(|stack| stack.failed.len()), "failed to be checked"),
    ]);
    let counts = if counts.is_empty() { counts } else { format!(" ({counts})") };
    format!("{}: {head}{counts}", report.cluster)
}

/// What could not be checked, for the end of a run.
fn summarize_unchecked(report: &DriftReport) -> String {
    let incomplete = report.stacks.iter().filter(|stack| stack.problem.is_some() || !stack.failed.is_empty());
    let names: Vec<&str> = incomplete.map(|stack| stack.stack.as_str()).collect();
    format!("not everything could be checked in {}", names.join(", "))
}

fn help_for_unknown(report: &DriftReport) -> &'static str {
    let failed = report.stacks.iter().flat_map(|stack| &stack.failed);
    let mut reasons = failed.filter_map(|resource| resource.reason.as_deref());
    if reasons.any(|reason| reason.contains("not authorized") || reason.contains("AccessDenied")) {
        return "CloudFormation reads resources with your permissions: `infra policy` prints those that it needs";
    }
    "the reasons are above; once they are gone, run the same command again"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{mask_secret_properties, property_text, shorten_property_value};
    use crate::deploy::PropertyDrift;

    #[test]
    fn user_data_is_never_shown() {
        let mut property = PropertyDrift {
            path: "LaunchTemplateData".to_owned(),
            expected: Some(json!({"ImageId": "ami-1", "UserData": "c2VjcmV0"})),
            actual: Some(json!({"ImageId": "ami-2", "UserData": "aGlkZGVu"})),
        };
        mask_secret_properties(&mut property);
        assert_eq!(
            property_text(&property),
            r#"LaunchTemplateData: {"ImageId":"ami-1","UserData":"(user data)"} → {"ImageId":"ami-2","UserData":"(user data)"}"#
        );
        let mut property = PropertyDrift {
            path: "LaunchTemplateData.UserData".to_owned(),
            expected: Some(json!("c2VjcmV0")),
            actual: None,
        };
        mask_secret_properties(&mut property);
        assert_eq!(property_text(&property), "LaunchTemplateData.UserData: (user data) → removed");
    }

    #[test]
    fn a_long_value_is_shortened_and_a_hostile_one_cleaned() {
        assert_eq!(shorten_property_value(&json!("x".repeat(300))).chars().count(), 200);
        assert_eq!(shorten_property_value(&json!("a\u{1b}[2Jb")), "a\u{fffd}[2Jb");
    }
}
