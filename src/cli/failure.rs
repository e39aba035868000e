//! Turns an error into what the user sees and the exit code that says what kind it was.

use anyhow::Error;

use super::exit::Exit;
use super::interruption::Interrupted;
use super::printer::Printer;
use crate::aws::{AwsError, Cause};
use crate::check::Findings;
use crate::credentials::CredentialsError;
use crate::deploy::{DeployError, Evidence, hint_for};
use crate::document::{LoadError, Problems, ReadError};
use crate::job::life::JobError;
use crate::project::ProjectError;
use crate::render::RenderError;

/// An error made at the command line, with help.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refusal {
    message: String,
    help: Option<String>,
    exit: Exit,
}

impl Refusal {
    /// Nothing was done.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, exit: Exit::Failed }
    }

    /// What was asked for cannot be.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { exit: Exit::Invalid, ..Self::new(message) }
    }

    /// The same refusal with what to do next.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

const CREDENTIALS_HELP: &str = "renew them (`aws sso login`, a fresh session), or name a profile with --profile; what AWS was told to do goes on, \
                                and the same command comes back to it";

/// Prints an error with its causes and help, and says which exit code it is.
pub(super) fn report(error: &Error, printer: &Printer) -> Exit {
    if let Some(problems) = problems_of(error) {
        printer.note(problems);
        printer.error(summary(problems));
        return Exit::Invalid;
    }
    if let Some(interrupted) = find::<Interrupted>(error) {
        // What the user asked for is no error to report.
        printer.note(interrupted);
        return Exit::Interrupted;
    }
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    // A transparent error says the same as its cause.
    let mut lines: Vec<&String> = causes.iter().collect();
    lines.dedup();
    printer.error(lines.iter().map(|line| line.as_str()).collect::<Vec<_>>().join(": "));
    if let Some(DeployError::Failed(reports)) = find::<DeployError>(error) {
        reports
            .iter()
            .flat_map(|report| &report.evidence)
            .for_each(|evidence| print_evidence(evidence, printer));
    }
    if let Some(help) = help_for(error) {
        printer.help(help);
    }
    exit_for(error)
}

/// How many things are wrong with a file.
pub(super) fn summary(problems: &Problems) -> String {
    let count = problems.errors();
    let noun = if count == 1 { "problem" } else { "problems" };
    format!("{} has {count} {noun}", problems.file.display())
}

fn print_evidence(evidence: &Evidence, printer: &Printer) {
    printer.note(format_args!("  {}:", evidence.source));
    for line in &evidence.lines {
        printer.note(format_args!("    {line}"));
    }
    if let Some(step) = &evidence.last_step {
        printer.note(format_args!("  the last step it told of: {step}"));
    }
}

fn help_for(error: &Error) -> Option<String> {
    if let Some(refusal) = find::<Refusal>(error) {
        return refusal.help.clone();
    }
    if let Some(help) = find::<ProjectError>(error).and_then(ProjectError::help) {
        return Some(help);
    }
    if let Some(credentials) = find::<CredentialsError>(error) {
        return credentials.help();
    }
    if let Some(render) = find::<RenderError>(error) {
        return render.help();
    }
    if let Some(error) = aws_error(error) {
        return aws_help(error).or_else(|| hint_for(&error.to_string()).map(|hint| hint.text));
    }
    if let Some(deploy) = find::<DeployError>(error) {
        return deploy.help();
    }
    if let Some(job) = find::<JobError>(error) {
        return job.help();
    }
    match find::<LoadError>(error) {
        Some(LoadError::Unreadable(ReadError::Missing { path })) if path.ends_with("cluster.yaml") => {
            Some("`infra init` writes one; `-C DIR` names the directory it is in".to_owned())
        }
        Some(LoadError::Unreadable(ReadError::Missing { .. })) => {
            Some("`infra job init` writes one; `-f FILE` names another".to_owned())
        }
        _ => None,
    }
}

/// The call to AWS that failed, if it was one.
fn aws_error(error: &Error) -> Option<&AwsError> {
    match find::<DeployError>(error) {
        Some(DeployError::Aws(error)) => Some(error),
        _ => find::<AwsError>(error),
    }
}

/// What to do when AWS does not know who is calling, or was not reached at all.
fn aws_help(error: &AwsError) -> Option<String> {
    match (error.cause, error.clock) {
        (Cause::Credentials, Some(minutes)) => Some(clock_help(minutes)),
        (Cause::Credentials, None) => Some(CREDENTIALS_HELP.to_owned()),
        (Cause::Unreachable, _) => Some(unreachable_help()),
        (Cause::Refused, _) => None,
    }
}

fn clock_help(minutes: i64) -> String {
    let clock = match minutes {
        0 => "AWS does not take the time of this machine's clock".to_owned(),
        1.. => format!("this machine's clock is {minutes} minutes ahead of AWS's"),
        ..=-1 => format!("this machine's clock is {} minutes behind AWS's", minutes.unsigned_abs()),
    };
    format!("{clock}; set it (`timedatectl set-ntp true`, or chrony), then run the same command again")
}

/// Variables that lead calls elsewhere, as every tool of AWS reads them.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

fn unreachable_help() -> String {
    let goes_on = "what AWS was told to do goes on, and the same command comes back to it";
    let proxies: Vec<String> = PROXY_VARIABLES
        .iter()
        .filter_map(|name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?)))
        .map(|(name, value)| format!("{name} is {}", without_password(&value)))
        .collect();
    if proxies.is_empty() {
        return format!(
            "see that this machine reaches the network, and that the region and --endpoint-url are right; behind a proxy set HTTPS_PROXY; {goes_on}"
        );
    }
    format!(
        "{}: see that this proxy runs and lets you through to AWS, or except hosts with NO_PROXY; {goes_on}",
        proxies.join(", ")
    )
}

/// An address as it may be shown.
fn without_password(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
            format!("{}{host}", scheme.unwrap_or_default())
        }
        None => url.to_owned(),
    }
}

fn exit_for(error: &Error) -> Exit {
    if let Some(refusal) = find::<Refusal>(error) {
        return refusal.exit;
    }
    if aws_error(error).is_some_and(|error| error.cause == Cause::Credentials) {
        return Exit::Credentials;
    }
    match find::<DeployError>(error) {
        Some(DeployError::StillRunning { .. }) => return Exit::StillRunning,
        Some(DeployError::Failed(_)) => return Exit::RolledBack,
        _ => {}
    }
    if find::<JobError>(error).is_some_and(JobError::goes_on) {
        return Exit::StillRunning;
    }
    if find::<ProjectError>(error).is_some_and(ProjectError::is_invalid_input)
        || find::<Findings>(error).is_some()
        || find::<RenderError>(error).is_some_and(|error| !matches!(error, RenderError::NoCredential { .. }))
    {
        return Exit::Invalid;
    }
    if find::<ReadError>(error).is_some() || find::<LoadError>(error).is_some() {
        Exit::Invalid
    } else {
        Exit::Failed
    }
}

/// What is wrong with a document, whether it is the error itself or stands in a cluster's.
fn problems_of(error: &Error) -> Option<&Problems> {
    match find::<LoadError>(error) {
        Some(LoadError::Invalid(problems)) => Some(problems),
        _ => find::<Problems>(error),
    }
}

fn find<T: std::error::Error + 'static>(error: &Error) -> Option<&T> {
    error.chain().find_map(|cause| cause.downcast_ref())
}
