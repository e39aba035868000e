//! Flatcar's release server: whether it has a file for a version.
//!
//! It is queried as S3 is, by a HEAD request for an object, unsigned. So the request takes the same HTTP client, proxy and certificate
//! authorities as every call to AWS.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{Builder, Region};
use aws_sdk_s3::error::SdkError;

use super::answer_limit::AnswerLimit;
use super::configuration::sdk_behavior;
use super::error::innermost_cause;

/// The server that Flatcar machines download their extensions from, in the first boot.
const RELEASE_SERVER: &str = "https://update.release.flatcar-linux.net";
/// The directory of the releases for x86_64.
const BOARD: &str = "amd64-usr";
/// The answer decides only whether a warning is printed, so the wait for it is short.
const ATTEMPTS: u32 = 2;
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(11);

/// The release server did not say whether it has a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{server} {reason}")]
pub(crate) struct ReleaseServerError {
    server: String,
    reason: String,
}

/// How the release server is reached.
#[derive(Clone, Debug)]
pub(super) struct ReleaseServer {
    client: aws_sdk_s3::Client,
    url: String,
}

impl ReleaseServer {
    /// Flatcar's, or another one at that URL.
    pub(super) fn new(configuration: &SdkConfig, url: Option<&str>) -> Self {
        let url = url.unwrap_or(RELEASE_SERVER).to_owned();
        let timeouts = TimeoutConfig::builder()
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .operation_timeout(CALL_TIMEOUT);
        let retries = configuration.retry_config().cloned().unwrap_or_else(RetryConfig::standard);
        let mut settings = Builder::new()
            .behavior_version(sdk_behavior())
            // Nobody reads it, but S3's client has to have one.
            .region(Region::from_static("us-east-1"))
            .endpoint_url(&url)
            .force_path_style(true)
            .allow_no_auth()
            .retry_config(retries.with_max_attempts(ATTEMPTS))
            .timeout_config(timeouts.build())
            .interceptor(AnswerLimit);
        settings.set_http_client(configuration.http_client()).set_sleep_impl(configuration.sleep_impl());
        Self { client: aws_sdk_s3::Client::from_conf(settings.build()), url }
    }

    /// Whether it has a file for a version of Flatcar.
    pub(super) async fn has_file(&self, version: &str, file: &str) -> Result<bool, ReleaseServerError> {
        let Self { client, url } = self;
        let Err(error) = client.head_object().bucket(BOARD).key(format!("{version}/{file}")).send().await
        else {
            return Ok(true);
        };
        let reason = match error.raw_response().map(|answer| answer.status().as_u16()) {
            Some(404 | 410) => return Ok(false),
            Some(status) => format!("answered with status {status}"),
            None if matches!(error, SdkError::TimeoutError(_)) => {
                format!("did not answer within {} s", CALL_TIMEOUT.as_secs())
            }
            None => format!("could not be reached: {}", innermost_cause(&error)),
        };
        Err(ReleaseServerError { server: url.clone(), reason })
    }
}
