//! How many processors and how much memory the machines of an instance type have, where that is known.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::gpu::gpu_machine_size;
use super::values::InstanceType;
use crate::document::parse_embedded_table;

static TABLE: LazyLock<Table> = LazyLock::new(|| parse_embedded_table(include_str!("machine_sizes.yaml")));

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Table {
    gib_per_vcpu: BTreeMap<u32, Vec<String>>,
    listed: BTreeMap<String, BTreeMap<String, (u32, u32)>>,
}

/// Processors and GiB of memory of a machine.
#[must_use]
pub(crate) fn machine_size(instance_type: &InstanceType) -> Option<(u32, u32)> {
    gpu_machine_size(instance_type).or_else(|| {
        let (family, size) = (instance_type.family(), instance_type.size());
        if let Some(sizes) = TABLE.listed.get(family) {
            return sizes.get(size).copied();
        }
        let is_of = |families: &&Vec<String>| families.iter().any(|name| name == family);
        let (memory, _) = TABLE.gib_per_vcpu.iter().find(|(_, families)| is_of(families))?;
        let processors = processors_of(size)?;
        Some((processors, processors * memory))
    })
}

/// The processors that the name of a size says.
fn processors_of(size: &str) -> Option<u32> {
    match size.strip_suffix("xlarge") {
        None => (size == "large").then_some(2),
        Some("") => Some(4),
        Some(times) => times.parse::<u32>().ok()?.checked_mul(4),
    }
}

#[cfg(test)]
mod tests {
    use super::machine_size;
    use crate::document::Fault;

    #[test]
    fn the_size_of_a_machine_is_derived_from_its_name() -> Result<(), Fault> {
        for (instance_type, size) in [
            ("m5.large", Some((2, 8))),
            ("m5.xlarge", Some((4, 16))),
            ("c5.9xlarge", Some((36, 72))),
            ("r6i.24xlarge", Some((96, 768))),
            ("t3.medium", Some((2, 4))),
            ("g5.xlarge", Some((4, 16))),
            ("m5.metal", None),
            ("c5n.large", None),
            ("t3.nano", None),
        ] {
            assert_eq!(machine_size(&instance_type.parse()?), size, "{instance_type}");
        }
        Ok(())
    }
}
