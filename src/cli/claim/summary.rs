//! What a transfer came to, for people and for programs.

use serde::Serialize;

use super::transfer_view::bytes_in_words;
use crate::cli::printer::Output;
use crate::cli::session::Session;
use crate::job::data::{LeftOut, Moved};
use crate::plural::count_of;

/// Entries that were left out are shown by name, the first of them.
const NAMES_SHOWN: usize = 5;

/// Which way files went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum Direction {
    /// To the claim.
    Put,
    /// From the claim.
    Get,
}

/// The end of `data put`, `data get` and `job fetch`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct TransferDocument {
    /// Which way files went.
    direction: Direction,
    /// All files that were asked for.
    files: u64,
    /// The size of all of them, in bytes.
    bytes: u64,
    /// The files that were moved; the others were there already.
    moved_files: u64,
    /// The bytes of files that went over the network.
    moved_bytes: u64,
    /// Links that were left out because they lead out of the directory, with their targets.
    outside_links: Vec<String>,
    /// What was left out because it is neither a file, a directory nor a link, or its name is no text.
    special_files: Vec<String>,
    /// Files that were deleted on the claim while the transfer ran.
    gone: Vec<String>,
}

/// Prints what was moved, and what was left out.
pub(in crate::cli) fn print_summary(
    direction: Direction,
    moved: &Moved,
    target: &str,
    session: &Session,
) -> anyhow::Result<()> {
    let Moved { files, bytes, moved_files, moved_bytes, left_out } = moved;
    print_left_out(left_out, session);
    if session.output == Output::Json {
        let LeftOut { outside_links, special_files, gone } = left_out.clone();
        return session.printer.json(&TransferDocument {
            direction,
            files: *files,
            bytes: *bytes,
            moved_files: *moved_files,
            moved_bytes: *moved_bytes,
            outside_links,
            special_files,
            gone,
        });
    }
    let all = format!("{}, {}", count_of(*files, "file"), bytes_in_words(*bytes));
    let done = match moved_files {
        0 if *files == 0 => "no files".to_owned(),
        0 => format!("{all}: nothing to move, all of it is there"),
        moved if moved == files => all,
        moved => format!("{all}: moved {} with {}", count_of(*moved, "file"), bytes_in_words(*moved_bytes)),
    };
    session.printer.note(format_args!("{done}; in {target}"));
    Ok(())
}

fn print_left_out(left_out: &LeftOut, session: &Session) {
    let LeftOut { outside_links, special_files, gone } = left_out;
    if !outside_links.is_empty() {
        session.printer.warning(format_args!(
            "left out {}, leading out of the directory: {}",
            count_of(outside_links.len(), "link"),
            first_names(outside_links)
        ));
    }
    if !special_files.is_empty() {
        session.printer.warning(format_args!(
            "left out {} (pipes, devices): {}",
            count_of(special_files.len(), "special file"),
            first_names(special_files)
        ));
    }
    if !gone.is_empty() {
        session.printer.warning(format_args!(
            "{} deleted meanwhile: {}",
            count_of(gone.len(), "file"),
            first_names(gone)
        ));
    }
}

/// As many names as a line holds.
fn first_names(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
