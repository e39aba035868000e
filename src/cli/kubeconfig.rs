//! `infra kubeconfig`: prints the administrator's kubeconfig, or merges it into an existing one.

use std::path::{Path, PathBuf};

use clap::Args;

use super::aws_access::{AwsOptions, block_on};
use super::exit::Exit;
use super::failure::Refusal;
use super::session::Session;
use crate::credentials::CredentialStore;
use crate::deploy::{LiveCluster, load_balancer};
use crate::project::Project;
use crate::render::ApiEndpoint;

/// Print the administrator's kubeconfig, or merge it into yours
///
/// The kubeconfig holds a private key. `infra kubeconfig --merge` adds the cluster to $KUBECONFIG or ~/.kube/config and keeps the
/// current context, if there is one. `--direct` works before a DNS record does: it reads the name of the API's load balancer from AWS.
#[derive(Args, Debug)]
pub(super) struct KubeconfigArguments {
    /// Merge into FILE; without FILE into the first of $KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    merge: Option<Option<PathBuf>>,
    /// Reach the API server at this URL instead of https://<externalDNSName>
    #[arg(long, value_name = "URL", value_parser = parse_server)]
    server: Option<String>,
    /// Reach the API server at its load balancer's own name, as long as <externalDNSName> does not resolve
    #[arg(long, conflicts_with = "server")]
    direct: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &KubeconfigArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project_quietly()?;
    let endpoint = match &arguments.server {
        _ if arguments.direct => find_direct_endpoint(arguments, &project, session)?,
        Some(server) => ApiEndpoint::at(server),
        None => project.public_endpoint(),
    };
    let store = session.open_existing_credentials()?;
    match &arguments.merge {
        None => session.printer.file(project.admin_kubeconfig(&store, &endpoint)?.expose())?,
        Some(path) => {
            let path = path.clone().map_or_else(default_kubeconfig_path, Ok)?;
            merge_into_file(&path, &project, &store, &endpoint, session)?;
        }
    }
    Ok(Exit::Done)
}

/// The load balancer's own name, from the live stacks.
fn find_direct_endpoint(
    arguments: &KubeconfigArguments,
    project: &Project,
    session: &Session,
) -> anyhow::Result<ApiEndpoint> {
    let cluster = &project.blueprint.cluster;
    let live = block_on(async {
        let clients = arguments.aws.connect(cluster, session).await;
        Ok(LiveCluster::read(&clients, &cluster.name, Some(cluster)).await?)
    })?;
    if !live.exists() {
        let refusal =
            Refusal::new(format!("there is no cluster {} in this account and region", cluster.name));
        return Err(refusal.help("`infra up` creates it").into());
    }
    let Some(target) = load_balancer(&live.outputs()) else {
        return Err(Refusal::new(format!(
            "the API of {} has no load balancer yet: its control plane is not complete",
            cluster.name
        ))
        .help("`infra status` shows the stacks; retry when the control plane is complete, or run `infra up` if nothing is in progress")
        .into());
    };
    if !cluster.api.public {
        session.printer.note("the load balancer is internal: it can be reached from inside the VPC, or through a VPN or tunnel into it");
    }
    Ok(project.direct_endpoint(&target.name))
}

fn merge_into_file(
    path: &Path,
    project: &Project,
    store: &CredentialStore,
    endpoint: &ApiEndpoint,
    session: &Session,
) -> anyhow::Result<()> {
    let context = project.merge_kubeconfig(path, store, endpoint)?;
    let name = &project.blueprint.cluster.name;
    session.printer.note(format_args!("{}: cluster, user and context '{name}' merged", path.display()));
    if context != name.as_str() {
        session.printer.note(format_args!(
            "the current context is still '{context}'; `kubectl config use-context {name}` switches"
        ));
    }
    if endpoint.tls_server_name.is_some() {
        let public = &project.blueprint.cluster.external_dns_name;
        session.printer.note(format_args!(
            "it names the load balancer; when {public} resolves, `infra kubeconfig --merge` replaces it with that name"
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
