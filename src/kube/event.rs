//! Events: what Kubernetes reports about an object beyond its status.

use serde::Deserialize;

use super::list::Metadata;
use super::message::one_line;
use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

/// A warning about an object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "EventDocument")]
pub(crate) struct Warning {
    /// Kubernetes' word for it, as `FailedMount`.
    pub reason: String,
    /// What happened.
    pub message: String,
    /// When it happened last, as the API writes it: later is greater.
    pub last: String,
}

/// Anything that Kubernetes reported about an object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "EventDocument")]
pub(crate) struct Event {
    /// The name of the object.
    pub object: String,
    /// Whether something is wrong.
    pub is_warning: bool,
    /// What was reported.
    pub report: Warning,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EventDocument {
    metadata: Metadata,
    involved_object: InvolvedObject,
    #[serde(rename = "type")]
    kind: String,
    reason: String,
    message: String,
    last_timestamp: Option<String>,
    event_time: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InvolvedObject {
    name: String,
}

impl From<EventDocument> for Event {
    fn from(mut document: EventDocument) -> Self {
        let object = std::mem::take(&mut document.involved_object.name);
        Self { object, is_warning: document.kind == "Warning", report: document.into() }
    }
}

impl From<EventDocument> for Warning {
    fn from(document: EventDocument) -> Self {
        let EventDocument { metadata, reason, message, last_timestamp, event_time, .. } = document;
        let last = last_timestamp.or(event_time).unwrap_or(metadata.creation_timestamp);
        Self { reason, message: one_line(&message), last }
    }
}

impl ApiServer {
    /// The warnings about an object, oldest first. Selected by uid: earlier objects had the same name.
    pub(crate) async fn warnings(&self, namespace: &str, uid: &str) -> Result<Vec<Warning>, KubeError> {
        let path = format!("/api/v1/namespaces/{}/events", encode_path_segment(namespace));
        let selector = encode_path_segment(&format!("involvedObject.uid={uid},type=Warning"));
        let mut warnings: Vec<Warning> = self.list(&path, Some(&format!("fieldSelector={selector}"))).await?;
        warnings.sort_by(|one, other| one.last.cmp(&other.last));
        Ok(warnings)
    }

    /// Everything that was reported about objects of a kind in a namespace, oldest first. Nodes are in the namespace default.
    pub(crate) async fn events(&self, namespace: &str, kind: &str) -> Result<Vec<Event>, KubeError> {
        let path = format!("/api/v1/namespaces/{}/events", encode_path_segment(namespace));
        let selector = encode_path_segment(&format!("involvedObject.kind={kind}"));
        let mut events: Vec<Event> = self.list(&path, Some(&format!("fieldSelector={selector}"))).await?;
        events.sort_by(|one, other| one.report.last.cmp(&other.report.last));
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_server::{json_answer, serve};

    #[tokio::test]
    async fn warnings_come_oldest_first() -> Result<(), Box<dyn Error>> {
        let server = serve(|_| {
            json_answer(
                "200 OK",
                r#"{"items":[
                    {"reason":"FailedMount","message":"timed out","lastTimestamp":"2026-11-16T10:00:09Z"},
                    {"reason":"FailedScheduling","message":"no room","lastTimestamp":null,"eventTime":"2026-11-16T10:00:01.000000Z"}]}"#,
            )
        })?;
        let warnings = server.client()?.warnings("vision", "uid-1").await?;
        let reasons: Vec<&str> = warnings.iter().map(|warning| warning.reason.as_str()).collect();
        assert_eq!(reasons, ["FailedScheduling", "FailedMount"]);
        let asked = server.requests.recv()?;
        let selector = "fieldSelector=involvedObject.uid%3Duid-1%2Ctype%3DWarning";
        assert!(asked.contains("/api/v1/namespaces/vision/events?") && asked.contains(selector), "{asked}");
        Ok(())
    }
}
