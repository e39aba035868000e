//! `infra data put`: files of this machine onto the claim.

use std::path::PathBuf;

use clap::Args;

use super::options::{ClaimOptions, DataCluster, parse_writable_remote};
use crate::cli::aws_access::block_on;
use crate::cli::claim::{Direction, Mount, Subject, TransferView, print_summary};
use crate::cli::exit::Exit;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::job::data::{LocalTree, RemotePath, put};

/// Upload files and directories to the claim
///
/// Each LOCAL goes into the directory REMOTE under its own name; of a LOCAL that ends in a slash, what is in it does. Files that are
/// there with the same content are not sent again; others are replaced, each at once. Executable files stay executable, modification times
/// are kept. Links that lead out of LOCAL, pipes and devices are left out and named. Interrupted, the same command continues (exit 5).
#[derive(Args, Debug)]
pub(super) struct PutArguments {
    /// Files and directories of this machine
    #[arg(value_name = "LOCAL", required = true)]
    local: Vec<PathBuf>,
    /// The directory on the claim, which is created; `.` is the root
    #[arg(value_name = "REMOTE", value_parser = parse_writable_remote)]
    remote: RemotePath,
    #[command(flatten)]
    claim: ClaimOptions,
}

pub(super) fn run(arguments: &PutArguments, session: &Session) -> anyhow::Result<Exit> {
    let mut tree = LocalTree::read(&arguments.local, &arguments.remote)?;
    let cluster = DataCluster::connect(&arguments.claim, session)?;
    let view = TransferView::new(Direction::Put, Subject::Files, session);
    let moved = block_on(async {
        let known = cluster.read_facts().await?;
        let claim = cluster.claim(&known);
        claim
            .run(Mount::ReadWrite, session, Interrupted::WhileMovingFiles, async |channel| {
                Ok(put(channel, &mut tree, &|progress| view.show(progress)).await?)
            })
            .await
    });
    view.finish();
    print_summary(Direction::Put, &moved?, &arguments.remote.to_string(), session);
    Ok(Exit::Done)
}
