//! Security groups of a VPC: whose they are, and which name which.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{Filter, IpPermission, UserIdGroupPair};

use super::actions;
use super::{AwsError, Clients};

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VpcGroup {
    /// The id of the security group.
    pub id: String,
    /// The name of the security group.
    pub name: String,
    /// The tags of the security group.
    pub tags: BTreeMap<String, String>,
    /// The groups that its rules name, in either direction.
    pub named: BTreeSet<String>,
}

impl Clients {
    /// Every security group of a VPC.
    pub(crate) async fn groups_in(&self, vpc: &str) -> Result<Vec<VpcGroup>, AwsError> {
        let filter = Filter::builder().name("vpc-id").values(vpc).build();
        let mut pages = self.ec2.describe_security_groups().filters(filter).into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let group = next.map_err(AwsError::of(actions::EC2_DESCRIBE_SECURITY_GROUPS))?;
            let tags = group.tags.unwrap_or_default().into_iter();
            let inbound = group.ip_permissions.unwrap_or_default().into_iter();
            let rules = inbound.chain(group.ip_permissions_egress.unwrap_or_default());
            let pairs = rules.flat_map(|rule| rule.user_id_group_pairs.unwrap_or_default());
            found.push(VpcGroup {
                id: group.group_id.unwrap_or_default(),
                name: group.group_name.unwrap_or_default(),
                tags: tags.filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect(),
                named: pairs.filter_map(|pair| pair.group_id).collect(),
            });
        }
        Ok(found)
    }

    /// Removes the inbound rules of a group that name another one; gives how many there were.
    pub(crate) async fn revoke_rules_naming(&self, group: &str, other: &str) -> Result<usize, AwsError> {
        let call = self.ec2.describe_security_groups().group_ids(group);
        let answer = call.send().await.map_err(AwsError::of(actions::EC2_DESCRIBE_SECURITY_GROUPS))?;
        let groups = answer.security_groups.unwrap_or_default().into_iter();
        let rules: Vec<IpPermission> = groups
            .flat_map(|group| group.ip_permissions.unwrap_or_default())
            .filter_map(|rule| rules_naming(rule, other))
            .collect();
        if rules.is_empty() {
            return Ok(0);
        }
        let count = rules.len();
        let call = self.ec2.revoke_security_group_ingress().group_id(group).set_ip_permissions(Some(rules));
        call.send().await.map_err(AwsError::of(actions::EC2_REVOKE_SECURITY_GROUP_INGRESS))?;
        Ok(count)
    }

    /// Deletes a security group; one that is gone is no error.
    pub(crate) async fn delete_group(&self, id: &str) -> Result<(), AwsError> {
        match self
            .ec2
            .delete_security_group()
            .group_id(id)
            .send()
            .await
            .map_err(AwsError::of(actions::EC2_DELETE_SECURITY_GROUP))
        {
            Err(error) if error.has_code("InvalidGroup.NotFound") => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// The part of a rule that names a group.
fn rules_naming(rule: IpPermission, other: &str) -> Option<IpPermission> {
    let pairs = rule.user_id_group_pairs.unwrap_or_default().into_iter();
    let pairs: Vec<UserIdGroupPair> = pairs.filter(|pair| pair.group_id.as_deref() == Some(other)).collect();
    if pairs.is_empty() {
        return None;
    }
    let part = IpPermission::builder()
        .set_ip_protocol(rule.ip_protocol)
        .set_from_port(rule.from_port)
        .set_to_port(rule.to_port)
        .set_user_id_group_pairs(Some(pairs));
    Some(part.build())
}
