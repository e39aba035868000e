//! Existing machines and their console output.

use crate::well_known::{CLUSTER_TAG, GROUP_NAME_TAG, ROLE_TAG, tag_filter};
use std::collections::BTreeMap;

use aws_sdk_ec2::types::{Filter, InstanceLifecycleType, InstanceState, Placement};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::actions::{self, Action};
use super::{AwsError, Clients};

/// How EC2 says that a machine's type cannot give the newest console output.
const NO_LATEST_OUTPUT: [&str; 4] =
    ["UnsupportedOperation", "InvalidParameter", "InvalidParameterValue", "InvalidParameterCombination"];

/// A machine.
#[expect(clippy::struct_field_names, reason = "an instance type is what AWS calls it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// The id of the machine.
    pub id: String,
    /// The state of the machine (`running`).
    pub state: String,
    /// What it is in its cluster: the tag `infra:role`.
    pub role: Option<String>,
    /// The private DNS name of the machine, which is its node's name too.
    pub name: Option<String>,
    /// The private address of the machine.
    pub private_address: Option<String>,
    /// The availability zone of the machine.
    pub zone: String,
    /// The type of the machine.
    pub instance_type: String,
    /// The Auto Scaling group that started it.
    pub group: Option<String>,
}

/// Machines of one type and one way of paying.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MachineKind {
    /// The type.
    pub instance_type: String,
    /// Whether they are spot machines.
    pub spot: bool,
}

impl Clients {
    /// What a machine wrote to its console; none if there is nothing yet. Only newer types can give it up to this moment.
    pub(crate) async fn console_output(&self, instance: &str) -> Result<Option<String>, AwsError> {
        const OPERATION: Action = actions::EC2_GET_CONSOLE_OUTPUT;
        let request = self.ec2.get_console_output().instance_id(instance);
        let answer = match request.clone().latest(true).send().await.map_err(AwsError::of(OPERATION)) {
            Err(error) if NO_LATEST_OUTPUT.iter().any(|code| error.has_code(code)) => {
                request.send().await.map_err(AwsError::of(OPERATION))?
            }
            answer => answer?,
        };
        Ok(answer.output.filter(|output| !output.is_empty()).map(|output| decode_console(&output)))
    }

    /// Every machine with the cluster's tag, terminated ones too while EC2 remembers them.
    pub(crate) async fn instances_of_cluster(&self, cluster: &str) -> Result<Vec<Instance>, AwsError> {
        let found = self.instances(ec2_filter(&tag_filter(CLUSTER_TAG), [cluster])).await?;
        let mut instances: Vec<Instance> = found.iter().map(instance_of).collect();
        instances.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(instances)
    }

    /// The number of running machines of each type in the region, of all owners, without those in capacity blocks: AWS limits blocks as
    /// such.
    pub(crate) async fn running_machines(&self) -> Result<BTreeMap<MachineKind, u32>, AwsError> {
        let mut counts = BTreeMap::new();
        for instance in self.instances(ec2_filter("instance-state-name", ["pending", "running"])).await? {
            if instance.instance_lifecycle == Some(InstanceLifecycleType::CapacityBlock) {
                continue;
            }
            let spot = instance.instance_lifecycle == Some(InstanceLifecycleType::Spot);
            let instance_type = sdk_text(instance.instance_type.as_ref());
            *counts.entry(MachineKind { instance_type, spot }).or_insert(0) += 1;
        }
        Ok(counts)
    }

    async fn instances(&self, filter: Filter) -> Result<Vec<aws_sdk_ec2::types::Instance>, AwsError> {
        let pages = self.ec2.describe_instances().filters(filter).into_paginator().items().send();
        let reservations =
            pages.try_collect().await.map_err(AwsError::of(actions::EC2_DESCRIBE_INSTANCES))?;
        Ok(reservations
            .into_iter()
            .flat_map(|reservation| reservation.instances.unwrap_or_default())
            .collect())
    }
}

/// A filter of EC2's lists: any of the values will do.
pub(super) fn ec2_filter<V: Into<String>>(name: &str, values: impl IntoIterator<Item = V>) -> Filter {
    let values = values.into_iter().map(Into::into).collect();
    Filter::builder().name(name).set_values(Some(values)).build()
}

/// The text of a value that EC2 may have left out.
pub(super) fn sdk_text(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn instance_of(instance: &aws_sdk_ec2::types::Instance) -> Instance {
    let tag = |key: &str| {
        let tag = instance.tags().iter().find(|tag| tag.key() == Some(key))?;
        tag.value().map(str::to_owned)
    };
    let given = |value: Option<&str>| value.filter(|value| !value.is_empty()).map(str::to_owned);
    Instance {
        id: sdk_text(instance.instance_id.as_ref()),
        state: sdk_text(instance.state().and_then(InstanceState::name)),
        role: tag(ROLE_TAG),
        name: given(instance.private_dns_name()),
        private_address: given(instance.private_ip_address()),
        zone: instance.placement().and_then(Placement::availability_zone).unwrap_or_default().to_owned(),
        instance_type: sdk_text(instance.instance_type.as_ref()),
        group: tag(GROUP_NAME_TAG),
    }
}

fn decode_console(output: &str) -> String {
    let joined: String = output.split_whitespace().collect();
    match STANDARD.decode(joined) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => output.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::decode_console;

    #[test]
    fn console_output_is_decoded_and_what_cannot_be_is_kept() {
        assert_eq!(decode_console("aGVs\nbG8="), "hello");
        assert_eq!(decode_console("[    0.000000] Linux"), "[    0.000000] Linux");
    }
}
