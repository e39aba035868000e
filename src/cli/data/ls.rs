//! `infra data ls`: what is on the claim.

use clap::Args;
use time::OffsetDateTime;
use time::macros::format_description;

use super::options::{ClaimOptions, DataCluster, parse_remote};
use crate::cli::aws_access::block_on;
use crate::cli::claim::Mount;
use crate::cli::exit::Exit;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::job::data::{EntryKind, RemoteEntry, RemotePath};

/// List what is on the claim: size, time of the last change (UTC) and name
#[derive(Args, Debug)]
pub(super) struct LsArguments {
    /// A path on the claim
    #[arg(value_name = "REMOTE", default_value = ".", value_parser = parse_remote)]
    remote: RemotePath,
    /// Also what is in directories below
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    claim: ClaimOptions,
}

pub(super) fn run(arguments: &LsArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = DataCluster::connect(&arguments.claim, session)?;
    let path = arguments.remote.as_request();
    let mut entries = block_on(async {
        let known = cluster.read_facts().await?;
        let claim = cluster.claim(&known);
        claim
            .run(Mount::ReadOnly, session, Interrupted::BeforeChanges, async |channel| {
                Ok(channel.list(&path, arguments.recursive).await?)
            })
            .await
    })?;
    // A directory lists what is in it; anything else is what was asked for.
    if entries.first().is_some_and(|entry| entry.kind == EntryKind::Directory) {
        entries.remove(0);
    } else if let (Some(entry), Some(name)) = (entries.first_mut(), arguments.remote.name()) {
        name.clone_into(&mut entry.path);
    }
    if session.output == Output::Json {
        session.printer.json(&entries)?;
    } else if entries.is_empty() {
        session.printer.note(format_args!("{} is empty", arguments.remote));
    } else {
        let lines: Vec<[String; 3]> = entries.iter().map(listing_line).collect();
        session.printer.data(align_columns(&lines))?;
    }
    Ok(Exit::Done)
}

fn listing_line(entry: &RemoteEntry) -> [String; 3] {
    let minute = format_description!("[year]-[month]-[day] [hour]:[minute]");
    let modified =
        i64::try_from(entry.modified).ok().and_then(|time| OffsetDateTime::from_unix_timestamp(time).ok());
    let modified = modified.and_then(|time| time.format(minute).ok()).unwrap_or_default();
    let (size, name) = match entry.kind {
        EntryKind::Directory => ("-".to_owned(), format!("{}/", entry.path)),
        EntryKind::File => (entry.size.to_string(), entry.path.clone()),
        EntryKind::Link => {
            ("-".to_owned(), format!("{} -> {}", entry.path, entry.target.as_deref().unwrap_or_default()))
        }
        EntryKind::Special => ("-".to_owned(), format!("{} (special)", entry.path)),
    };
    [size, modified, name]
}
