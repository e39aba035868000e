//! `infra render credentials`: keys, certificates and kubeconfig.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;

use super::super::failure::Refusal;
use super::super::session::Session;
use crate::blueprint::Blueprint;
use crate::cli::deployment::rotation::print_next_steps;
use crate::cli::question::ask_for_yes;
use crate::cli::terminal::printer::Output;
use crate::credentials::{
    Action, AuthoritySource, CredentialStore, Ensured, ImportedAuthority, KeysInUse, Request, RotatedKey,
    RotationRequest, ensure_credentials, rotate_keys,
};
use crate::plural::list_counts;
use crate::project::Project;

/// Create keys, certificates and kubeconfig
///
/// What exists and is valid is kept byte for byte; what is missing, expired or no longer fits cluster.yaml is created again.
///
/// A running cluster changes the key that signs service-account tokens, or the one that encrypts Secrets, in two steps: `infra render
/// credentials --rotate NAME`, `infra up`, and both again. After step 1 controllers accept the new key, after step 2 they use it. `--retire
/// NAME` and `infra up` then drop the previous key; its file stays. Authorities cannot be rotated.
#[derive(Args, Debug)]
pub(super) struct CredentialsArguments {
    /// Create the certificate authorities that do not exist yet
    #[arg(long, conflicts_with_all = ["ca_cert_path", "ca_key_path"])]
    generate_ca: bool,
    /// Use your own cluster authority: its certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "ca_key_path")]
    ca_cert_path: Option<PathBuf>,
    /// Use your own cluster authority: its private key (PEM, without passphrase)
    #[arg(long, value_name = "FILE", requires = "ca_cert_path")]
    ca_key_path: Option<PathBuf>,
    /// Issue every certificate again, under the same authorities
    #[arg(long)]
    renew: bool,
    /// Replace existing authorities; a running cluster does not survive this
    #[arg(long)]
    replace_ca: bool,
    /// Take the next step of a rotation: service-account or secrets-encryption; give it twice for both
    #[arg(long, value_name = "NAME", value_parser = parse_rotated_key, conflicts_with_all = ["retire", "replace_ca"])]
    rotate: Vec<RotatedKey>,
    /// End a rotation: drop the previous key
    #[arg(long, value_name = "NAME", value_parser = parse_rotated_key, conflicts_with = "replace_ca")]
    retire: Vec<RotatedKey>,
    /// Answer yes to the question that --replace-ca or --retire asks
    #[arg(long)]
    yes: bool,
}

/// Pods get a new token within an hour, and the tool cannot see what else holds one.
const RETIREMENT_QUESTION: &str = "After the next `infra up`, tokens that the previous key signed are refused. Pods renew theirs within \
     an hour after the `infra up` of step 2. Continue?";

/// What was done for one identity.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Identity")]
pub(super) struct Row {
    /// The name of the identity.
    name: String,
    /// What was done.
    action: Done,
    /// Why it was created again.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Done {
    /// The file is valid and was not changed
    Kept,
    /// The file did not exist
    Created,
    /// The file existed and had to be created again
    Recreated,
    /// The certificate was valid and was issued again, with `--renew`
    Renewed,
    /// The authority was copied from the files of `--ca-cert-path` and `--ca-key-path`
    Imported,
    /// The authority was replaced, with `--replace-ca`
    Replaced,
}

impl Done {
    fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Created => "created",
            Self::Recreated => "recreated",
            Self::Renewed => "renewed",
            Self::Imported => "imported",
            Self::Replaced => "replaced",
        }
    }
}

/// What was done to each identity, and the credentials, which stay locked.
pub(super) fn run(
    arguments: &CredentialsArguments,
    project: &Project,
    session: &Session,
) -> anyhow::Result<(Vec<Row>, CredentialStore)> {
    let blueprint = &project.blueprint;
    let authorities = match (&arguments.ca_cert_path, &arguments.ca_key_path) {
        (Some(certificate), Some(key)) => {
            AuthoritySource::Imported(ImportedAuthority::read(certificate, key)?)
        }
        _ if arguments.generate_ca => AuthoritySource::Generated,
        _ => AuthoritySource::OnDisk,
    };
    if arguments.replace_ca && matches!(authorities, AuthoritySource::OnDisk) {
        return Err(Refusal::invalid("--replace-ca needs new authorities")
            .help("add --generate-ca, or --ca-cert-path FILE --ca-key-path FILE")
            .into());
    }
    let store = session.open_credentials()?;
    if arguments.replace_ca {
        confirm_replacement(blueprint, &store, arguments.yes, session)?;
    }
    if arguments.retire.contains(&RotatedKey::ServiceAccount) && !arguments.yes {
        ask_for_yes(RETIREMENT_QUESTION, "--yes", &session.printer)?;
    }
    let request = Request {
        identities: &blueprint.identities,
        now: OffsetDateTime::now_utc(),
        authorities,
        replace_authorities: arguments.replace_ca,
        renew: arguments.renew,
    };
    let mut ensured = ensure_credentials(&store, &request)?;
    // Last: a step that is reported as failed is taken again, and must not have been taken already.
    let created = rotate_keys(
        &store,
        &blueprint.identities,
        &RotationRequest { rotate: arguments.rotate.clone(), retire: arguments.retire.clone() },
    )?;
    ensured.actions.extend(created.into_iter().map(|name| (name, Action::Created)));
    let rows = result_rows(ensured);
    if session.output != Output::Json {
        print_results(&rows, session);
    }
    print_next_steps(KeysInUse::read(&store)?, session);
    // The kubeconfig follows from the credentials.
    if project.write_kubeconfig(&store)? {
        session.printer.note(format_args!("{}: written", session.assets.kubeconfig().display()));
    }
    Ok((rows, store))
}

fn confirm_replacement(
    blueprint: &Blueprint,
    store: &CredentialStore,
    yes: bool,
    session: &Session,
) -> anyhow::Result<()> {
    let mut names = blueprint.identities.authorities.iter().map(|authority| &authority.name);
    if yes || !names.any(|name| store.certificate_path(name).exists()) {
        return Ok(());
    }
    let question = "New authorities lock every machine and user of a running cluster out. Continue?";
    ask_for_yes(question, "--yes", &session.printer)
}

/// The name of a key that can be rotated.
fn parse_rotated_key(text: &str) -> Result<RotatedKey, String> {
    let known = RotatedKey::ALL.into_iter().find(|key| key.name() == text);
    known.ok_or_else(|| {
        let names = RotatedKey::ALL.map(RotatedKey::name).join(" and ");
        let reason = if text == "ca" || text.ends_with("-ca") {
            "authorities cannot be rotated while a cluster lives, see docs/runbooks/rotate-keys.md"
        } else {
            "there is no key of that name"
        };
        format!("{reason}; {names} can be rotated")
    })
}

fn result_rows(ensured: Ensured) -> Vec<Row> {
    let row = |(name, action)| {
        let (action, reason) = match action {
            Action::Kept => (Done::Kept, None),
            Action::Created => (Done::Created, None),
            Action::Recreated(reason) => (Done::Recreated, Some(reason)),
            Action::Renewed => (Done::Renewed, None),
            Action::Imported => (Done::Imported, None),
            Action::Replaced => (Done::Replaced, None),
        };
        Row { name, action, reason }
    };
    ensured.actions.into_iter().map(row).collect()
}

fn print_results(rows: &[Row], session: &Session) {
    for row in rows.iter().filter(|row| row.action != Done::Kept) {
        let reason = row.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        session.printer.note(format_args!("{:<9}  {}{reason}", row.action.name(), row.name));
    }
    let kept = rows.iter().filter(|row| row.action == Done::Kept).count();
    let directory = session.assets.credentials();
    session.printer.note(format_args!(
        "{}: {}",
        directory.display(),
        list_counts(&[(rows.len() - kept, "created"), (kept, "kept")])
    ));
}
