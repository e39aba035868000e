//! A transfer for programs: one line of JSON when it begins, now and then, and at its end.

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::cli::terminal::printer::Printer;

/// One line of `data put`, `data get`, `job fetch`, and of `job submit` while it uploads code or fetches data.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Transfer")]
pub(in crate::cli) struct TimedTransfer {
    /// When it was seen: RFC 3339, UTC, whole seconds.
    #[schemars(extend("format" = "date-time"))]
    time: String,
    #[serde(flatten)]
    event: TransferEvent,
}

/// What happened to a transfer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(in crate::cli) enum TransferEvent {
    /// The files to move are known. After a connection that broke it is not written again.
    TransferBegan {
        /// Which way files go.
        direction: Direction,
        /// What is moved.
        subject: Subject,
        /// All files that were asked for.
        files: u64,
        /// The size of all of them, in bytes.
        bytes: u64,
    },
    /// How far the transfer is; written once a second at most, and when the last file has arrived.
    TransferProgress {
        /// Files that are the same on both sides by now.
        done_files: u64,
        /// All files that were asked for.
        files: u64,
        /// Bytes that are the same on both sides by now.
        done_bytes: u64,
        /// The size of all of them.
        bytes: u64,
    },
    /// The transfer is complete, and verified.
    Transferred {
        /// Which way files went.
        direction: Direction,
        /// What was moved.
        subject: Subject,
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
    },
}

/// Which way files go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum Direction {
    /// To the claim.
    Put,
    /// From the claim.
    Get,
}

/// What a transfer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum Subject {
    /// Files that the user named, or the results of a run.
    Files,
    /// The code of a job.
    Code,
    /// The data of a job, which a pod fetches from S3.
    Data,
}

/// Writes a line about a transfer. A reader that is gone does not stop the transfer.
pub(super) fn write_event(event: TransferEvent, printer: &Printer) {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0).ok().and_then(|now| now.format(&Rfc3339).ok());
    let Some(time) = now else { return };
    if let Ok(line) = serde_json::to_string(&TimedTransfer { time, event }) {
        let _ = printer.json_text(&line);
    }
}
