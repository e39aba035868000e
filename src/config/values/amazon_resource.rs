//! Amazon Resource Names of the few kinds that a cluster description may hold.

use std::fmt;
use std::str::FromStr;

use super::Region;
use crate::document::Fault;

const KMS_EXAMPLE: &str = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";

/// The ARN of one KMS key (not of an alias, which may point at another key tomorrow).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsKeyArn {
    text: String,
    partition: String,
    region: String,
}

impl KmsKeyArn {
    /// The ARN.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The account it belongs to.
    #[must_use]
    pub fn account(&self) -> &str {
        self.text.split(':').nth(4).unwrap_or_default()
    }

    /// Whether machines of `region` can use the key.
    pub fn check_region(&self, region: &Region) -> Result<(), Fault> {
        if self.region != region.as_str() {
            return Err(Fault::new(format!("the KMS key is in {}, the cluster in {region}", self.region))
                .help(format!("use a key of {region}: a key serves its own region only")));
        }
        if self.partition != region.partition().as_str() {
            return Err(Fault::new(format!(
                "the KMS key is in partition {}, {region} in {}",
                self.partition,
                region.partition()
            ))
            .help(format!("the ARN begins with arn:{}:kms:{region}:", region.partition())));
        }
        Ok(())
    }
}

impl FromStr for KmsKeyArn {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let fault = || Fault::new(format!("'{text}' is not the ARN of a KMS key"));
        let example =
            || fault().help(format!("it looks like {KMS_EXAMPLE}; `aws kms describe-key` prints yours"));
        let Some([partition, service, region, account, resource]) = split_arn(text) else {
            return Err(example());
        };
        if service != "kms" {
            return Err(fault().help(format!("this ARN belongs to the service '{service}'")));
        }
        if resource.starts_with("alias/") {
            return Err(fault()
                .help("it is an alias, and an alias can be pointed at another key: use the key's own ARN"));
        }
        let id = resource.strip_prefix("key/").ok_or_else(example)?;
        let good_id = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !good_id || !is_account(account) || region.parse::<Region>().is_err() {
            return Err(example());
        }
        Ok(Self { text: text.to_owned(), partition: partition.to_owned(), region: region.to_owned() })
    }
}

impl fmt::Display for KmsKeyArn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The ARN of a managed IAM policy, AWS's own or an account's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyArn {
    text: String,
    partition: String,
}

impl PolicyArn {
    /// The ARN.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether roles in `region` can use the policy.
    pub fn check_partition(&self, region: &Region) -> Result<(), Fault> {
        let partition = region.partition();
        if self.partition == partition.as_str() {
            return Ok(());
        }
        Err(Fault::new(format!("the policy is in partition {}, {region} in {partition}", self.partition))
            .help(format!("the ARN begins with arn:{partition}:iam::")))
    }
}

impl FromStr for PolicyArn {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refused = || {
            Fault::new(format!("'{text}' is not the ARN of a managed policy"))
                .help("it looks like arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess")
        };
        let Some([partition, "iam", "", owner, resource]) = split_arn(text) else { return Err(refused()) };
        let name = resource.strip_prefix("policy/").unwrap_or_default();
        let good_name =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+=,.@-_/".contains(&b));
        if !good_name || !(owner == "aws" || is_account(owner)) {
            return Err(refused());
        }
        Ok(Self { text: text.to_owned(), partition: partition.to_owned() })
    }
}

impl fmt::Display for PolicyArn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Partition, service, region, account and resource of an ARN.
fn split_arn(text: &str) -> Option<[&str; 5]> {
    let mut fields = text.splitn(6, ':');
    if fields.next() != Some("arn") {
        return None;
    }
    let fields: Vec<&str> = fields.collect();
    let fields: [&str; 5] = fields.try_into().ok()?;
    matches!(fields[0], "aws" | "aws-cn" | "aws-us-gov").then_some(fields)
}

fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit())
}
