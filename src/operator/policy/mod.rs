//! The least that an operator must be allowed: our own calls, and what CloudFormation does with the caller's rights. And the most that the
//! IAM roles of a cluster may be allowed, whoever writes their policies.

mod arns;
mod boundary;
mod own_calls;
mod pack;
mod statement;
mod through_cloudformation;

use serde_json::{Value, json};

use crate::config::Cluster;
use crate::config::values::S3Uri;
use arns::ClusterArns;
use boundary::boundary_statements;
use own_calls::own_call_statements;
use through_cloudformation::cloudformation_statements;

/// A managed policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The name of the policy.
    pub name: String,
    /// The policy document.
    pub document: Value,
}

impl Policy {
    fn new(name: String, statements: &[Value]) -> Self {
        Self { name, document: json!({"Version": "2012-10-17", "Statement": statements}) }
    }
}

/// The policies that together let an operator create, inspect and delete a cluster.
#[must_use]
pub(crate) fn operator_policies(cluster: &Cluster, s3_uri: &S3Uri) -> Vec<Policy> {
    let arns = ClusterArns::new(cluster, s3_uri);
    let mut statements = own_call_statements(&arns);
    statements.extend(cloudformation_statements(&arns));
    pack::pack_statements(statements)
        .into_iter()
        .enumerate()
        .map(|(index, statements)| Policy::new(format!("infra-{}-{}", cluster.name, index + 1), &statements))
        .collect()
}

/// The permissions boundary of the cluster's IAM roles.
#[must_use]
pub(crate) fn permissions_boundary(cluster: &Cluster, s3_uri: &S3Uri) -> Policy {
    let arns = ClusterArns::new(cluster, s3_uri);
    Policy::new(arns.boundary_name(), &boundary_statements(&arns))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::pack::LARGEST_POLICY;
    use super::{operator_policies, permissions_boundary};
    use crate::aws::{ACTIONS, Scope};
    use crate::config::{self, Cluster};

    /// With names as long as they can be.
    fn largest_cluster() -> Result<Cluster, crate::document::Problems> {
        let name = "a".repeat(31);
        let text = format!(
            "{{clusterName: {name}, externalDNSName: a.example.com, region: ap-southeast-2, \
             availabilityZones: [ap-southeast-2a], encryptDisksWithKmsKey: true, \
             permissionsBoundaryArn: 'arn:aws:iam::111122223333:policy/team/infra-{name}-boundary', \
             storage: {{efs: {{fileSystemId: fs-0123456789abcdef0, createMountTargets: true}}}}, \
             kmsKeyArn: 'arn:aws:kms:ap-southeast-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'}}"
        );
        Ok(config::validate(Path::new("cluster.yaml"), &text)?.value)
    }

    #[test]
    fn policies_fit_and_hold_every_action_of_ours() -> Result<(), Box<dyn std::error::Error>> {
        let policies = operator_policies(&largest_cluster()?, &"s3://bucket/prefix".parse()?);
        let mut allowed = BTreeSet::new();
        for policy in &policies {
            assert!(policy.document.to_string().len() <= LARGEST_POLICY, "{}", policy.name);
            for statement in policy.document["Statement"].as_array().into_iter().flatten() {
                // What is allowed to CloudFormation only does not help our own calls.
                if statement["Condition"].get("ForAnyValue:StringEquals").is_none() {
                    allowed.extend(
                        statement["Action"].as_array().into_iter().flatten().map(ToString::to_string),
                    );
                }
            }
        }
        for action in ACTIONS.iter().filter(|action| action.scope != Scope::NewKey) {
            assert!(allowed.contains(&format!("\"{}\"", action.name)), "{}", action.name);
        }
        assert!(policies.len() <= 4, "{} policies", policies.len());
        Ok(())
    }

    #[test]
    fn the_price_list_may_be_called_in_another_region() -> Result<(), Box<dyn std::error::Error>> {
        let policies = operator_policies(&largest_cluster()?, &"s3://bucket/prefix".parse()?);
        let statements =
            policies.iter().filter_map(|policy| policy.document["Statement"].as_array()).flatten();
        let of_prices: Vec<_> = statements
            .filter(|statement| statement["Action"].to_string().contains("pricing:GetProducts"))
            .collect();
        assert_eq!(of_prices.len(), 1);
        assert!(of_prices.iter().all(|statement| statement["Condition"].is_null()), "{of_prices:?}");
        Ok(())
    }

    #[test]
    fn the_boundary_fits() -> Result<(), Box<dyn std::error::Error>> {
        let boundary = permissions_boundary(&largest_cluster()?, &"s3://bucket/prefix".parse()?);
        let length = boundary.document.to_string().len();
        assert!(length <= LARGEST_POLICY, "{length}");
        Ok(())
    }
}
