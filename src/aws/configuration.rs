//! The one place that configures the SDK: profile, region, endpoint, retries, time limits.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};

use crate::waiting::Tempo;

/// CloudFormation throttles readers early; three attempts, the SDK's default, are too few to watch a stack for an hour.
const ATTEMPTS: u32 = 8;
/// The SDK sets no limit of its own, and a connection that hangs would hang the whole run.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(1);
/// All attempts of one call together: long enough for eight that are throttled, and for two that hang before one that does not.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(90);

/// How AWS is reached. What is not given comes from the environment and the shared configuration files, as for every AWS tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwsConnection {
    /// A profile of the shared configuration files.
    pub profile: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// Where every service is reached instead of AWS.
    pub endpoint_url: Option<String>,
    /// Where Flatcar's release files are instead of on Flatcar's own server.
    pub release_server: Option<String>,
    /// How long to pause before an attempt is repeated.
    pub tempo: Tempo,
}

impl AwsConnection {
    /// Loads the configuration. Credentials are resolved with the first call, not here.
    pub(super) async fn load(&self) -> SdkConfig {
        self.apply(aws_config::defaults(sdk_behavior())).load().await
    }

    /// Puts our settings on top of a loader.
    pub(super) fn apply(&self, loader: ConfigLoader) -> ConfigLoader {
        let timeouts = TimeoutConfig::builder()
            .read_timeout(READ_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .operation_timeout(CALL_TIMEOUT);
        let mut loader = loader.retry_config(self.retries()).timeout_config(timeouts.build());
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(endpoint_url) = &self.endpoint_url {
            loader = loader.endpoint_url(endpoint_url);
        }
        loader
    }

    fn retries(&self) -> RetryConfig {
        let usual = RetryConfig::standard().with_max_attempts(ATTEMPTS);
        let (first, longest) =
            (self.tempo.shorten(usual.initial_backoff()), self.tempo.shorten(usual.max_backoff()));
        usual.with_initial_backoff(first).with_max_backoff(longest)
    }
}

/// Pinned, so that a new version of the SDK does not change retries and time limits unnoticed.
pub(super) fn sdk_behavior() -> BehaviorVersion {
    BehaviorVersion::v2026_01_12()
}
