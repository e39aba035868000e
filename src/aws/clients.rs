//! One client a service, all from one configuration.

use aws_config::SdkConfig;

use super::Connection;

/// Clients for every service that a cluster needs.
#[derive(Clone, Debug)]
pub struct Clients {
    pub(super) sts: aws_sdk_sts::Client,
    region: Option<String>,
}

impl Clients {
    /// Connects with a configuration that is looked up now.
    pub async fn connect(connection: &Connection) -> Self {
        Self::from_configuration(&connection.load().await)
    }

    pub(super) fn from_configuration(configuration: &SdkConfig) -> Self {
        Self {
            sts: aws_sdk_sts::Client::new(configuration),
            region: configuration.region().map(ToString::to_string),
        }
    }

    /// The region that calls go to, if one is known.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }
}
