//! Which differences are no drift: what controllers and AWS change as they should.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shape::{DesignedCause, PropertyDrift};
use crate::aws::{AUTO_SCALING_GROUP_TYPE, DifferenceKind, SCHEDULED_ACTION_TYPE, VpcSecurityGroup};
use crate::blueprint::StackPart;
use crate::config::values::ClusterName;
use crate::well_known::{CLUSTER_TAG, CONTROLLER_RULE_PREFIX, SERVICE_RULE_PREFIX, kubernetes_cluster_tag};

const SECURITY_GROUP_TYPE: &str = "AWS::EC2::SecurityGroup";

/// What the cloud controller manager writes at the rules of Services behind network load balancers, and the AWS Load Balancer
/// Controller at its own.
const RULE_DESCRIPTIONS: [&str; 2] = [SERVICE_RULE_PREFIX, CONTROLLER_RULE_PREFIX];

/// Properties that hold tags.
const TAG_LISTS: [&str; 3] = ["Tags", "FileSystemTags", "HostedZoneTags"];

/// What is known about the stack that a difference is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackContext<'a> {
    /// The cluster.
    pub cluster: &'a ClusterName,
    /// The part of the cluster that the stack holds.
    pub part: &'a StackPart,
    /// The template of the stack.
    pub template: &'a Value,
    /// The security groups that Kubernetes created.
    pub service_groups: &'a BTreeSet<String>,
}

impl StackContext<'_> {
    /// Who changed a property by design; none if it is drift.
    pub(super) fn cause(
        &self,
        logical_id: &str,
        kind: &str,
        property: &PropertyDrift,
        difference: DifferenceKind,
    ) -> Option<DesignedCause> {
        let (name, rest) = property.path.split_once('.').unwrap_or((&property.path, ""));
        let added = property.actual.as_ref().filter(|_| difference == DifferenceKind::Added);
        match (kind, name) {
            (AUTO_SCALING_GROUP_TYPE, "DesiredCapacity") if self.is_pool() => Some(DesignedCause::PoolSize),
            (AUTO_SCALING_GROUP_TYPE, "MinSize" | "MaxSize") if self.is_pool() && self.has_schedule() => {
                Some(DesignedCause::Schedule)
            }
            (SECURITY_GROUP_TYPE, "SecurityGroupIngress") if self.is_open_to_services(logical_id) => {
                added.filter(|rule| self.is_rule_of_service(rule)).map(|_| DesignedCause::Service)
            }
            (_, list) if TAG_LISTS.contains(&list) && !rest.is_empty() => {
                added.filter(|tag| is_tag_of_aws(tag)).map(|_| DesignedCause::AwsTag)
            }
            _ => None,
        }
    }

    fn is_pool(&self) -> bool {
        matches!(self.part, StackPart::Pool(_))
    }

    fn has_schedule(&self) -> bool {
        let resources = self.template["Resources"].as_object();
        resources.is_some_and(|resources| {
            resources.values().any(|resource| resource["Type"] == SCHEDULED_ACTION_TYPE)
        })
    }

    /// Whether the template gives a security group the tag by which the cloud controller manager finds it.
    fn is_open_to_services(&self, logical_id: &str) -> bool {
        let tag = kubernetes_cluster_tag(self.cluster);
        let tags = self.template["Resources"][logical_id]["Properties"]["Tags"].as_array();
        tags.is_some_and(|tags| tags.iter().any(|entry| entry["Key"] == tag.as_str()))
    }

    fn is_rule_of_service(&self, rule: &Value) -> bool {
        let description = rule["Description"].as_str().unwrap_or_default();
        RULE_DESCRIPTIONS.iter().any(|prefix| description.starts_with(prefix))
            || source_group(rule).is_some_and(|group| self.service_groups.contains(group))
    }
}

/// The security group that a rule lets in.
pub(super) fn source_group(rule: &Value) -> Option<&str> {
    rule["SourceSecurityGroupId"].as_str()
}

/// Whether Kubernetes created a security group for this cluster: those of stacks have a tag of ours, too.
pub(super) fn is_of_service(group: &VpcSecurityGroup, cluster: &ClusterName) -> bool {
    !group.tags.contains_key(CLUSTER_TAG)
        && group.tags.get(&kubernetes_cluster_tag(cluster)).is_some_and(|value| value == "owned")
}

fn is_tag_of_aws(tag: &Value) -> bool {
    tag["Key"].as_str().is_some_and(|key| key.starts_with("aws:"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::{DesignedCause, StackContext};
    use crate::aws::DifferenceKind::{self, Added, Changed, Removed};
    use crate::blueprint::StackPart;
    use crate::deploy::status::drift::PropertyDrift;

    fn cause(
        part: &str,
        kind: &str,
        path: &str,
        difference: DifferenceKind,
        actual: Value,
    ) -> Result<Option<DesignedCause>, Box<dyn std::error::Error>> {
        let cluster = "paddle".parse()?;
        let part = StackPart::from_stack_name(&cluster, part).ok_or("no such part")?;
        let template = json!({"Resources": {
            "Open": {"Properties": {"Tags": [{"Key": "kubernetes.io/cluster/paddle", "Value": "owned"}]}},
            "Weekend": {"Type": if kind.ends_with("Group") { "AWS::AutoScaling::ScheduledAction" } else { "" }},
        }});
        let service_groups = BTreeSet::from(["sg-service".to_owned()]);
        let context = StackContext {
            cluster: &cluster,
            part: &part,
            template: &template,
            service_groups: &service_groups,
        };
        let property = PropertyDrift { path: path.to_owned(), expected: None, actual: Some(actual) };
        Ok(context.cause("Open", kind, &property, difference))
    }

    #[test]
    fn only_pools_change_their_size() -> Result<(), Box<dyn std::error::Error>> {
        let group = "AWS::AutoScaling::AutoScalingGroup";
        let of = |part, path| cause(part, group, path, Changed, json!("3"));
        assert_eq!(of("paddle-pool-gpu", "DesiredCapacity")?, Some(DesignedCause::PoolSize));
        assert_eq!(of("paddle-pool-gpu", "MaxSize")?, Some(DesignedCause::Schedule));
        assert_eq!(of("paddle-pool-gpu", "HealthCheckType")?, None);
        assert_eq!(of("paddle-control-plane", "DesiredCapacity")?, None);
        assert_eq!(of("paddle-control-plane", "MinSize")?, None);
        Ok(())
    }

    #[test]
    fn rules_of_services_are_known_by_their_words_or_their_source() -> Result<(), Box<dyn std::error::Error>>
    {
        let of = |difference, rule| {
            cause("paddle-network", "AWS::EC2::SecurityGroup", "SecurityGroupIngress.4", difference, rule)
        };
        let by_words = json!({"CidrIp": "0.0.0.0/0", "Description": "kubernetes.io/rule/nlb/client=a1"});
        let by_source = json!({"IpProtocol": "-1", "SourceSecurityGroupId": "sg-service"});
        assert_eq!(of(Added, by_words.clone())?, Some(DesignedCause::Service));
        assert_eq!(of(Added, by_source)?, Some(DesignedCause::Service));
        assert_eq!(of(Added, json!({"IpProtocol": "-1", "SourceSecurityGroupId": "sg-other"}))?, None);
        assert_eq!(of(Added, json!({"CidrIp": "0.0.0.0/0", "Description": "for a moment"}))?, None);
        assert_eq!(of(Removed, by_words)?, None);
        Ok(())
    }

    #[test]
    fn only_aws_sets_tags_of_aws() -> Result<(), Box<dyn std::error::Error>> {
        let of = |key: &str| {
            let tag = json!({"Key": key, "Value": "x"});
            cause("paddle-storage", "AWS::EFS::FileSystem", "FileSystemTags.2", Added, tag)
        };
        assert_eq!(of("aws:elasticfilesystem:default-backup")?, Some(DesignedCause::AwsTag));
        assert_eq!(of("owner")?, None);
        Ok(())
    }
}
