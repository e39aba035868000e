//! Requests that the API server asks to send again: 429 with `Retry-After`, as a server answers that has just started or is
//! overloaded. It has not begun with such a request, so that any method is safe to send again. client-go does the same.

use std::time::Duration;

use hyper::header::{HeaderMap, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tokio::time::sleep;

/// As many as client-go sends again.
const MOST_RETRIES: u32 = 10;
/// A server that asks for more is not coming back soon, and the user should know why.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// The retries of one request.
#[derive(Default)]
pub(super) struct Retries {
    made: u32,
}

impl Retries {
    /// Waits as long as the server asks for; false if the request should not be sent again.
    pub(super) async fn wait(&mut self, delay: Option<Duration>) -> bool {
        let Some(delay) = delay.filter(|delay| *delay <= LONGEST_DELAY && self.made < MOST_RETRIES) else {
            return false;
        };
        self.made += 1;
        sleep(delay).await;
        true
    }
}

/// When the server asks for the request again, if it does.
pub(super) fn requested_delay<B>(response: &Response<B>) -> Option<Duration> {
    (response.status() == StatusCode::TOO_MANY_REQUESTS).then(|| retry_after_seconds(response.headers()))?
}

/// Kubernetes sends seconds; a date, which HTTP allows too, can only come from a proxy.
fn retry_after_seconds(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::super::test_server::{TestServer, serve};
    use super::MOST_RETRIES;

    const STARTING: &str =
        r#"{"kind":"Status","message":"storage is (re)initializing","reason":"TooManyRequests","code":429}"#;

    /// A server that refuses `times` requests, with this header.
    fn refusing(times: usize, header: &'static str) -> Result<TestServer, Box<dyn Error>> {
        let asked = AtomicUsize::new(0);
        serve(move |_| {
            let is_refused = asked.fetch_add(1, Ordering::Relaxed) < times;
            let (status, header, body) = if is_refused {
                ("429 Too Many Requests", header, STARTING)
            } else {
                ("200 OK", "", r#"{"kind":"Job"}"#)
            };
            format!("HTTP/1.1 {status}\r\n{header}content-length: {}\r\n\r\n{body}", body.len())
        })
    }

    #[tokio::test]
    async fn a_request_is_sent_again_when_the_server_asks_for_it() -> Result<(), Box<dyn Error>> {
        let server = refusing(2, "retry-after: 0\r\n")?;
        let client = server.client()?;
        assert_eq!(client.get_json("/a").await?, Some(json!({"kind": "Job"})));
        assert_eq!(server.requests.try_iter().count(), 3);
        let server = refusing(2, "retry-after: 0\r\n")?;
        let body = json!({"spec": 1});
        server.client()?.patch_json("/a", "application/merge-patch+json", &body).await?;
        assert!(server.requests.try_iter().all(|request| request.ends_with(r#"{"spec":1}"#)));
        let server = refusing(2, "retry-after: 0\r\n")?;
        server.client()?.open("/log").await?;
        assert_eq!(server.requests.try_iter().count(), 3);
        Ok(())
    }

    #[tokio::test]
    async fn a_refusal_without_a_time_or_with_a_long_one_is_an_error() -> Result<(), Box<dyn Error>> {
        for header in ["", "retry-after: 3600\r\n", "retry-after: Wed, 18 Nov 2026 07:28:00 GMT\r\n"] {
            let server = refusing(1, header)?;
            let error = server.client()?.get_json("/a").await.err().ok_or("it was asked again")?;
            assert_eq!(error.status(), Some(429));
            assert_eq!(server.requests.try_iter().count(), 1);
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_server_that_never_starts_is_an_error() -> Result<(), Box<dyn Error>> {
        let server = refusing(usize::MAX, "retry-after: 0\r\n")?;
        let error = server.client()?.get_json("/a").await.err().ok_or("it was answered")?;
        assert!(error.to_string().contains("storage is (re)initializing"), "{error}");
        assert_eq!(server.requests.try_iter().count(), 1 + MOST_RETRIES as usize);
        Ok(())
    }
}
