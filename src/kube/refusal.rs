//! What the API answers when it refuses: a Status document, or any other text.

use serde::Deserialize;

use super::KubeError;
use super::connection::{Answer, Question};
use super::message::one_line;
use super::path::without_query;

/// A proxy in between may answer with a whole page.
const LONGEST_MESSAGE: usize = 300;
/// A refused Job is quoted whole by the API, and ends with the reason.
const LONGEST_DOCUMENT_MESSAGE: usize = 600;

#[derive(Default, Deserialize)]
struct StatusDocument {
    message: Option<String>,
    reason: Option<String>,
}

/// The refusal that an answer is.
pub(super) fn api_refusal(question: &Question<'_>, answer: &Answer) -> KubeError {
    let document: StatusDocument = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    let reason = document
        .reason
        .filter(|reason| !reason.is_empty())
        .or_else(|| answer.status.canonical_reason().map(str::to_owned))
        .unwrap_or_default();
    let message = document
        .message
        .filter(|message| !message.is_empty())
        .map(|message| shorten_text(one_line(&message)))
        .or_else(|| first_line(&answer.bytes))
        .unwrap_or_else(|| "no reason was given".to_owned());
    KubeError::Refused {
        method: question.method.to_string(),
        path: without_query(question.path),
        status: answer.status.as_u16(),
        reason,
        message,
    }
}

/// A long text without its middle.
fn shorten_text(text: String) -> String {
    let length = text.chars().count();
    if length <= LONGEST_DOCUMENT_MESSAGE {
        return text;
    }
    let half = LONGEST_DOCUMENT_MESSAGE / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(length - half).collect();
    format!("{first} … {last}")
}

/// The first line of a text that is no document.
fn first_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    if line.starts_with('{') { None } else { Some(line.chars().take(LONGEST_MESSAGE).collect()) }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use hyper::body::Bytes;

    use super::super::connection::{Answer, Question};
    use super::api_refusal;

    fn said(status: StatusCode, text: &'static str) -> String {
        let answer = Answer { status, bytes: Bytes::from(text), requested_delay: None };
        api_refusal(&Question::get("/api/v1/nodes?limit=500"), &answer).to_string()
    }

    #[test]
    fn a_status_document_speaks_for_itself() {
        let document = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
            "message":"nodes is forbidden: User \"ada\" cannot list","reason":"Forbidden","details":{"kind":"nodes"},"code":403}"#;
        assert_eq!(
            said(StatusCode::FORBIDDEN, document),
            "the Kubernetes API refused GET /api/v1/nodes: nodes is forbidden: User \"ada\" cannot list (403 Forbidden)"
        );
    }

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let middle = "x".repeat(5000);
        let text = format!(r#"{{"message":"spec.template: Invalid value: {middle}: field is immutable"}}"#);
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let answer = Answer { status, bytes: Bytes::from(text), requested_delay: None };
        let said = api_refusal(&Question::get("/a"), &answer).to_string();
        assert!(said.len() < 800 && said.contains("spec.template: Invalid value"), "{said}");
        assert!(said.contains("field is immutable"), "{said}");
    }

    #[test]
    fn anything_else_is_quoted_or_replaced() {
        assert_eq!(
            said(StatusCode::NOT_FOUND, "404 page not found\n"),
            "the Kubernetes API refused GET /api/v1/nodes: 404 page not found (404 Not Found)"
        );
        for nothing in ["", "{}", "{\"message\":\"\"}"] {
            assert_eq!(
                said(StatusCode::BAD_GATEWAY, nothing),
                "the Kubernetes API refused GET /api/v1/nodes: no reason was given (502 Bad Gateway)"
            );
        }
    }
}
