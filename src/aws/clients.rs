//! One client a service, all from one configuration.

use std::sync::Arc;

use aws_config::SdkConfig;
use tokio::sync::OnceCell;

use super::answer_limit::AnswerLimit;
use super::{CallerIdentity, Connection};

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
    pub(super) quotas: aws_sdk_servicequotas::Client,
    pub(super) route53: aws_sdk_route53::Client,
    pub(super) s3: aws_sdk_s3::Client,
    pub(super) sts: aws_sdk_sts::Client,
    pub(super) tagging: aws_sdk_resourcegroupstagging::Client,
    /// The caller, once AWS has said who that is.
    pub(super) caller: Arc<OnceCell<CallerIdentity>>,
    region: Option<String>,
    endpoint_url: Option<String>,
}

impl Clients {
    /// Connects with a configuration that is loaded now.
    pub(crate) async fn connect(connection: &Connection) -> Self {
        Self::from_configuration(&connection.load().await)
    }

    pub(super) fn from_configuration(configuration: &SdkConfig) -> Self {
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
            quotas: client!(aws_sdk_servicequotas, configuration),
            route53: client!(aws_sdk_route53, configuration),
            s3: aws_sdk_s3::Client::from_conf(s3.interceptor(AnswerLimit).build()),
            sts: client!(aws_sdk_sts, configuration),
            tagging: client!(aws_sdk_resourcegroupstagging, configuration),
            caller: Arc::default(),
            region: configuration.region().map(ToString::to_string),
            endpoint_url: configuration.endpoint_url().map(str::to_owned),
        }
    }

    /// The region that calls go to, if one is known.
    #[must_use]
    pub(crate) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// Where services are reached instead of AWS.
    pub(super) fn endpoint_url(&self) -> Option<&str> {
        self.endpoint_url.as_deref()
    }
}
