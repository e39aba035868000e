//! `infra user add`: a certificate, a kubeconfig, and the rights of a team.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use time::OffsetDateTime;

use super::name::parse_user;
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::until_interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::team::parse_team;
use crate::credentials::{ClientCertificate, issue_client_certificate};
use crate::durable_file::{self, Access};
use crate::people::{TeamName, UserName, add_user, expect_team, find_user, team_group};
use crate::render::{ApiEndpoint, KubeconfigSource, render_kubeconfig};

const LONGEST_DAYS: u16 = 365;

/// Let someone run jobs in a team's namespace: writes a kubeconfig to hand over
///
/// The kubeconfig holds a key that is kept nowhere else, and a certificate with rights on jobs, data and secrets of that namespace. With it
/// `infra job`, `infra data` and `infra secret` need no cluster.yaml: `--kubeconfig FILE`, or KUBECONFIG.
#[derive(Args, Debug)]
pub(super) struct AddArguments {
    /// The name of the user
    #[arg(value_name = "NAME", value_parser = parse_user)]
    name: UserName,
    /// The team
    #[arg(long, value_name = "NAMESPACE", value_parser = parse_team)]
    team: TeamName,
    /// How long the certificate is valid, in days; at most 365d
    #[arg(long, value_name = "DAYS", default_value = "30d", value_parser = parse_days)]
    valid: u16,
    /// Write the kubeconfig there; by default to credentials/users/ of the asset directory
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Issue a new certificate to an existing user; the one before loses its rights
    #[arg(long)]
    replace: bool,
}

fn parse_days(text: &str) -> Result<u16, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    days.filter(|days| (1..=LONGEST_DAYS).contains(days))
        .ok_or_else(|| format!("it is a number of days from 1d to {LONGEST_DAYS}d"))
}

pub(super) fn run(arguments: &AddArguments, session: &Session) -> anyhow::Result<Exit> {
    let (name, team) = (&arguments.name, &arguments.team);
    let (cluster, blueprint) = TargetCluster::of_administrator(session)?;
    let path = match &arguments.to {
        Some(path) => session.assets.named_file(path)?,
        None => session.assets.user_kubeconfig(team.as_str(), name.as_str())?,
    };
    let api = &cluster.api;
    let existing = block_on(until_interrupted(async {
        expect_team(api, team).await?;
        Ok(find_user(api, team, name).await?)
    }))?;
    if let Some(user) = existing.filter(|_| !arguments.replace) {
        return Err(Refusal::new(format!(
            "'{name}' is a user of team '{team}' already, with a certificate until {}",
            user.valid_until
        ))
        .help("`--replace` issues a new one, and ends the rights of the one before")
        .into());
    }
    let store = session.open_existing_credentials()?;
    let now = OffsetDateTime::now_utc();
    let issued = issue_client_certificate(&store, name.as_str(), &team_group(team), arguments.valid, now)?;
    drop(store);
    let ClientCertificate { common_name, certificate, key, authority, not_after } = &issued;
    let kubeconfig = render_kubeconfig(&KubeconfigSource {
        cluster: &cluster.name,
        user: &format!("{}-{name}", cluster.name),
        namespace: Some(team.as_str()),
        endpoint: &ApiEndpoint::at(format!("https://{}", blueprint.cluster.external_dns_name)),
        certificate_authority: authority,
        client_certificate: certificate,
        client_key: key,
    });
    let bytes = kubeconfig.expose().as_bytes();
    if arguments.replace || arguments.to.is_none() {
        // Whatever is at the usual place is of a certificate that has no rights any more.
        durable_file::replace(&path, bytes, Access::Private)?;
    } else {
        let help = "it may hold a key that is in use: delete it if it does not, or name another file with `--to FILE`";
        durable_file::create(&path, bytes, Access::Private)
            .map_err(|error| Refusal::new(error.to_string()).help(help))?;
    }
    let until = not_after.date().to_string();
    let added =
        block_on(until_interrupted(async { Ok(add_user(api, team, name, common_name, &until).await?) }));
    if let Err(error) = added {
        // A kubeconfig without rights would only mislead.
        std::fs::remove_file(&path).with_context(|| format!("deleting {}", path.display()))?;
        return Err(error);
    }
    session.printer.note(format_args!(
        "user '{name}' may use namespace {team} of cluster {} until {until}",
        cluster.name
    ));
    session.printer.note(format_args!(
        "hand over {}, which holds the only copy of the key; then `infra job submit --kubeconfig FILE` works without anything else",
        path.display()
    ));
    Ok(Exit::Done)
}
