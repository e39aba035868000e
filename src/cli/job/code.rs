//! The code of a job on its way to the claim, and how that is shown.

use time::OffsetDateTime;
use time::macros::format_description;

use super::target::random_mark;
use crate::cli::claim::{ClaimAccess, Direction, Mount, Subject, TransferView, print_left_out, write_end};
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::cli::terminal::printer::Output;
use crate::job::code::{CodeTree, Uploaded, upload};
use crate::job::data::{Moved, bytes_in_words};
use crate::job::life::PlannedCode;
use crate::job::{ClusterFacts, Scripts, TrainingJob, Workload};
use crate::kube::ApiServer;
use crate::plural::count_of;

/// How many digits of a digest distinguish runs.
const SHORT_DIGEST: usize = 12;

/// Brings the code of a job onto its claim, and prints what that came to.
pub(super) async fn upload_code(
    code: &mut CodeTree,
    job: &TrainingJob,
    workload: &Workload,
    (api, facts, scripts): (&ApiServer, ClusterFacts<'_>, &Scripts),
    session: &Session,
) -> anyhow::Result<()> {
    let access = ClaimAccess::of_job((api, facts, scripts), job, workload, random_mark()?);
    print_left_out(code.left_out(), session);
    let view = TransferView::new(Direction::Put, Subject::Code, session);
    let uploaded = access
        .run(Mount::ReadWrite, session, Interrupted::WhileUploadingCode, async |channel| {
            Ok(upload(channel, code, &|progress| view.show(progress)).await?)
        })
        .await;
    view.finish();
    let uploaded = uploaded?;
    if session.output == Output::Json {
        let moved = match uploaded {
            Uploaded::Moved(moved) => moved,
            Uploaded::Unchanged { .. } => Moved {
                files: code.files,
                bytes: code.bytes,
                left_out: code.left_out().clone(),
                ..Moved::default()
            },
        };
        write_end(Direction::Put, Subject::Code, &moved, session);
        return Ok(());
    }
    let done = match uploaded {
        Uploaded::Unchanged { since } => format!("unchanged since {}", in_utc(since)),
        Uploaded::Moved(moved) if moved.moved_files == moved.files => "uploaded".to_owned(),
        Uploaded::Moved(moved) => {
            let (files, bytes) = (count_of(moved.moved_files, "file"), bytes_in_words(moved.moved_bytes));
            format!("uploaded {files} with {bytes}; the others were there")
        }
    };
    session.printer.note(format_args!("code: {}, {done}", size_of(code.files, code.bytes)));
    Ok(())
}

/// The code in a plan.
pub(super) fn planned_code(code: &CodeTree, workload: &Workload) -> PlannedCode {
    PlannedCode {
        files: code.files,
        bytes: code.bytes,
        directory: code.directory(),
        mounted_at: workload.code.as_ref().map(|code| code.mounted_at.clone()).unwrap_or_default(),
    }
}

/// How much code there is.
pub(super) fn size_of(files: u64, bytes: u64) -> String {
    format!("{}, {}", count_of(files, "file"), bytes_in_words(bytes))
}

/// The digest by which runs are compared.
pub(super) fn short_digest(code: &CodeTree) -> String {
    code.digest.get(..SHORT_DIGEST).unwrap_or(&code.digest).to_owned()
}

fn in_utc(seconds: u64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");
    let time = i64::try_from(seconds).ok().and_then(|time| OffsetDateTime::from_unix_timestamp(time).ok());
    time.and_then(|time| time.format(format).ok()).unwrap_or_else(|| "an unknown time".to_owned())
}
