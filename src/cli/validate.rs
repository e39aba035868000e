//! `infra validate`: everything that is wrong with cluster.yaml, at once.

use clap::Args;
use serde::Serialize;
use time::{Date, OffsetDateTime};

use super::Session;
use super::exit::Exit;
use super::failure::summary;
use super::printer::Output;
use super::render::render_in_memory;
use crate::blueprint::Blueprint;
use crate::check::Findings;
use crate::config::kubernetes_release::release_of;
use crate::config::{Cluster, ConfigError};
use crate::credentials::Credentials;
use crate::document::Problems;

/// How long before a version's end its user is told.
const NOTICE_DAYS: i64 = 60;

/// Check cluster.yaml and what would be rendered from it; no network and no AWS account are needed
///
/// Prints every problem with its line and column, and what AWS or a machine would refuse of stacks and configurations, your own
/// templates and snippets included. Exits with 2 if there is anything.
#[derive(Args, Debug)]
pub(super) struct ValidateArguments {}

#[derive(Serialize)]
struct Report<'a> {
    valid: bool,
    #[serde(flatten)]
    problems: &'a Problems,
    checks: &'a Findings,
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub(super) fn run(_: &ValidateArguments, session: &Session) -> anyhow::Result<Exit> {
    let (problems, notice, checks) = match session.assets.load() {
        Ok(loaded) => {
            let notice = version_notice(&loaded.cluster, OffsetDateTime::now_utc().date());
            (loaded.warnings, notice, check_rendered(loaded.cluster, session)?)
        }
        Err(ConfigError::Invalid(problems)) => (problems, None, Findings::default()),
        Err(error) => return Err(error.into()),
    };
    let valid = problems.allow_use() && checks.0.is_empty();
    match session.output {
        Output::Json => {
            session.printer.json(&Report { valid, problems: &problems, checks: &checks, notice })?;
        }
        Output::Text => {
            if !problems.list().is_empty() {
                session.printer.data(&problems)?;
            }
            if !checks.0.is_empty() {
                session.printer.data(&checks)?;
            }
            if let Some(notice) = notice {
                session.printer.warning(notice);
            }
            if valid {
                session.printer.note(format_args!("{} is valid", problems.file.display()));
            } else if checks.0.is_empty() {
                session.printer.error(summary(&problems));
            } else {
                session.printer.error(format_args!("what would be rendered has {} problems", checks.0.len()));
            }
        }
    }
    Ok(if valid { Exit::Done } else { Exit::Invalid })
}

/// What AWS or a machine would refuse of what would be rendered; keys are stand-ins, since only their owners care.
fn check_rendered(cluster: Cluster, session: &Session) -> anyhow::Result<Findings> {
    let blueprint = Blueprint::new(cluster)?;
    let credentials = Credentials::placeholders(&blueprint.identities);
    Ok(render_in_memory(&blueprint, &credentials, session)?.findings)
}

/// What to say about a Kubernetes version that is near its end or past it.
fn version_notice(cluster: &Cluster, today: Date) -> Option<String> {
    let version = cluster.kubernetes.version;
    let end = release_of(version).ok()?.end_of_life;
    let days = (end - today).whole_days();
    if days < 0 {
        Some(format!("Kubernetes {version} has not been looked after upstream since {end}: plan an upgrade"))
    } else if days <= NOTICE_DAYS {
        Some(format!(
            "Kubernetes {version} is looked after upstream until {end}, {days} more days: plan an upgrade"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use time::macros::date;

    use super::version_notice;
    use crate::config;
    use crate::document::Problems;

    #[test]
    fn a_version_near_its_end_is_named() -> Result<(), Problems> {
        let text = "{clusterName: a, externalDNSName: a.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kubernetes: {version: v1.35.7}, kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1'}";
        let cluster = config::validate(Path::new("cluster.yaml"), text)?.cluster;
        assert_eq!(version_notice(&cluster, date!(2026 - 11 - 16)), None);
        let near = version_notice(&cluster, date!(2027 - 02 - 01));
        assert!(near.is_some_and(|text| text.contains("until 2027-02-28, 27 more days")));
        let past = version_notice(&cluster, date!(2027 - 03 - 01));
        assert!(past.is_some_and(|text| text.contains("since 2027-02-28")));
        Ok(())
    }
}
