//! Requests about whole trees: their digests, what an earlier one has in common, and making one visible.

use serde_json::json;

use super::channel::Channel;
use super::error::DataError;
use super::local_tree::{LocalKind, LocalTree};
use super::put::entry_for_pod;

/// Entries that are compared at once.
const BATCH: usize = 500;

/// What is at the path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteTree {
    /// The digest of the tree; none if there is nothing.
    pub(crate) digest: Option<String>,
    /// When it was made visible, in seconds since 1970.
    pub(crate) modified: u64,
    /// The newest of the trees beside it.
    pub(crate) newest: Option<String>,
}

impl Channel {
    /// The digest of the tree at a path.
    pub(crate) async fn read_tree(&mut self, path: &str) -> Result<RemoteTree, DataError> {
        self.send(&json!({"do": "tree", "path": path}), &[]).await?;
        let (answer, _) = self.receive().await?;
        Ok(RemoteTree { digest: answer.tree, modified: answer.modified, newest: answer.newest })
    }

    /// Copies files that an earlier tree has under the same path with the same content, on the claim itself.
    pub(crate) async fn copy_same(
        &mut self,
        tree: &LocalTree,
        earlier: &str,
        target: &str,
    ) -> Result<(), DataError> {
        let files: Vec<_> =
            tree.entries.iter().filter(|entry| matches!(entry.kind, LocalKind::File(_))).collect();
        for batch in files.chunks(BATCH) {
            let entries: Vec<_> = batch.iter().map(|entry| entry_for_pod(entry)).collect();
            let request = json!({"do": "copy", "from": earlier, "to": target, "entries": entries});
            self.send(&request, &[]).await?;
            self.receive().await?;
        }
        Ok(())
    }

    /// Gives a tree its name, after the program at the other end has compared all of it with its digest.
    pub(crate) async fn publish(&mut self, from: &str, to: &str, digest: &str) -> Result<(), DataError> {
        self.send(&json!({"do": "publish", "from": from, "to": to, "digest": digest}), &[]).await?;
        self.receive().await.map(drop)
    }
}
