//! An answer that is read while it arrives: logs and archives.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};

use super::KubeError;
use super::connection::{ApiConnection, REQUEST_LIMIT};

/// An answer that is still arriving. Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct Body {
    incoming: Incoming,
    connection: Arc<ApiConnection>,
}

impl Body {
    pub(super) fn new(incoming: Incoming, connection: Arc<ApiConnection>) -> Self {
        Self { incoming, connection }
    }

    /// At most this many bytes from the beginning of a short answer: all of it must arrive within the time limit of a whole answer.
    pub(crate) async fn beginning(&mut self, most: usize) -> Result<Vec<u8>, KubeError> {
        let connection = Arc::clone(&self.connection);
        let read = async {
            let mut bytes = Vec::new();
            while bytes.len() < most {
                let Some(chunk) = self.chunk().await? else { break };
                bytes.extend_from_slice(&chunk);
            }
            bytes.truncate(most);
            Ok(bytes)
        };
        connection.within(REQUEST_LIMIT, read).await
    }

    /// As [`Body::chunk`], for what never pauses: this much silence ends the connection.
    pub(crate) async fn chunk_within(&mut self, limit: Duration) -> Result<Option<Bytes>, KubeError> {
        let connection = Arc::clone(&self.connection);
        connection.within(limit, self.chunk()).await
    }

    /// The next bytes as soon as there are any; none at the end. Nothing is lost if the wait is given up.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, KubeError> {
        while let Some(frame) = self.incoming.frame().await {
            let frame = frame.map_err(|error| self.connection.broken(&error))?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::time::Duration;

    use super::super::KubeError;
    use super::super::test_server::{SILENCE, json_answer, serve};

    #[tokio::test]
    async fn chunks_come_one_by_one_until_the_end() -> Result<(), Box<dyn Error>> {
        let server = serve(|_| {
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nstep 1\r\n6\r\nstep 2\r\n0\r\n\r\n"
                .to_owned()
        })?;
        let mut body = server.client()?.open("/api/v1/namespaces/default/pods/train-0/log").await?;
        let mut text = Vec::new();
        while let Some(chunk) = body.chunk().await? {
            text.extend_from_slice(&chunk);
        }
        assert_eq!(String::from_utf8(text)?, "step 1step 2");
        Ok(())
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_no_end() -> Result<(), Box<dyn Error>> {
        let server =
            serve(|_| "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nstep 1\r\n".to_owned())?;
        let mut body = server.client()?.open("/log").await?;
        let error = loop {
            match body.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => return Err("it ended well".into()),
                Err(error) => break error,
            }
        };
        assert!(error.is_unreachable(), "{error}");
        Ok(())
    }

    #[tokio::test]
    async fn an_archive_that_falls_silent_is_given_up() -> Result<(), Box<dyn Error>> {
        let server = serve(|_| {
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nstep 1\r\n6\r\nst".to_owned() + SILENCE
        })?;
        let mut body = server.client()?.open("/archive.tar").await?;
        let limit = Duration::from_millis(200);
        let error = loop {
            match body.chunk_within(limit).await {
                Ok(Some(_)) => {}
                Ok(None) => return Err("it ended well".into()),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, KubeError::TimedOut { .. }), "{error}");
        Ok(())
    }

    #[tokio::test]
    async fn only_the_beginning_of_a_long_answer_is_read() -> Result<(), Box<dyn Error>> {
        let piece = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        // It never ends.
        let endless = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned() + &piece.repeat(64);
        let server = serve(move |_| endless.clone() + SILENCE)?;
        let mut body = server.client()?.open("/log").await?;
        assert_eq!(body.beginning(5000).await?, "x".repeat(5000).as_bytes());
        Ok(())
    }

    #[tokio::test]
    async fn what_cannot_be_opened_is_refused_with_its_reason() -> Result<(), Box<dyn Error>> {
        let status =
            r#"{"kind":"Status","message":"pods \"train-0\" not found","reason":"NotFound","code":404}"#;
        let server = serve(move |_| json_answer("404 Not Found", status))?;
        let error = server.client()?.open("/log?follow=true").await.err().ok_or("it was opened")?;
        assert_eq!(
            error.to_string(),
            "the Kubernetes API refused GET /log: pods \"train-0\" not found (404 NotFound)"
        );
        Ok(())
    }
}
