//! Turns an error into what the user sees and the exit code that says what kind it was.

use std::error::Error;

use super::exit::Exit;
use super::interruption::Interrupted;
use crate::aws::{AwsError, CONTINUES_IN_AWS};
use crate::check::Findings;
use crate::cli::terminal::printer::Printer;
use crate::credentials::CredentialsError;
use crate::deploy::{DeployError, Evidence, hint_for};
use crate::document::{LoadError, Problems, ReadError};
use crate::job::data::DataError;
use crate::job::life::JobError;
use crate::kube::KubeError;
use crate::kubeconfig::KubeconfigError;
use crate::operator::{BudgetError, ClusterKeyError};
use crate::outcome::{Explain, Outcome};
use crate::people::PeopleError;
use crate::plural::count_of;
use crate::project::ProjectError;
use crate::render::RenderError;

/// An error of the command line itself, with help.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refusal {
    message: String,
    help: Option<String>,
    outcome: Outcome,
}

impl Refusal {
    /// Nothing was done.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, outcome: Outcome::Failed }
    }

    /// What the user asked for is not valid.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Invalid, ..Self::new(message) }
    }

    /// AWS does not accept the user's credentials.
    pub(super) fn of_credentials(message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Credentials, ..Self::new(message) }
    }

    /// The same refusal with what to do next.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Explain for Refusal {
    fn help(&self) -> Option<String> {
        self.help.clone()
    }

    fn outcome(&self) -> Outcome {
        self.outcome
    }
}

/// Prints an error with its causes and help, and gives the exit code.
pub(super) fn print_error(error: &anyhow::Error, printer: &Printer) -> Exit {
    if let Some(problems) = problems_of(error) {
        printer.note(problems);
        printer.error(summarize_problems(problems));
        return Exit::Invalid;
    }
    let explained: Vec<&dyn Explain> = error.chain().filter_map(as_explained_error).collect();
    let outcome = explained.first().map_or(Outcome::Failed, |error| error.outcome());
    if outcome == Outcome::Interrupted {
        // An interruption is what the user wanted, not an error.
        printer.note(error);
        return outcome.into();
    }
    printer.error(error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": "));
    if let Some(DeployError::Failed(reports)) = error.chain().find_map(|cause| cause.downcast_ref()) {
        reports
            .iter()
            .flat_map(|report| &report.evidence)
            .for_each(|evidence| print_evidence(evidence, printer));
    }
    let help = explained.iter().find_map(|error| error.help());
    let help = match outcome {
        Outcome::Unreachable => proxy_help().or(help),
        Outcome::Refused => help.or_else(|| hint_for(&error.root_cause().to_string()).map(|hint| hint.text)),
        _ => help,
    };
    if let Some(help) = help {
        printer.help(help);
    }
    outcome.into()
}

/// The explanation of an error, if it is of a type that explains itself.
fn as_explained_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a dyn Explain> {
    fn downcast<'a, T: Explain + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a dyn Explain> {
        error.downcast_ref::<T>().map(|error| error as &dyn Explain)
    }
    let types = [
        downcast::<AwsError>,
        downcast::<BudgetError>,
        downcast::<ClusterKeyError>,
        downcast::<CredentialsError>,
        downcast::<DataError>,
        downcast::<DeployError>,
        downcast::<Findings>,
        downcast::<Interrupted>,
        downcast::<JobError>,
        downcast::<KubeError>,
        downcast::<KubeconfigError>,
        downcast::<LoadError>,
        downcast::<PeopleError>,
        downcast::<ProjectError>,
        downcast::<ReadError>,
        downcast::<Refusal>,
        downcast::<RenderError>,
    ];
    types.iter().find_map(|downcast| downcast(error))
}

/// What is wrong with a document, whether it is the error itself or its cause.
fn problems_of(error: &anyhow::Error) -> Option<&Problems> {
    error.chain().find_map(|cause| match (cause.downcast_ref(), cause.downcast_ref::<ProjectError>()) {
        (Some(LoadError::Invalid(problems)), _) => Some(problems),
        (_, Some(error)) => error.problems(),
        _ => cause.downcast_ref(),
    })
}

/// How many things are wrong with a file.
pub(super) fn summarize_problems(problems: &Problems) -> String {
    format!("{} has {}", problems.file.display(), count_of(problems.errors(), "problem"))
}

fn print_evidence(evidence: &Evidence, printer: &Printer) {
    printer.note(format_args!("  {}:", evidence.source));
    for line in &evidence.lines {
        printer.note(format_args!("    {line}"));
    }
    if let Some(step) = &evidence.last_step {
        printer.note(format_args!("  the last step it reported: {step}"));
    }
}

/// Proxy and endpoint variables, as every AWS tool reads them.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// What to do when AWS was not reached through a proxy, if there is one.
fn proxy_help() -> Option<String> {
    let proxies: Vec<String> = PROXY_VARIABLES
        .iter()
        .filter_map(|name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?)))
        .map(|(name, value)| format!("{name} is {}", without_password(&value)))
        .collect();
    (!proxies.is_empty()).then(|| {
        format!(
            "{}: see that this proxy runs and lets you through to AWS, or except hosts with NO_PROXY; {CONTINUES_IN_AWS}",
            proxies.join(", ")
        )
    })
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
