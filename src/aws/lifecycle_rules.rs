//! The lifecycle rules of a bucket: one of ours among those of others. S3 replaces them all at once, so others' are given back unchanged.

use aws_sdk_s3::types::{
    BucketLifecycleConfiguration, BucketVersioningStatus, ExpirationStatus, LifecycleRule,
    LifecycleRuleFilter, NoncurrentVersionExpiration, TransitionDefaultMinimumObjectSize,
};
use serde_json::{Value, json};

use super::actions;
use super::{AwsError, Clients};

/// A rule that deletes old versions of objects, and always keeps the newest of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionExpiry {
    /// The id of the rule, unique in its bucket.
    pub id: String,
    /// The prefix of the keys that the rule is for.
    pub prefix: String,
    /// Days after which a version that is no longer the current one is deleted.
    pub days: i32,
    /// How many versions besides the current one are kept however old they are.
    pub kept: i32,
}

impl VersionExpiry {
    /// The rule as `aws s3api put-bucket-lifecycle-configuration` takes it.
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        json!({
            "ID": self.id,
            "Status": "Enabled",
            "Filter": {"Prefix": self.prefix},
            "NoncurrentVersionExpiration": {"NoncurrentDays": self.days, "NewerNoncurrentVersions": self.kept},
        })
    }

    fn is_rule(&self, rule: &LifecycleRule) -> bool {
        let filter = rule.filter.as_ref();
        let expiry = rule.noncurrent_version_expiration.as_ref();
        rule.id.as_deref() == Some(&self.id)
            && rule.status == ExpirationStatus::Enabled
            && filter.and_then(LifecycleRuleFilter::prefix) == Some(&self.prefix)
            && filter.is_some_and(|filter| filter.tag.is_none() && filter.and.is_none())
            && rule.expiration.is_none()
            && expiry.is_some_and(|expiry| {
                expiry.noncurrent_days == Some(self.days)
                    && expiry.newer_noncurrent_versions == Some(self.kept)
            })
    }

    fn to_rule(&self) -> Result<LifecycleRule, AwsError> {
        let expiry = NoncurrentVersionExpiration::builder()
            .noncurrent_days(self.days)
            .newer_noncurrent_versions(self.kept)
            .build();
        LifecycleRule::builder()
            .id(&self.id)
            .status(ExpirationStatus::Enabled)
            .filter(LifecycleRuleFilter::builder().prefix(&self.prefix).build())
            .noncurrent_version_expiration(expiry)
            .build()
            .map_err(incomplete_rule_error)
    }
}

/// All lifecycle rules of a bucket, whoever wrote them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LifecycleRules {
    rules: Vec<LifecycleRule>,
    /// A setting of all rules, which S3 resets unless it is given back.
    smallest_transition: Option<TransitionDefaultMinimumObjectSize>,
}

impl LifecycleRules {
    /// Whether the rule is one of them, exactly as described.
    #[must_use]
    pub(crate) fn has_rule(&self, expiry: &VersionExpiry) -> bool {
        self.rules.iter().any(|rule| expiry.is_rule(rule))
    }

    /// Whether one of them is this rule in any form: as it was written earlier, or as someone else has changed it.
    #[must_use]
    pub(crate) fn has_form_of(&self, expiry: &VersionExpiry) -> bool {
        let prefix = |rule: &LifecycleRule| rule.filter.as_ref().and_then(|filter| filter.prefix.clone());
        let mut rules = self.rules.iter();
        rules.any(|rule| {
            rule.id.as_deref() == Some(&expiry.id) && prefix(rule).as_ref() == Some(&expiry.prefix)
        })
    }

    /// The rules with this one, in the place of an older one with its id.
    pub(crate) fn with(self, expiry: &VersionExpiry) -> Result<Self, AwsError> {
        let mut rules = self.without(&expiry.id);
        rules.rules.push(expiry.to_rule()?);
        Ok(rules)
    }

    /// The rules but the one with this id.
    #[must_use]
    pub(crate) fn without(mut self, id: &str) -> Self {
        self.rules.retain(|rule| rule.id.as_deref() != Some(id));
        self
    }
}

impl Clients {
    /// Whether a bucket keeps old versions of objects.
    pub(crate) async fn keeps_versions(&self, bucket: &str) -> Result<bool, AwsError> {
        let owner = self.bucket_owner().await?;
        let call = self.s3.get_bucket_versioning().bucket(bucket).expected_bucket_owner(owner);
        let answer = call.send().await.map_err(AwsError::of(actions::S3_GET_BUCKET_VERSIONING))?;
        Ok(answer.status == Some(BucketVersioningStatus::Enabled))
    }

    /// The lifecycle rules of a bucket.
    pub(crate) async fn lifecycle_rules(&self, bucket: &str) -> Result<LifecycleRules, AwsError> {
        let owner = self.bucket_owner().await?;
        let call = self.s3.get_bucket_lifecycle_configuration().bucket(bucket).expected_bucket_owner(owner);
        match call.send().await.map_err(AwsError::of(actions::S3_GET_LIFECYCLE_CONFIGURATION)) {
            Ok(answer) => Ok(LifecycleRules {
                rules: answer.rules.unwrap_or_default(),
                smallest_transition: answer.transition_default_minimum_object_size,
            }),
            Err(error) if error.has_code("NoSuchLifecycleConfiguration") => Ok(LifecycleRules::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the lifecycle rules of a bucket.
    pub(crate) async fn put_lifecycle_rules(
        &self,
        bucket: &str,
        rules: LifecycleRules,
    ) -> Result<(), AwsError> {
        let owner = self.bucket_owner().await?;
        if rules.rules.is_empty() {
            // S3 takes no list without rules.
            let call = self.s3.delete_bucket_lifecycle().bucket(bucket).expected_bucket_owner(owner);
            let answer = call.send().await;
            return answer.map_err(AwsError::of(actions::S3_PUT_LIFECYCLE_CONFIGURATION)).map(|_| ());
        }
        let all = BucketLifecycleConfiguration::builder().set_rules(Some(rules.rules)).build();
        let call = self
            .s3
            .put_bucket_lifecycle_configuration()
            .bucket(bucket)
            .expected_bucket_owner(owner)
            .set_transition_default_minimum_object_size(rules.smallest_transition)
            .lifecycle_configuration(all.map_err(incomplete_rule_error)?);
        call.send().await.map_err(AwsError::of(actions::S3_PUT_LIFECYCLE_CONFIGURATION)).map(|_| ())
    }
}

fn incomplete_rule_error(error: impl std::fmt::Display) -> AwsError {
    AwsError::incomplete(actions::S3_PUT_LIFECYCLE_CONFIGURATION, error.to_string())
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::types::{ExpirationStatus, LifecycleExpiration, LifecycleRule};

    use super::{LifecycleRules, VersionExpiry};

    fn expiry() -> VersionExpiry {
        VersionExpiry { id: "ours".to_owned(), prefix: "a/b/snapshots/".to_owned(), days: 30, kept: 48 }
    }

    fn theirs() -> Result<LifecycleRule, Box<dyn std::error::Error>> {
        let expiration = LifecycleExpiration::builder().days(7).build();
        // Without an id, which S3 makes up.
        Ok(LifecycleRule::builder().status(ExpirationStatus::Disabled).expiration(expiration).build()?)
    }

    #[test]
    fn one_rule_is_merged_and_removed_and_the_others_stay() -> Result<(), Box<dyn std::error::Error>> {
        let before = LifecycleRules { rules: vec![theirs()?], ..LifecycleRules::default() };
        assert!(!before.has_rule(&expiry()));
        let merged = before.clone().with(&expiry())?;
        assert!(merged.has_rule(&expiry()) && merged.has_form_of(&expiry()));
        assert_eq!((merged.rules.len(), &merged.rules[0]), (2, &theirs()?));
        assert_eq!(merged.clone().with(&expiry())?, merged);
        assert_eq!(merged.without("ours"), before);
        Ok(())
    }

    #[test]
    fn an_older_rule_of_the_same_id_is_replaced() -> Result<(), Box<dyn std::error::Error>> {
        for change in [
            |old: &mut VersionExpiry| old.kept = 3,
            |old: &mut VersionExpiry| old.days = 1,
            |old: &mut VersionExpiry| old.prefix = "b/".to_owned(),
        ] {
            let mut old = expiry();
            change(&mut old);
            let rules = LifecycleRules::default().with(&old)?;
            assert!(!rules.has_rule(&expiry()) && rules.has_form_of(&old), "{old:?}");
            let rules = rules.with(&expiry())?;
            assert!(rules.has_rule(&expiry()));
            assert_eq!(rules.rules.len(), 1);
        }
        let mut disabled = LifecycleRules::default().with(&expiry())?;
        disabled.rules[0].status = ExpirationStatus::Disabled;
        assert!(!disabled.has_rule(&expiry()));
        Ok(())
    }
}
