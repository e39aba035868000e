//! The last lines of a pod's log, which explain a failure.

use crate::kube::{ApiServer, LogPart};

const LINES: u32 = 15;
/// A line has no limit in Kubernetes.
const LONGEST_TEXT: usize = 64 << 10;

/// The last lines a pod printed. What explains a failure must not become one: without a pod there are none.
pub(super) async fn last_lines(api: &ApiServer, namespace: &str, pod: &str) -> Vec<String> {
    let part = LogPart { tail: Some(LINES), ..LogPart::default() };
    let Ok(mut body) = api.pod_log(namespace, pod, part).await else { return Vec::new() };
    let text = body.beginning(LONGEST_TEXT).await.unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
