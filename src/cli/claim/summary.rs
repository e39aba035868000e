//! What a transfer came to, for people and for programs.

use super::transfer_event::{Direction, Subject, TransferEvent, write_event};
use crate::cli::session::Session;
use crate::cli::terminal::printer::Output;
use crate::job::data::{LeftOut, Moved, bytes_in_words};
use crate::plural::count_of;

/// Entries that were left out are shown by name, the first of them.
const NAMES_SHOWN: usize = 5;

/// Prints what was moved, and what was left out.
pub(in crate::cli) fn print_summary(direction: Direction, moved: &Moved, target: &str, session: &Session) {
    print_left_out(&moved.left_out, session);
    if session.output == Output::Json {
        return write_end(direction, Subject::Files, moved, session);
    }
    let Moved { files, bytes, moved_files, moved_bytes, .. } = moved;
    let all = format!("{}, {}", count_of(*files, "file"), bytes_in_words(*bytes));
    let done = match moved_files {
        0 if *files == 0 => "no files".to_owned(),
        0 => format!("{all}: nothing to move, all of it is there"),
        moved if moved == files => all,
        moved => format!("{all}: moved {} with {}", count_of(*moved, "file"), bytes_in_words(*moved_bytes)),
    };
    session.printer.note(format_args!("{done}; in {target}"));
}

/// Writes the end of a transfer for programs.
pub(in crate::cli) fn write_end(direction: Direction, subject: Subject, moved: &Moved, session: &Session) {
    let LeftOut { outside_links, special_files, gone } = moved.left_out.clone();
    let event = TransferEvent::Transferred {
        direction,
        subject,
        files: moved.files,
        bytes: moved.bytes,
        moved_files: moved.moved_files,
        moved_bytes: moved.moved_bytes,
        outside_links,
        special_files,
        gone,
    };
    write_event(event, &session.printer);
}

/// Prints what was left out, and why.
pub(in crate::cli) fn print_left_out(left_out: &LeftOut, session: &Session) {
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
