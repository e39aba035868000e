//! A claim of the cluster for as long as a command runs, and how a transfer is shown: what `infra data` and `infra job` share.

mod access;
mod download;
mod summary;
mod transfer_event;
mod transfer_view;

pub(super) use access::{ClaimAccess, Mount};
pub(super) use download::download;
pub(super) use summary::{print_left_out, print_summary, write_end};
pub(super) use transfer_event::{Direction, Subject, TimedTransfer};
pub(super) use transfer_view::TransferView;
