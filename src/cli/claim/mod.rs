//! A claim of the cluster for as long as a command runs, and how a transfer is shown: what `infra data` and `infra job` share.

mod access;
mod download;
mod summary;
mod transfer_view;

pub(super) use access::{ClaimAccess, Mount};
pub(super) use download::download;
pub(super) use summary::{Direction, TransferDocument, print_summary};
pub(super) use transfer_view::{TransferView, bytes_in_words};
