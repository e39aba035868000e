//! `infra certificates`: whose certificates are on disk and how long they are valid.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;

use super::exit::Exit;
use super::session::Session;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::credentials::{FEWEST_DAYS_LEFT, InventoryEntry};
use crate::project::Project;

/// List the certificates on disk: subject, issuer, names, days left
///
/// Exits with 3 if one is missing, unreadable, or valid for less than 30 days.
#[derive(Args, Debug)]
pub(super) struct CertificatesArguments {}

/// The certificates on disk. The exit code is 0 if `healthy` is true, 3 otherwise; if there are none at all, nothing is printed.
#[derive(Serialize, JsonSchema)]
pub(super) struct CertificatesDocument {
    /// Whether no certificate has a problem.
    healthy: bool,
    /// The certificates on disk, then those that are missing.
    certificates: Vec<Row>,
}

/// One certificate. What cannot be read, or is missing, has only `file`, `names` and `problem`.
#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Certificate")]
struct Row {
    /// The name of the file in credentials/.
    file: String,
    /// Whose certificate it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// Who signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// The DNS names and addresses that the certificate is valid for.
    names: Vec<String>,
    /// The last day on which it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<String>,
    /// Whole days until that day; negative after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    days_left: Option<i64>,
    /// What is wrong: `missing`, `expired`, `expires soon` (in less than 30 days), or why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn run(_: &CertificatesArguments, session: &Session) -> anyhow::Result<Exit> {
    let directory = session.assets.credentials();
    let now = OffsetDateTime::now_utc();
    let listed = session.assets.list_certificates(now)?.filter(|list| !list.is_empty());
    let Some(listed) = listed else {
        session.printer.error(format_args!("there are no certificates in {}", directory.display()));
        session.printer.help("run `infra render credentials --generate-ca` to create them");
        return Ok(Exit::Unhealthy);
    };
    let missing = find_missing(session, &listed).into_iter();
    let mut rows: Vec<Row> = listed.into_iter().map(certificate_row).collect();
    rows.extend(missing.map(|file| Row { file, problem: Some("missing".to_owned()), ..Row::default() }));
    let healthy = rows.iter().all(|row| row.problem.is_none());
    match session.output {
        Output::Json => session.printer.json(&CertificatesDocument { healthy, certificates: rows })?,
        Output::Text | Output::Markdown | Output::Html => {
            session.printer.data(certificate_table(&rows))?;
            if !healthy {
                session.printer.error("some certificates are not healthy");
                session.printer.help(
                    "run `infra render credentials` to create what is missing or expired; `--renew` issues all of them again",
                );
            }
        }
    }
    Ok(if healthy { Exit::Done } else { Exit::Unhealthy })
}

fn certificate_row(entry: InventoryEntry) -> Row {
    let file = entry.file;
    match entry.certificate {
        Err(reason) => Row { file, problem: Some(reason), ..Row::default() },
        Ok(facts) => {
            let problem = match facts.days_left {
                ..0 => Some("expired".to_owned()),
                days if days < FEWEST_DAYS_LEFT => Some("expires soon".to_owned()),
                _ => None,
            };
            Row {
                file,
                subject: Some(facts.subject),
                issuer: Some(facts.issuer),
                names: facts.names.iter().map(ToString::to_string).collect(),
                not_after: Some(facts.not_after.date().to_string()),
                days_left: Some(facts.days_left),
                problem,
            }
        }
    }
}

/// What cluster.yaml asks for and the directory does not have; nothing is known of it without a valid cluster.yaml.
fn find_missing(session: &Session, on_disk: &[InventoryEntry]) -> Vec<String> {
    match Project::load(&session.assets) {
        Ok((project, _)) => project.missing_certificates(on_disk),
        Err(error) => {
            session.printer.warning(format_args!("cannot tell whether a certificate is missing: {error}"));
            Vec::new()
        }
    }
}

fn certificate_table(rows: &[Row]) -> String {
    let header = ["FILE", "SUBJECT", "ISSUER", "DAYS LEFT", "UNTIL", "NAMES"].map(str::to_owned);
    let lines = rows.iter().map(|row| {
        let days = match (&row.problem, row.days_left) {
            (Some(problem), Some(days)) => format!("{days} ({problem})"),
            (Some(problem), None) => problem.clone(),
            (None, days) => days.map(|days| days.to_string()).unwrap_or_default(),
        };
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let names = if row.names.is_empty() { "-".to_owned() } else { row.names.join(", ") };
        [row.file.clone(), text(&row.subject), text(&row.issuer), days, text(&row.not_after), names]
    });
    align_columns(&std::iter::once(header).chain(lines).collect::<Vec<_>>())
}
