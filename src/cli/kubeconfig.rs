//! `infra kubeconfig`: prints the administrator's kubeconfig, or merges it into one that is there.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::exit::Exit;
use super::failure::Refusal;
use super::session::Session;
use crate::blueprint::Blueprint;
use crate::credentials::{SecretText, Store};
use crate::document::{ReadError, parse_untyped, read_text, write_yaml};
use crate::durable_file::{self, Access};
use crate::render::{KubeconfigSource, merge_kubeconfig, render_kubeconfig};

/// Print the administrator's kubeconfig, or merge it into yours
///
/// It holds a private key. `infra kubeconfig --merge` adds the cluster to $KUBECONFIG or ~/.kube/config and leaves the current
/// context as it is, if there is one.
#[derive(Args, Debug)]
pub(super) struct KubeconfigArguments {
    /// Merge into FILE; without FILE into the first of $KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    merge: Option<Option<PathBuf>>,
    /// Reach the API server at this URL instead of https://<externalDNSName>
    #[arg(long, value_name = "URL", value_parser = parse_server)]
    server: Option<String>,
}

pub(super) fn run(arguments: &KubeconfigArguments, session: &Session) -> anyhow::Result<Exit> {
    let blueprint = Blueprint::new(session.assets.load_cluster(&session.printer)?)?;
    let store = session.assets.open_existing_credentials(&session.printer)?;
    let server = arguments.server.clone().unwrap_or_else(|| default_server(&blueprint));
    match &arguments.merge {
        None => session.printer.raw(admin_kubeconfig(&blueprint, &store, &server)?.expose())?,
        Some(path) => {
            let path = path.clone().map_or_else(default_kubeconfig_path, Ok)?;
            merge(&path, &blueprint, &store, &server, session)?;
        }
    }
    Ok(Exit::Done)
}

/// The URL under which the API server is reached from outside.
pub(super) fn default_server(blueprint: &Blueprint) -> String {
    format!("https://{}", blueprint.cluster.external_dns_name)
}

/// The administrator's kubeconfig.
pub(super) fn admin_kubeconfig(
    blueprint: &Blueprint,
    store: &Store,
    server: &str,
) -> anyhow::Result<SecretText> {
    with_source(blueprint, store, server, |source| Ok(render_kubeconfig(source)))
}

fn merge(
    path: &Path,
    blueprint: &Blueprint,
    store: &Store,
    server: &str,
    session: &Session,
) -> anyhow::Result<()> {
    let existing = match read_text(path) {
        Ok(text) => parse_untyped(path, &text)?,
        Err(ReadError::Missing { .. }) => serde_json::Value::Null,
        Err(error) => return Err(error.into()),
    };
    let merged = with_source(blueprint, store, server, |source| {
        merge_kubeconfig(existing, source).with_context(|| format!("merging into {}", path.display()))
    })?;
    let context = merged.current_context();
    let text = SecretText::new(write_yaml(merged.content())?);
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
    }
    durable_file::replace(path, text.expose().as_bytes(), Access::Private)?;
    let name = &blueprint.cluster.name;
    session.printer.note(format_args!("{}: cluster, user and context '{name}' merged", path.display()));
    if context != name.as_str() {
        session.printer.note(format_args!(
            "the current context is still '{context}'; `kubectl config use-context {name}` switches"
        ));
    }
    Ok(())
}

fn with_source<T>(
    blueprint: &Blueprint,
    store: &Store,
    server: &str,
    use_source: impl FnOnce(&KubeconfigSource<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let missing = |what: &str| {
        Refusal::new(format!("{what} is not among the credentials"))
            .help("`infra render credentials` makes what is missing")
    };
    let certificate_authority = store.read_certificate("ca")?.ok_or_else(|| missing("ca.pem"))?;
    let client_certificate = store.read_certificate("admin")?.ok_or_else(|| missing("admin.pem"))?;
    let client_key = store.read_key("admin")?.ok_or_else(|| missing("admin-key.pem"))?;
    let user = format!("{}-admin", blueprint.cluster.name);
    use_source(&KubeconfigSource {
        cluster: blueprint.cluster.name.as_str(),
        user: &user,
        server,
        certificate_authority: &certificate_authority,
        client_certificate: &client_certificate,
        client_key: &client_key,
    })
}

fn default_kubeconfig_path() -> anyhow::Result<PathBuf> {
    let from_environment = std::env::var_os("KUBECONFIG").unwrap_or_default();
    if let Some(first) = std::env::split_paths(&from_environment).find(|path| !path.as_os_str().is_empty()) {
        return Ok(first);
    }
    let home = std::env::home_dir().ok_or_else(|| {
        Refusal::new("there is no home directory to find .kube/config in")
            .help("name the file: `--merge FILE`")
    })?;
    Ok(home.join(".kube/config"))
}

fn parse_server(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").ok_or("it must begin with https://")?;
    let good = !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic() && !"\"'<>\\^`{|}".contains(c));
    if good { Ok(text.trim_end_matches('/').to_owned()) } else { Err("it is not a URL".to_owned()) }
}
