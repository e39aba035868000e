//! How much of something the account may have.

use super::actions;
use super::{AwsError, Clients};

impl Clients {
    /// A quota's value in the region: the account's own if it was ever changed, else AWS's default.
    pub(crate) async fn quota(&self, service: &str, code: &str) -> Result<Option<f64>, AwsError> {
        let answer = self.quotas.get_service_quota().service_code(service).quota_code(code).send().await;
        match answer.map_err(AwsError::of(actions::QUOTAS_GET_SERVICE_QUOTA)) {
            Err(error) if error.has_code("NoSuchResourceException") => {
                self.default_quota(service, code).await
            }
            answer => Ok(answer?.quota.and_then(|quota| quota.value)),
        }
    }

    async fn default_quota(&self, service: &str, code: &str) -> Result<Option<f64>, AwsError> {
        let request = self.quotas.get_aws_default_service_quota().service_code(service).quota_code(code);
        match request.send().await.map_err(AwsError::of(actions::QUOTAS_GET_AWS_DEFAULT_SERVICE_QUOTA)) {
            Err(error) if error.has_code("NoSuchResourceException") => Ok(None),
            answer => Ok(answer?.quota.and_then(|quota| quota.value)),
        }
    }
}
