//! Which secret, in which namespace.

use clap::Args;

use crate::cli::job::job_namespace;
use crate::cli::session::Session;
use crate::document::Fault;
use crate::job::values::{Namespace, SecretName};

/// Which namespace.
#[derive(Args, Debug)]
pub(super) struct NamespaceOptions {
    /// The namespace; by default that of job.yaml, of the kubeconfig, or default
    #[arg(short, long, value_name = "NAMESPACE", value_parser = parse_namespace)]
    namespace: Option<Namespace>,
}

impl NamespaceOptions {
    /// The namespace that is meant.
    pub(super) fn resolve(&self, session: &Session) -> anyhow::Result<String> {
        match &self.namespace {
            Some(namespace) => Ok(namespace.to_string()),
            None => job_namespace(session),
        }
    }
}

fn parse_namespace(text: &str) -> Result<Namespace, String> {
    text.parse().map_err(|fault: Fault| fault.to_string())
}

/// The name of a secret, as an argument.
pub(super) fn parse_secret_name(text: &str) -> Result<SecretName, String> {
    text.parse().map_err(|fault: Fault| fault.to_string())
}
