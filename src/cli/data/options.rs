//! Which claim a command is about, and paths on it.

use clap::Args;

use crate::blueprint::Blueprint;
use crate::cli::claim::ClaimAccess;
use crate::cli::job::{connect, random_mark, scripts_of};
use crate::cli::session::Session;
use crate::job::data::RemotePath;
use crate::job::{CLUSTER_CLAIM, Scripts};
use crate::kube::ApiServer;

/// Which claim, and the image of the pod that mounts it.
#[derive(Args, Debug)]
pub(super) struct ClaimOptions {
    /// The namespace whose claim is meant
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// The claim
    #[arg(long, value_name = "NAME", default_value = CLUSTER_CLAIM)]
    claim: String,
    /// The image of the pod that mounts the claim, if the usual one cannot be pulled; it needs python3
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

/// The cluster that a command is about.
pub(super) struct DataCluster {
    blueprint: Blueprint,
    api: ApiServer,
    scripts: Scripts,
    mark: String,
}

impl DataCluster {
    pub(super) fn connect(session: &Session) -> anyhow::Result<Self> {
        let (blueprint, api) = connect(session)?;
        Ok(Self { blueprint, api, scripts: scripts_of(session)?, mark: random_mark()? })
    }

    /// The claim that the options name.
    pub(super) fn claim<'a>(&'a self, options: &'a ClaimOptions) -> ClaimAccess<'a> {
        ClaimAccess {
            blueprint: &self.blueprint,
            api: &self.api,
            namespace: &options.namespace,
            claim: &options.claim,
            image: options.image.as_deref(),
            scripts: &self.scripts,
            mark: &self.mark,
        }
    }
}

/// A path on the claim, as an argument.
pub(super) fn parse_remote(text: &str) -> Result<RemotePath, String> {
    text.parse()
}

/// A path on the claim that is changed, as an argument.
pub(super) fn parse_writable_remote(text: &str) -> Result<RemotePath, String> {
    let path: RemotePath = text.parse()?;
    if path.is_of_records() {
        return Err("directories named .infra hold records of infra itself".to_owned());
    }
    Ok(path)
}
