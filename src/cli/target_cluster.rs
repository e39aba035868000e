//! The cluster that a command about jobs, secrets, teams or users works on, and how it is reached.
//!
//! It is that of `--kubeconfig`, else that of the asset directory, else that of `KUBECONFIG`.

use std::path::PathBuf;

use super::aws_access::api_address;
use super::failure::Refusal;
use super::session::Session;
use crate::blueprint::Blueprint;
use crate::cli::cluster_options::ClusterOptions;
use crate::credentials::Credentials;
use crate::job::ClusterFacts;
use crate::kube::{ApiServer, Node};
use crate::kubeconfig::{Context, read_context};

/// The variable with the kubeconfig files of every Kubernetes tool.
const KUBECONFIG_VARIABLE: &str = "KUBECONFIG";

/// The cluster that a command works on.
#[derive(Debug)]
pub(super) struct TargetCluster {
    /// The name of the cluster.
    pub(super) name: String,
    /// The API server of the cluster.
    pub(super) api: ApiServer,
    /// The namespace that is meant where none is named, if the kubeconfig says so.
    pub(super) namespace: Option<String>,
    /// What cluster.yaml says, if the cluster is that of the asset directory.
    blueprint: Option<Box<Blueprint>>,
}

/// What is known of the cluster, read from its nodes if need be.
#[derive(Debug)]
pub(super) struct KnownCluster<'a> {
    blueprint: Option<&'a Blueprint>,
    nodes: Vec<Node>,
}

impl KnownCluster<'_> {
    /// The facts, for jobs.
    pub(super) fn facts(&self) -> ClusterFacts<'_> {
        self.blueprint.map_or(ClusterFacts::Nodes(&self.nodes), ClusterFacts::Blueprint)
    }
}

impl TargetCluster {
    /// Finds the cluster. Nothing is sent to it yet.
    pub(super) fn find(session: &Session) -> anyhow::Result<Self> {
        let Some(context) = find_kubeconfig_context(session)? else {
            return Self::of_asset_directory(session);
        };
        let address = api_address()?.unwrap_or(context.address);
        let api = ApiServer::with_access(&context.access, &context.tls_name, address)?;
        session.printer.note(format_args!(
            "cluster {} (context '{}' of {})",
            context.cluster,
            context.name,
            context.file.display()
        ));
        Ok(Self { name: context.cluster, api, namespace: context.namespace, blueprint: None })
    }

    /// The cluster of the asset directory, for what its administrator alone does.
    pub(super) fn of_administrator(session: &Session) -> anyhow::Result<(Self, Blueprint)> {
        let mut cluster = Self::of_asset_directory(session)?;
        match cluster.blueprint.take() {
            Some(blueprint) => Ok((cluster, *blueprint)),
            None => Err(Refusal::new("there is no cluster.yaml here").into()),
        }
    }

    fn of_asset_directory(session: &Session) -> anyhow::Result<Self> {
        let blueprint = Blueprint::new(session.assets.load_cluster()?.value)?;
        let store = session.open_existing_credentials()?;
        let credentials = Credentials::read(&store, &blueprint.identities)?;
        let public_name = blueprint.cluster.external_dns_name.to_string();
        let api = ApiServer::of_cluster(&credentials, &public_name, &public_name, api_address()?.as_ref())?;
        let name = blueprint.cluster.name.to_string();
        Ok(Self { name, api, namespace: None, blueprint: Some(Box::new(blueprint)) })
    }

    /// What cluster.yaml says, if the cluster is that of the asset directory.
    pub(super) fn blueprint(&self) -> Option<&Blueprint> {
        self.blueprint.as_deref()
    }

    /// What is known of the cluster: what cluster.yaml says, else what its nodes say.
    pub(super) async fn read_facts(&self) -> anyhow::Result<KnownCluster<'_>> {
        let blueprint = self.blueprint();
        let nodes = if blueprint.is_some() { Vec::new() } else { self.api.nodes().await? };
        Ok(KnownCluster { blueprint, nodes })
    }
}

/// The namespace that is meant where neither an argument nor a job file names one.
pub(super) fn default_namespace(session: &Session) -> anyhow::Result<String> {
    let named = find_kubeconfig_context(session)?.and_then(|context| context.namespace);
    Ok(named.unwrap_or_else(|| "default".to_owned()))
}

/// The context of a kubeconfig, if the cluster is not that of the asset directory.
fn find_kubeconfig_context(session: &Session) -> anyhow::Result<Option<Context>> {
    let ClusterOptions { kubeconfig, context } = &session.cluster;
    if let Some(file) = kubeconfig {
        let file = session.assets.named_file(file)?;
        return Ok(Some(read_context(&[file], context.as_deref())?));
    }
    let has_cluster = session.assets.has_cluster_file()?;
    let files = kubeconfig_files();
    // Whoever has cluster.yaml without its keys, as from a repository, is a user.
    let is_administrator = has_cluster && (files.is_empty() || session.assets.has_credentials()?);
    if !is_administrator && !files.is_empty() {
        return Ok(Some(read_context(&files, context.as_deref())?));
    }
    if context.is_some() {
        let refusal = Refusal::invalid(
            "--context is about a kubeconfig, and the cluster is that of the asset directory",
        );
        return Err(refusal.help("name the kubeconfig with `--kubeconfig FILE`").into());
    }
    if !has_cluster {
        let file = session.assets.cluster_file();
        let refusal =
            Refusal::invalid(format!("{} does not exist, and no kubeconfig is named", file.display()));
        let help = "`-C DIR` names the directory of a cluster; `--kubeconfig FILE`, or KUBECONFIG, the kubeconfig of a user";
        return Err(refusal.help(help).into());
    }
    Ok(None)
}

/// The files that the environment names.
fn kubeconfig_files() -> Vec<PathBuf> {
    let files = std::env::var_os(KUBECONFIG_VARIABLE).unwrap_or_default();
    std::env::split_paths(&files).filter(|file| !file.as_os_str().is_empty()).collect()
}
