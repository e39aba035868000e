//! Queues of Kueue, an optional part of a cluster.

use serde_json::Value;

use super::path::encode;
use super::{ApiServer, KubeError};

const GROUP: &str = "kueue.x-k8s.io";

/// What a cluster has of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePresence {
    /// Kueue is not installed.
    NoKueue,
    /// There is no such queue in the namespace.
    Missing,
    /// The queue exists.
    Found,
}

impl ApiServer {
    /// Whether a namespace has a queue, in whatever version Kueue offers it.
    pub(crate) async fn find_queue(&self, namespace: &str, name: &str) -> Result<QueuePresence, KubeError> {
        let Some(group) = self.get_json(&format!("/apis/{GROUP}")).await? else {
            return Ok(QueuePresence::NoKueue);
        };
        let Some(version) = group.pointer("/preferredVersion/groupVersion").and_then(Value::as_str) else {
            return Ok(QueuePresence::NoKueue);
        };
        let path = format!("/apis/{version}/namespaces/{}/localqueues/{}", encode(namespace), encode(name));
        let found = self.get_json(&path).await?.is_some();
        Ok(if found { QueuePresence::Found } else { QueuePresence::Missing })
    }
}
