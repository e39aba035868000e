//! `infra data rm`: deletes from the claim.

use clap::Args;

use super::options::{ClaimOptions, DataCluster, parse_writable_remote};
use crate::cli::aws_access::block_on;
use crate::cli::claim::Mount;
use crate::cli::exit::Exit;
use crate::cli::interruption::Interrupted;
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::job::data::{Channel, DataError, EntryKind, RemoteEntry, RemotePath, bytes_in_words};
use crate::plural::count_of;

/// Delete files and directories from the claim
///
/// Says what would be deleted and asks, unless --yes is given. Directories are deleted with all that is below; links are deleted, never
/// followed. What is deleted cannot be restored.
#[derive(Args, Debug)]
pub(super) struct RmArguments {
    /// Paths on the claim
    #[arg(value_name = "REMOTE", required = true, value_parser = parse_deletable_remote)]
    remote: Vec<RemotePath>,
    #[command(flatten)]
    claim: ClaimOptions,
}

fn parse_deletable_remote(text: &str) -> Result<RemotePath, String> {
    let path = parse_writable_remote(text)?;
    if path.name().is_none() {
        return Err(
            "this is the root of the claim, with the files of every job; name what is in it".to_owned()
        );
    }
    Ok(path)
}

pub(super) fn run(arguments: &RmArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = DataCluster::connect(&arguments.claim, session)?;
    let mut is_agreed = session.yes;
    block_on(async {
        let known = cluster.read_facts().await?;
        let claim = cluster.claim(&known);
        let remove = async |channel: &mut Channel| {
            if !is_agreed {
                ask_to_delete_files(channel, &arguments.remote, session).await?;
                is_agreed = true;
            }
            for path in &arguments.remote {
                match channel.remove(&path.as_request()).await {
                    // Deleted before the connection broke, or by someone else.
                    Err(DataError::Missing { .. }) if is_agreed && !session.yes => {}
                    removed => removed?,
                }
            }
            Ok(())
        };
        claim.run(Mount::ReadWrite, session, Interrupted::WhileMovingFiles, remove).await
    })?;
    session.printer.note(format_args!("deleted {}", join_paths(&arguments.remote)));
    Ok(Exit::Done)
}

/// Says what would be deleted, and asks.
async fn ask_to_delete_files(
    channel: &mut Channel,
    paths: &[RemotePath],
    session: &Session,
) -> anyhow::Result<()> {
    for path in paths {
        let entries = channel.list(&path.as_request(), true).await?;
        session.printer.note(format_args!("{path}: {}", in_words(&entries)));
    }
    let question = format!("{} will be deleted from the claim for good. Continue?", join_paths(paths));
    ask_on_thread(&question, "--yes", &session.printer).await
}

fn join_paths(paths: &[RemotePath]) -> String {
    paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn in_words(entries: &[RemoteEntry]) -> String {
    let root = entries.first().map(|entry| entry.kind);
    let bytes = entries.iter().map(|entry| entry.size).sum();
    match root {
        Some(EntryKind::Directory) => {
            let below = entries.iter().filter(|entry| entry.kind != EntryKind::Directory).count();
            match below {
                0 => "a directory without files".to_owned(),
                _ => format!("a directory with {}, {}", count_of(below, "file"), bytes_in_words(bytes)),
            }
        }
        Some(EntryKind::Link) => "a link".to_owned(),
        _ => format!("a file, {}", bytes_in_words(bytes)),
    }
}
