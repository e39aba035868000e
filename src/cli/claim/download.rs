//! Files of the claim onto this machine, shown as they come.

use super::access::{ClaimAccess, Mount};
use super::summary::print_summary;
use super::transfer_event::{Direction, Subject};
use super::transfer_view::TransferView;
use crate::cli::exit::Exit;
use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::job::data::{GetRequest, get};

/// Downloads what is asked for, and prints what that came to.
pub(in crate::cli) async fn download(
    access: &ClaimAccess<'_>,
    request: &GetRequest,
    session: &Session,
) -> anyhow::Result<Exit> {
    let view = TransferView::new(Direction::Get, Subject::Files, session);
    let moved = access
        .run(Mount::ReadOnly, session, Interrupted::WhileMovingFiles, async |channel| {
            Ok(get(channel, request, &|progress| view.show(progress)).await?)
        })
        .await;
    view.finish();
    print_summary(Direction::Get, &moved?, &request.directory.display().to_string(), session);
    Ok(Exit::Done)
}
