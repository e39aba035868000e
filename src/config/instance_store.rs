//! The drives that machines bring with them (instance store): which types have them, and what pods can have of them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::cluster::Pool;
use super::gpu::gpu_instance_store;
use super::values::InstanceType;
use crate::document::parse_embedded_table;

static TABLE: LazyLock<Vec<Families>> =
    LazyLock::new(|| parse_embedded_table(include_str!("instance_stores.yaml")));

const GIGABYTE: u64 = 1_000_000_000;
const GIBIBYTE: u64 = 1 << 30;
/// What is left of a drive, in hundredths, when ext4 has its tables on it: 98.3 of drives between 50 GB and 4 TB, more of larger ones.
const FILE_SYSTEM_HUNDREDTHS: u64 = 98;
/// The most that is kept for images and logs, and at which part of the drives that is too much.
const MOST_FOR_IMAGES_GIB: u32 = 40;
const IMAGES_OF: u32 = 4;
/// How much stays free: with less the kubelet evicts pods.
const FREE_GIB: u32 = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Families {
    families: Vec<String>,
    sizes: BTreeMap<String, u32>,
}

/// The instance store of a pool's machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStore {
    /// Some of the pool's types have none.
    OnSomeTypes,
    /// Every type of the pool has it.
    OnEveryType(Scratch),
}

/// How the instance store of a pool's smallest machines is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// GiB that pods can request together.
    pub pods_gib: u32,
    /// GiB that are kept for images and logs.
    pub images_gib: u32,
    /// GiB that stay free.
    pub free_gib: u32,
}

impl InstanceStore {
    /// What a pool's machines have; nothing if none of its types has any.
    #[must_use]
    pub fn of_pool(pool: &Pool) -> Option<Self> {
        let sizes: Vec<Option<u32>> = pool.instance_types.iter().map(instance_store_gigabytes).collect();
        if sizes.iter().all(Option::is_none) {
            return None;
        }
        let every: Option<Vec<u32>> = sizes.into_iter().collect();
        let least = every.and_then(|sizes| sizes.into_iter().min());
        Some(least.map_or(Self::OnSomeTypes, |least| Self::OnEveryType(Scratch::of_gigabytes(least))))
    }

    /// How it is divided, if every type has it.
    #[must_use]
    pub fn scratch(self) -> Option<Scratch> {
        match self {
            Self::OnSomeTypes => None,
            Self::OnEveryType(scratch) => Some(scratch),
        }
    }
}

impl Scratch {
    fn of_gigabytes(gigabytes: u32) -> Self {
        let bytes = u64::from(gigabytes) * GIGABYTE / 100 * FILE_SYSTEM_HUNDREDTHS;
        let whole = u32::try_from(bytes / GIBIBYTE).unwrap_or(u32::MAX);
        let images_gib = (whole / IMAGES_OF).min(MOST_FOR_IMAGES_GIB);
        Self { pods_gib: whole.saturating_sub(images_gib + FREE_GIB), images_gib, free_gib: FREE_GIB }
    }
}

/// Gigabytes of instance store of a type, if it is known to have any.
fn instance_store_gigabytes(instance_type: &InstanceType) -> Option<u32> {
    gpu_instance_store(instance_type).or_else(|| {
        let is_family = |name: &String| name == instance_type.family();
        let row = TABLE.iter().find(|row| row.families.iter().any(is_family))?;
        row.sizes.get(instance_type.size()).copied()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Scratch, TABLE, instance_store_gigabytes};
    use crate::config::values::{Architecture, InstanceType};
    use crate::document::Fault;

    #[test]
    fn drives_are_known_by_type() -> Result<(), Fault> {
        for (instance_type, expected) in [
            ("g5.xlarge", Some(250)),
            ("g6e.48xlarge", Some(7600)),
            ("m5d.large", Some(75)),
            ("r8idn.96xlarge", Some(22800)),
            ("m5.large", None),
            ("m5d.nano", None),
            ("d3.xlarge", None),
        ] {
            assert_eq!(instance_store_gigabytes(&instance_type.parse()?), expected, "{instance_type}");
        }
        Ok(())
    }

    #[test]
    fn every_row_has_types_that_can_be_chosen_and_no_family_has_two() -> Result<(), Fault> {
        let mut seen = BTreeSet::new();
        for row in TABLE.iter() {
            for family in &row.families {
                assert!(seen.insert(family), "{family}");
                for (size, gigabytes) in &row.sizes {
                    let instance_type: InstanceType = format!("{family}.{size}").parse()?;
                    assert_eq!(instance_type.architecture(), Architecture::Amd64, "{instance_type}");
                    assert!(Scratch::of_gigabytes(*gigabytes).pods_gib > 0, "{instance_type}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_part_of_the_drives_is_reserved_for_images() {
        let divided = |gigabytes| {
            let Scratch { pods_gib, images_gib, free_gib } = Scratch::of_gigabytes(gigabytes);
            (pods_gib, images_gib, free_gib)
        };
        assert_eq!(divided(50), (24, 11, 10));
        assert_eq!(divided(250), (178, 40, 10));
        assert_eq!(divided(7600), (6886, 40, 10));
    }
}
