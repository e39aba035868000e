//! Code onto the claim: what is there already is not sent again, and what is complete appears at once.

use super::tree::{CodeTree, code_staging_directory};
use crate::job::data::{Channel, DataError, Moved, Progress, put};

/// What became of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Uploaded {
    /// It was there.
    Unchanged {
        /// When it was uploaded, in seconds since 1970.
        since: u64,
    },
    /// It is there now.
    Moved(Moved),
}

/// Brings code onto the claim. After a break the same call continues.
pub(crate) async fn upload(
    channel: &mut Channel,
    code: &mut CodeTree,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Uploaded, DataError> {
    let target = code.directory();
    let found = channel.read_tree(&target).await?;
    match found.digest {
        Some(digest) if digest.starts_with(&code.digest) => {
            return Ok(Uploaded::Unchanged { since: found.modified });
        }
        Some(_) => return Err(DataError::ChangedCode { path: target }),
        None => {}
    }
    if let Some(earlier) = found.newest {
        channel.copy_same(&code.tree, &earlier, &code_staging_directory(&code.digest)).await?;
    }
    let moved = put(channel, &mut code.tree, tell).await?;
    channel.publish(&code_staging_directory(&code.digest), &target, &code.digest).await?;
    Ok(Uploaded::Moved(moved))
}
