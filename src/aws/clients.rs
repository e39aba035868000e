//! One client per service, all from one configuration.

use std::sync::Arc;

use aws_config::{Region, SdkConfig};
use tokio::sync::OnceCell;

use super::answer_limit::AnswerLimit;
use super::release_files::{ReleaseServer, ReleaseServerError};
use super::{AwsConnection, CallerIdentity};

/// A client of a service whose answers are limited.
macro_rules! client {
    ($sdk:ident, $configuration:expr) => {
        $sdk::Client::from_conf($sdk::config::Builder::from($configuration).interceptor(AnswerLimit).build())
    };
}

/// Clients for every service that a cluster needs.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(super) autoscaling: aws_sdk_autoscaling::Client,
    pub(super) balancers: aws_sdk_elasticloadbalancingv2::Client,
    pub(super) classic_balancers: aws_sdk_elasticloadbalancing::Client,
    pub(super) cloudformation: aws_sdk_cloudformation::Client,
    pub(super) ec2: aws_sdk_ec2::Client,
    pub(super) efs: aws_sdk_efs::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) kms: aws_sdk_kms::Client,
    pub(super) pricing: aws_sdk_pricing::Client,
    pub(super) quotas: aws_sdk_servicequotas::Client,
    pub(super) route53: aws_sdk_route53::Client,
    pub(super) s3: aws_sdk_s3::Client,
    pub(super) sts: aws_sdk_sts::Client,
    pub(super) tagging: aws_sdk_resourcegroupstagging::Client,
    releases: ReleaseServer,
    /// The caller, once AWS has said who that is.
    pub(super) caller: Arc<OnceCell<CallerIdentity>>,
    configuration: SdkConfig,
}

impl Clients {
    /// Connects with a configuration that is loaded now.
    pub(crate) async fn connect(connection: &AwsConnection) -> Self {
        Self::from_configuration(&connection.load().await, connection.release_server.as_deref())
    }

    pub(super) fn from_configuration(configuration: &SdkConfig, release_server: Option<&str>) -> Self {
        // A stand-in for S3 has one name for all buckets.
        let path_style = configuration.endpoint_url().is_some();
        let s3 = aws_sdk_s3::config::Builder::from(configuration).force_path_style(path_style);
        Self {
            autoscaling: client!(aws_sdk_autoscaling, configuration),
            balancers: client!(aws_sdk_elasticloadbalancingv2, configuration),
            classic_balancers: client!(aws_sdk_elasticloadbalancing, configuration),
            cloudformation: client!(aws_sdk_cloudformation, configuration),
            ec2: client!(aws_sdk_ec2, configuration),
            efs: client!(aws_sdk_efs, configuration),
            iam: client!(aws_sdk_iam, configuration),
            kms: client!(aws_sdk_kms, configuration),
            pricing: client!(aws_sdk_pricing, configuration),
            quotas: client!(aws_sdk_servicequotas, configuration),
            route53: client!(aws_sdk_route53, configuration),
            s3: aws_sdk_s3::Client::from_conf(s3.interceptor(AnswerLimit).build()),
            sts: client!(aws_sdk_sts, configuration),
            tagging: client!(aws_sdk_resourcegroupstagging, configuration),
            releases: ReleaseServer::new(configuration, release_server),
            caller: Arc::default(),
            configuration: configuration.clone(),
        }
    }

    /// Clients of the same account in another region. Credentials are not resolved again.
    pub(crate) fn in_region(&self, region: &str) -> Self {
        let configuration = self.configuration.to_builder().region(Region::new(region.to_owned())).build();
        Self {
            caller: Arc::clone(&self.caller),
            releases: self.releases.clone(),
            ..Self::from_configuration(&configuration, None)
        }
    }

    /// The region that calls go to, if one is known.
    #[must_use]
    pub(crate) fn region(&self) -> Option<&str> {
        self.configuration.region().map(Region::as_ref)
    }

    /// Whether Flatcar's release server has a file for a version of Flatcar.
    pub(crate) async fn has_release_file(
        &self,
        version: &str,
        file: &str,
    ) -> Result<bool, ReleaseServerError> {
        self.releases.has_file(version, file).await
    }

    /// Where services are reached instead of AWS.
    pub(super) fn endpoint_url(&self) -> Option<&str> {
        self.configuration.endpoint_url()
    }
}
