//! Network interfaces: what uses the addresses of a VPC.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::Filter;

use super::actions;
use super::{AwsError, Clients};

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The id of the network interface.
    pub id: String,
    /// What AWS or a person wrote on it.
    pub description: String,
    /// Whether nothing holds it.
    pub free: bool,
    /// The subnet of the network interface.
    pub subnet: String,
    /// The security groups of the network interface.
    pub security_groups: Vec<String>,
    /// The machine it belongs to.
    pub instance: Option<String>,
    /// The tags of the network interface.
    pub tags: BTreeMap<String, String>,
}

impl Clients {
    /// Every network interface of a VPC.
    pub(crate) async fn interfaces_in(&self, vpc: &str) -> Result<Vec<Interface>, AwsError> {
        let filter = Filter::builder().name("vpc-id").values(vpc).build();
        let mut pages =
            self.ec2.describe_network_interfaces().filters(filter).into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let interface = next.map_err(AwsError::of(actions::EC2_DESCRIBE_NETWORK_INTERFACES))?;
            let groups = interface.groups.unwrap_or_default().into_iter();
            let tags = interface.tag_set.unwrap_or_default().into_iter();
            let tags: BTreeMap<String, String> =
                tags.filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect();
            found.push(Interface {
                id: interface.network_interface_id.unwrap_or_default(),
                description: interface.description.unwrap_or_default(),
                free: interface.status.is_some_and(|status| status.as_str() == "available"),
                subnet: interface.subnet_id.unwrap_or_default(),
                security_groups: groups.filter_map(|group| group.group_id).collect(),
                instance: interface.attachment.and_then(|attachment| attachment.instance_id),
                tags,
            });
        }
        Ok(found)
    }

    /// Deletes an interface that nothing holds; one that is gone is no error.
    pub(crate) async fn delete_interface(&self, id: &str) -> Result<(), AwsError> {
        let call = self.ec2.delete_network_interface().network_interface_id(id);
        match call.send().await.map_err(AwsError::of(actions::EC2_DELETE_NETWORK_INTERFACE)) {
            Err(error) if error.has_code("InvalidNetworkInterfaceID.NotFound") => Ok(()),
            other => other.map(|_| ()),
        }
    }
}
