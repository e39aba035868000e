//! `infra kubeconfig`: prints the administrator's kubeconfig, or merges it into an existing one.

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::failure::Refusal;
use super::session::Session;
use crate::credentials::Store;
use crate::project::Project;

/// Print the administrator's kubeconfig, or merge it into yours
///
/// The kubeconfig holds a private key. `infra kubeconfig --merge` adds the cluster to $KUBECONFIG or ~/.kube/config and keeps the
/// current context, if there is one.
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
    let project = session.load_project_quietly()?;
    let store = session.open_existing_credentials()?;
    let server = arguments.server.clone().unwrap_or_else(|| project.default_server());
    match &arguments.merge {
        None => session.printer.file(project.admin_kubeconfig(&store, &server)?.expose())?,
        Some(path) => {
            let path = path.clone().map_or_else(default_kubeconfig_path, Ok)?;
            merge_into_file(&path, &project, &store, &server, session)?;
        }
    }
    Ok(Exit::Done)
}

fn merge_into_file(
    path: &Path,
    project: &Project,
    store: &Store,
    server: &str,
    session: &Session,
) -> anyhow::Result<()> {
    let context = project.merge_kubeconfig(path, store, server)?;
    let name = &project.blueprint.cluster.name;
    session.printer.note(format_args!("{}: cluster, user and context '{name}' merged", path.display()));
    if context != name.as_str() {
        session.printer.note(format_args!(
            "the current context is still '{context}'; `kubectl config use-context {name}` switches"
        ));
    }
    Ok(())
}

fn default_kubeconfig_path() -> anyhow::Result<PathBuf> {
    let from_environment = std::env::var_os("KUBECONFIG").unwrap_or_default();
    if let Some(first) = std::env::split_paths(&from_environment).find(|path| !path.as_os_str().is_empty()) {
        return Ok(first);
    }
    let home = std::env::home_dir().ok_or_else(|| {
        Refusal::new("there is no home directory for .kube/config").help("name the file: `--merge FILE`")
    })?;
    Ok(home.join(".kube/config"))
}

fn parse_server(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").ok_or("it must begin with https://")?;
    let good = !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic() && !"\"'<>\\^`{|}".contains(c));
    if good { Ok(text.trim_end_matches('/').to_owned()) } else { Err("it is not a valid URL".to_owned()) }
}
