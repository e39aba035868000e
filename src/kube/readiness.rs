//! Whether the API server is ready to serve.

use hyper::StatusCode;

use super::connection::{Answer, Question};
use super::refusal::api_refusal;
use super::{ApiServer, KubeError};

const CHECKS: &str = "/readyz?verbose";

/// What the API server reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Every check passed.
    Ready,
    /// Some did not.
    NotReady {
        /// The checks that failed, in the API server's words.
        failed: Vec<String>,
    },
}

impl ApiServer {
    /// Asks the API server whether it is ready.
    pub(crate) async fn check_ready(&self) -> Result<Readiness, KubeError> {
        let question = Question::get(CHECKS);
        let answer = self.ask_once(&question).await?;
        judge_answer(&question, &answer)
    }
}

fn judge_answer(question: &Question<'_>, answer: &Answer) -> Result<Readiness, KubeError> {
    if answer.status.is_success() {
        return Ok(Readiness::Ready);
    }
    let refused = api_refusal(question, answer);
    if !answer.status.is_server_error() && answer.status != StatusCode::TOO_MANY_REQUESTS {
        return Err(refused);
    }
    let mut failed: Vec<String> =
        String::from_utf8_lossy(&answer.bytes).lines().filter_map(failed_check).collect();
    if let (true, KubeError::Refused { message, .. }) = (failed.is_empty(), refused) {
        failed.push(message);
    }
    Ok(Readiness::NotReady { failed })
}

fn failed_check(line: &str) -> Option<String> {
    let check = line.strip_prefix("[-]")?.trim();
    Some(check.strip_suffix(": reason withheld").unwrap_or(check).to_owned())
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_server::{json_answer, serve};
    use super::Readiness;

    #[tokio::test]
    async fn ready_is_asked_for_by_the_right_names() -> Result<(), Box<dyn Error>> {
        let server = serve(|_| json_answer("200 OK", "[+]ping ok\nreadyz check passed\n"))?;
        assert_eq!(server.client()?.check_ready().await?, Readiness::Ready);
        let request = server.requests.recv()?;
        assert!(request.starts_with("GET /readyz?verbose HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nhost: minimal.example.com\r\n"), "{request}");
        let agent = format!("\r\nuser-agent: infra/{}\r\n", env!("CARGO_PKG_VERSION"));
        assert!(request.contains(&agent), "{request}");
        Ok(())
    }

    #[tokio::test]
    async fn what_is_not_ready_is_named() -> Result<(), Box<dyn Error>> {
        let checks = "[+]ping ok\n[-]etcd failed: reason withheld\n\
                      [-]poststarthook/rbac/bootstrap-roles failed: not finished\nreadyz check failed\n";
        let server = serve(move |_| json_answer("500 Internal Server Error", checks))?;
        let failed = vec![
            "etcd failed".to_owned(),
            "poststarthook/rbac/bootstrap-roles failed: not finished".to_owned(),
        ];
        assert_eq!(server.client()?.check_ready().await?, Readiness::NotReady { failed });
        Ok(())
    }

    #[tokio::test]
    async fn a_server_that_is_overwhelmed_is_not_ready_and_one_that_forbids_is_an_error()
    -> Result<(), Box<dyn Error>> {
        let server = serve(|_| json_answer("503 Service Unavailable", "shutting down"))?;
        let failed = vec!["shutting down".to_owned()];
        assert_eq!(server.client()?.check_ready().await?, Readiness::NotReady { failed });
        let server = serve(|_| json_answer("401 Unauthorized", r#"{"message":"Unauthorized"}"#))?;
        let error = server.client()?.check_ready().await.err().ok_or("it was accepted")?;
        assert_eq!(error.status(), Some(401));
        Ok(())
    }
}
