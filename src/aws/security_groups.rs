//! Security groups: what they let in, whose they are, and which others their rules name.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{IpPermission, IpRange, UserIdGroupPair};

use super::actions;
use super::machines::ec2_filter;
use super::{AwsError, Clients};

/// A security group of a VPC, and which others it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VpcSecurityGroup {
    /// The id of the security group.
    pub id: String,
    /// The name of the security group.
    pub name: String,
    /// The tags of the security group.
    pub tags: BTreeMap<String, String>,
    /// The ids of the security groups that its rules name, in either direction.
    pub named: BTreeSet<String>,
}

/// A security group and what it lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecurityGroup {
    /// The id of the security group.
    pub id: String,
    /// The inbound rules of the security group.
    pub inbound: Vec<InboundRule>,
}

/// An inbound rule of a security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InboundRule {
    /// The protocol; `-1` for all of them.
    pub protocol: String,
    /// The first port; none for all of them.
    pub first_port: Option<i32>,
    /// The last port; none for all of them.
    pub last_port: Option<i32>,
    /// Ranges that it lets in.
    pub ranges: Vec<String>,
    /// Whether it lets in members of security groups, or of prefix lists.
    pub names_others: bool,
}

impl Clients {
    /// Those of the security groups that exist.
    pub(crate) async fn security_groups(&self, ids: &[String]) -> Result<Vec<SecurityGroup>, AwsError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let request = self.ec2.describe_security_groups().filters(ec2_filter("group-id", ids));
        let found = request.into_paginator().items().send().try_collect().await;
        let found = found.map_err(AwsError::of(actions::EC2_DESCRIBE_SECURITY_GROUPS))?;
        let groups = found.iter().map(|group| SecurityGroup {
            id: group.group_id().unwrap_or_default().to_owned(),
            inbound: group.ip_permissions().iter().map(inbound_rule_of).collect(),
        });
        Ok(groups.collect())
    }

    /// Every security group of a VPC.
    pub(crate) async fn security_groups_in(&self, vpc: &str) -> Result<Vec<VpcSecurityGroup>, AwsError> {
        let call = self.ec2.describe_security_groups().filters(ec2_filter("vpc-id", [vpc]));
        let mut pages = call.into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let group = next.map_err(AwsError::of(actions::EC2_DESCRIBE_SECURITY_GROUPS))?;
            let tags = group.tags.unwrap_or_default().into_iter();
            let inbound = group.ip_permissions.unwrap_or_default().into_iter();
            let rules = inbound.chain(group.ip_permissions_egress.unwrap_or_default());
            let pairs = rules.flat_map(|rule| rule.user_id_group_pairs.unwrap_or_default());
            found.push(VpcSecurityGroup {
                id: group.group_id.unwrap_or_default(),
                name: group.group_name.unwrap_or_default(),
                tags: tags.filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect(),
                named: pairs.filter_map(|pair| pair.group_id).collect(),
            });
        }
        Ok(found)
    }

    /// Revokes the inbound rules of a security group that name another one; returns how many there were.
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
    pub(crate) async fn delete_security_group(&self, id: &str) -> Result<(), AwsError> {
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

/// The part of a rule that names a security group.
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

fn inbound_rule_of(permission: &IpPermission) -> InboundRule {
    let ranges = permission.ip_ranges().iter().filter_map(IpRange::cidr_ip);
    InboundRule {
        protocol: permission.ip_protocol().unwrap_or_default().to_owned(),
        first_port: permission.from_port(),
        last_port: permission.to_port(),
        ranges: ranges.map(str::to_owned).collect(),
        names_others: !permission.user_id_group_pairs().is_empty()
            || !permission.prefix_list_ids().is_empty(),
    }
}
