//! `infra validate`: everything that is wrong with cluster.yaml, at once.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use time::{Date, OffsetDateTime};

use super::aws_access::{AwsOptions, block_on};
use super::deployment::{certificate_expiries, choose_s3_uri, read_lock};
use super::exit::Exit;
use super::failure::summarize_problems;
use super::session::Session;
use crate::check::Findings;
use crate::cli::deployment::preflight::{print_caller, print_findings};
use crate::cli::deployment::prices::{budget_notice, usable_lock};
use crate::cli::terminal::printer::Output;
use crate::config::Cluster;
use crate::config::kubernetes_release::release_of;
use crate::config::values::S3Uri;
use crate::credentials::Credentials;
use crate::deploy::preflight::{self, Finding, Preflight};
use crate::deploy::{LiveCluster, find_wrong_pool_ends};
use crate::document::{LoadError, Problems};
use crate::plural::count_of;
use crate::project::{Project, ProjectError};

/// How long before its end of life a version is reported.
const NOTICE_DAYS: i64 = 60;

/// Check cluster.yaml and what would be rendered from it; no network and no AWS account are needed
///
/// Prints every problem with its line and column, and what AWS or a machine would refuse of stacks and configurations, your own
/// templates and snippets included. Exits with 2 if there is a problem.
#[derive(Args, Debug)]
pub(super) struct ValidateArguments {
    /// Also check the AWS account, as `infra up` does before it changes anything
    #[arg(long)]
    online: bool,
    /// Where assets will be uploaded, for --online: s3://bucket/prefix
    #[arg(long, value_name = "URI", requires = "online")]
    s3_uri: Option<S3Uri>,
    #[command(flatten)]
    aws: AwsOptions,
}

/// Everything that is wrong. The exit code is 0 if `valid` is true, 2 otherwise.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ValidateDocument<'a> {
    /// Whether cluster.yaml can be used.
    valid: bool,
    #[serde(flatten)]
    problems: &'a Problems,
    /// What AWS or a machine would refuse of the assets.
    checks: &'a Findings,
    /// That upstream support of the Kubernetes version has ended or ends soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    /// Pools whose end, `expires`, has passed or is more than a year away, each in a sentence: `infra up` refuses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wrong_ends: Vec<String>,
    /// That the cluster may cost more than its budget, by the prices in infra.lock, or that some of these are missing or old.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<String>,
    /// With `--online`, what preflight found in the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a [Finding]>,
}

pub(super) fn run(arguments: &ValidateArguments, session: &Session) -> anyhow::Result<Exit> {
    let now = OffsetDateTime::now_utc();
    let (problems, notices, ends, checks, account) = match Project::load(&session.assets) {
        Ok((project, warnings)) => {
            let notice = version_notice(&project.blueprint.cluster, now.date());
            let ends = find_wrong_pool_ends(&project.blueprint.cluster, None, now);
            let lock = usable_lock(&project, session);
            let budget = budget_notice(&project.blueprint, lock.as_ref());
            let account =
                if arguments.online { Some(check_account(arguments, &project, session)?) } else { None };
            (warnings, (notice, budget), ends, check_rendered(&project, session)?, account)
        }
        Err(ProjectError::Cluster(LoadError::Invalid(problems))) => {
            (problems, (None, None), Vec::new(), Findings::default(), None)
        }
        Err(error) => return Err(error.into()),
    };
    let good_account = account.as_ref().is_none_or(|report| !report.has_refusal());
    let valid = problems.can_be_used() && checks.0.is_empty() && good_account;
    match session.output {
        Output::Json => {
            let account = account.as_ref().map(|report| report.findings.as_slice());
            session.printer.json(&ValidateDocument {
                valid,
                problems: &problems,
                checks: &checks,
                notice: notices.0,
                wrong_ends: ends.iter().map(ToString::to_string).collect(),
                budget: notices.1,
                account,
            })?;
        }
        Output::Text | Output::Markdown | Output::Html => {
            if !problems.list().is_empty() {
                session.printer.data(&problems)?;
            }
            if !checks.0.is_empty() {
                session.printer.data(&checks)?;
            }
            for notice in [notices.0, notices.1].into_iter().flatten() {
                session.printer.warning(notice);
            }
            for end in ends {
                session.printer.warning(format_args!("{end}; `infra up` will refuse it"));
            }
            if let Some(report) = &account {
                print_caller(report, session);
                print_findings(report, &session.printer);
            }
            if valid {
                session.printer.note(format_args!("{} is valid", problems.file.display()));
            } else if !good_account {
                session.printer.error("the account is not ready for this cluster");
            } else if checks.0.is_empty() {
                session.printer.error(summarize_problems(&problems));
            } else {
                session
                    .printer
                    .error(format_args!("the rendered assets have {}", count_of(checks.0.len(), "problem")));
            }
        }
    }
    Ok(if valid { Exit::Done } else { Exit::Invalid })
}

/// What AWS or a machine would refuse of the assets; keys are placeholders, since no check reads them.
fn check_rendered(project: &Project, session: &Session) -> anyhow::Result<Findings> {
    let rendered = project.render(&Credentials::placeholders(&project.blueprint.identities))?;
    session.print_unused_snippets(&rendered);
    Ok(rendered.findings)
}

/// What in the account prevents the cluster.
fn check_account(
    arguments: &ValidateArguments,
    project: &Project,
    session: &Session,
) -> anyhow::Result<preflight::PreflightReport> {
    let blueprint = &project.blueprint;
    block_on(async {
        let clients = arguments.aws.connect(&blueprint.cluster, session).await;
        let live = LiveCluster::read(&clients, &blueprint.cluster.name, Some(&blueprint.cluster)).await?;
        let s3_uri = choose_s3_uri(arguments.s3_uri.as_ref(), blueprint, &live, &session.printer).ok();
        let lock = read_lock(project)?;
        let certificates = certificate_expiries(session)?;
        let preflight = Preflight {
            blueprint,
            s3_uri: s3_uri.as_ref(),
            create_bucket: false,
            image: lock.as_ref().map(|lock| &lock.image),
            blocks: lock.as_ref().map_or(&[], |lock| &lock.capacity_blocks),
            now: OffsetDateTime::now_utc(),
            certificates: &certificates,
            live: &live,
        };
        Ok(preflight.run(&clients).await?)
    })
}

/// What to report about a Kubernetes version whose upstream support has ended or ends soon.
fn version_notice(cluster: &Cluster, today: Date) -> Option<String> {
    let version = cluster.kubernetes.version;
    let end = release_of(version).ok()?.end_of_life;
    let days = (end - today).whole_days();
    if days < 0 {
        Some(format!("Kubernetes {version} has not been supported upstream since {end}: plan an upgrade"))
    } else if days <= NOTICE_DAYS {
        let left = count_of(days, "day");
        Some(format!("Kubernetes {version} is supported upstream until {end} ({left} left): plan an upgrade"))
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
        let cluster = config::validate(Path::new("cluster.yaml"), text)?.value;
        assert_eq!(version_notice(&cluster, date!(2026 - 11 - 16)), None);
        let near = version_notice(&cluster, date!(2027 - 02 - 01));
        assert!(near.is_some_and(|text| text.contains("until 2027-02-28 (27 days left)")));
        let past = version_notice(&cluster, date!(2027 - 03 - 01));
        assert!(past.is_some_and(|text| text.contains("since 2027-02-28")));
        Ok(())
    }
}
