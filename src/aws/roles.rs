//! IAM roles.

use super::actions;
use super::{AwsError, Clients};

impl Clients {
    /// Whether the account has a role of this name.
    pub(crate) async fn role_exists(&self, name: &str) -> Result<bool, AwsError> {
        let answer = self.iam.get_role().role_name(name).send().await;
        match answer.map_err(AwsError::of(actions::IAM_GET_ROLE)) {
            Ok(_) => Ok(true),
            Err(error) if error.has_code("NoSuchEntity") => Ok(false),
            Err(error) => Err(error),
        }
    }
}
