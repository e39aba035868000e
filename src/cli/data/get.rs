//! `infra data get`: files of the claim onto this machine.

use std::path::PathBuf;

use clap::Args;

use super::options::{ClaimOptions, DataCluster, parse_remote};
use crate::cli::aws_access::block_on;
use crate::cli::claim::download;
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::job::data::{GetRequest, Pattern, RemotePath};

/// Download a file or a directory from the claim
///
/// REMOTE goes into the directory LOCAL under its own name; of a REMOTE that ends in a slash, what is in it does. Files that are here
/// with the same content are not downloaded again; others are replaced, each at once. Modes follow your umask. Links that lead out of
/// REMOTE, pipes and devices are left out and named. Interrupted, the same command continues (exit 5).
#[derive(Args, Debug)]
pub(super) struct GetArguments {
    /// The path on the claim; `.` is everything
    #[arg(value_name = "REMOTE", value_parser = parse_remote)]
    remote: RemotePath,
    /// The directory of this machine, which is created
    #[arg(value_name = "LOCAL")]
    local: PathBuf,
    /// Only files whose name fits, such as '*.pt' or 'pass-1/**'; may be given several times
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    #[command(flatten)]
    claim: ClaimOptions,
}

pub(super) fn run(arguments: &GetArguments, session: &Session) -> anyhow::Result<Exit> {
    session.assets.refuse_reserved(&arguments.local)?;
    let cluster = DataCluster::connect(&arguments.claim, session)?;
    let request = GetRequest {
        remote: arguments.remote.clone(),
        directory: arguments.local.clone(),
        include: arguments.include.iter().map(|text| Pattern::new(text)).collect(),
        mark: None,
    };
    block_on(async {
        let known = cluster.read_facts().await?;
        download(&cluster.claim(&known), &request, session).await
    })
}
