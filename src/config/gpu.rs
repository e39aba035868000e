//! Which instance types have GPUs, what those are, and which families cannot work and why.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::driver_limits::{DriverLimits, KernelModules};
use super::file::PoolImage;
use super::values::{InstanceType, NvidiaDriver};
use crate::document::{Fault, nearest_word, parse_embedded_table};

/// The oldest driver that AWS's Deep Learning image is known to bring.
const DEEP_LEARNING_DRIVER: NvidiaDriver = NvidiaDriver { branch: 580, open: true };

static TABLE: LazyLock<Table> = LazyLock::new(|| parse_embedded_table(include_str!("gpu_machines.yaml")));

/// The GPUs of one instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus {
    /// The model, as NVIDIA's tools shorten it (`a10g`).
    pub model: &'static str,
    /// The number of GPUs.
    pub count: u32,
    /// The memory of each GPU.
    pub memory_mib: u32,
    /// The driver of the machine.
    pub driver: NvidiaDriver,
    /// Which drivers can run the GPUs.
    pub drivers: DriverLimits,
    /// The network cards with an elastic fabric adapter.
    pub efa: EfaCards,
    /// The bus bandwidth in GB/s that an all-reduce over several machines with EFA must reach, if one is known.
    pub expected_all_reduce: Option<u32>,
}

/// The network cards of a machine that each can have an elastic fabric adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EfaCards {
    /// The index of the first card; cards before it have none.
    pub first: u32,
    /// The number of cards; none if the machine has no EFA.
    pub count: u32,
}

impl EfaCards {
    /// Huge pages of 2 MiB that machines with EFA set aside, whatever their type.
    pub const HUGE_PAGES: u32 = 5128;

    /// The interfaces of the adapters. A machine's own interface is the first of card 0, so that an adapter there is the second.
    pub fn interfaces(self) -> impl Iterator<Item = EfaInterface> {
        (self.first..self.first + self.count).map(|card| EfaInterface { card, device: u32::from(card == 0) })
    }
}

/// The network interface of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EfaInterface {
    /// The index of the network card.
    pub card: u32,
    /// The index of the interface on that card.
    pub device: u32,
}

impl Gpus {
    /// Whether NVSwitches connect the GPUs, which work only while NVIDIA's fabric manager of the driver's own version runs.
    #[must_use]
    pub fn are_behind_nvswitch(&self) -> bool {
        self.count > 1 && ["a100", "h100", "h200", "b200", "b300"].contains(&self.model)
    }
}

/// The extension that holds NVIDIA's container runtime.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuntimeExtension {
    /// The file name.
    pub file: String,
    /// The URL of the extension.
    pub url: String,
    /// The URL of the list of hashes.
    pub sums_url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Table {
    all_reduce_hundredths: u32,
    runtime_extension: RuntimeExtension,
    supported: Vec<Family>,
    refused: Vec<Refusal>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Family {
    #[serde(rename = "family")]
    name: String,
    images: Vec<PoolImage>,
    #[serde(default)]
    flatcar_lacks: Option<String>,
    model: String,
    #[serde(rename = "gpuMemoryMiB")]
    gpu_memory_mib: u32,
    driver: NvidiaDriver,
    #[serde(default)]
    kernel_modules: Option<KernelModules>,
    #[serde(default)]
    oldest_driver: Option<u16>,
    #[serde(default)]
    newest_driver: Option<u16>,
    sizes: BTreeMap<String, Size>,
}

impl Family {
    fn driver_limits(&self) -> DriverLimits {
        DriverLimits { modules: self.kernel_modules, oldest: self.oldest_driver, newest: self.newest_driver }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Size {
    gpus: u32,
    vcpus: u32,
    #[serde(rename = "memoryGiB")]
    memory_gib: u32,
    efa_interfaces: u32,
    #[serde(default)]
    first_efa_card: u32,
    #[serde(rename = "instanceStoreGB")]
    instance_store_gb: u32,
    #[serde(default)]
    network_gbps: Option<u32>,
}

/// Bits of a byte.
const BITS: u32 = 8;

#[derive(Deserialize)]
struct Refusal {
    family: String,
    reason: String,
    instead: String,
}

/// The GPUs of an instance type; none for a type without GPUs, and a fault for one that infra does not support.
pub fn gpus_of(instance_type: &InstanceType) -> Result<Option<Gpus>, Fault> {
    if let Some(refusal) = TABLE.refused.iter().find(|refusal| refusal.family == instance_type.family()) {
        return Err(Fault::new(format!("{instance_type} is not supported: {}", refusal.reason))
            .help(format!("use {}, for example", refusal.instead)));
    }
    if let Some(family) = TABLE.supported.iter().find(|family| family.name == instance_type.family()) {
        let Some(size) = family.sizes.get(instance_type.size()) else {
            return Err(unknown_size(instance_type, family));
        };
        return Ok(Some(Gpus {
            model: &family.model,
            count: size.gpus,
            memory_mib: family.gpu_memory_mib,
            driver: family.driver,
            drivers: family.driver_limits(),
            efa: EfaCards { first: size.first_efa_card, count: size.efa_interfaces },
            expected_all_reduce: size
                .network_gbps
                .map(|gbps| gbps * TABLE.all_reduce_hundredths / 100 / BITS),
        }));
    }
    if instance_type.is_of_gpu_series() {
        let known: Vec<&str> = TABLE.supported.iter().map(|family| family.name.as_str()).collect();
        return Err(Fault::new(format!(
            "this version of infra does not know the GPU machine {instance_type}"
        ))
        .help(format!("known families: {}", known.join(", "))));
    }
    Ok(None)
}

/// Refuses an image that machines of a type with GPUs cannot boot.
pub(super) fn check_image(instance_type: &InstanceType, image: PoolImage) -> Result<(), Fault> {
    let family = TABLE.supported.iter().find(|family| family.name == instance_type.family());
    let Some(family) = family.filter(|family| !family.images.contains(&image)) else { return Ok(()) };
    Err(match (image, &family.flatcar_lacks) {
        (PoolImage::Flatcar, Some(lacks)) => {
            Fault::new(format!("{instance_type} does not work on Flatcar, which lacks {lacks}"))
                .help("add `image: deep-learning` to the pool: AWS's image has it")
        }
        _ => {
            let objection = family.driver_limits().objection(DEEP_LEARNING_DRIVER).unwrap_or_default();
            Fault::new(format!("{instance_type} does not work with image {image}: {objection}"))
                .help(format!("remove image to use {}", PoolImage::Flatcar))
        }
    })
}

/// Whether machines of all these types have EFA, on the same network cards, and work with the image that has its driver.
#[must_use]
pub fn can_have_efa(types: &[InstanceType]) -> bool {
    let cards = |machine: &InstanceType| gpus_of(machine).ok().flatten().map(|gpus| gpus.efa);
    let first = types.first().and_then(cards).filter(|cards| cards.count > 0);
    let is_suitable = |machine: &InstanceType| {
        cards(machine) == first && check_image(machine, PoolImage::DeepLearning).is_ok()
    };
    first.is_some() && types.iter().all(is_suitable)
}

/// The extension that GPU nodes get their container runtime from.
#[must_use]
pub fn nvidia_runtime_extension() -> &'static RuntimeExtension {
    &TABLE.runtime_extension
}

/// Processors and GiB of memory of a GPU machine.
#[must_use]
pub fn gpu_machine_size(instance_type: &InstanceType) -> Option<(u32, u32)> {
    gpu_machine_row(instance_type).map(|size| (size.vcpus, size.memory_gib))
}

/// Gigabytes of instance store of a GPU machine.
#[must_use]
pub fn gpu_instance_store(instance_type: &InstanceType) -> Option<u32> {
    gpu_machine_row(instance_type).map(|size| size.instance_store_gb)
}

fn gpu_machine_row(instance_type: &InstanceType) -> Option<&'static Size> {
    let family = TABLE.supported.iter().find(|family| family.name == instance_type.family())?;
    family.sizes.get(instance_type.size())
}

fn unknown_size(instance_type: &InstanceType, family: &Family) -> Fault {
    let fault = Fault::new(format!("there is no {instance_type}"));
    match nearest_word(instance_type.size(), family.sizes.keys().map(String::as_str)) {
        Some(size) => fault.help(format!("did you mean {}.{size}?", family.name)),
        None => {
            let mut sizes: Vec<&str> = family.sizes.keys().map(String::as_str).collect();
            sizes.sort_by_key(|size| (size.len(), *size));
            fault.help(format!("sizes of {}: {}", family.name, sizes.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        DEEP_LEARNING_DRIVER, EfaCards, TABLE, check_image, gpu_instance_store, gpu_machine_size, gpus_of,
    };
    use crate::config::file::PoolImage;
    use crate::config::values::{InstanceType, NvidiaDriver};
    use crate::document::Fault;

    #[test]
    fn every_row_of_the_table_is_found_by_its_name() -> Result<(), Fault> {
        for family in &TABLE.supported {
            assert_eq!(family.driver_limits().objection(family.driver), None, "{}", family.name);
            assert!(!family.images.is_empty());
            // What Flatcar lacks is said of every family that cannot have it, and of no other.
            assert_ne!(family.images.contains(&PoolImage::Flatcar), family.flatcar_lacks.is_some());
            let objection = family.driver_limits().objection(DEEP_LEARNING_DRIVER);
            assert_ne!(family.images.contains(&PoolImage::DeepLearning), objection.is_some());
            for (size, row) in &family.sizes {
                let instance_type: InstanceType = format!("{}.{size}", family.name).parse()?;
                let gpus = gpus_of(&instance_type)?;
                assert_eq!(gpus.map(|gpus| gpus.count), Some(row.gpus));
                assert!(row.efa_interfaces > 0 || (row.first_efa_card == 0 && row.network_gbps.is_none()));
                assert!(
                    row.gpus > 0
                        && gpu_machine_size(&instance_type)
                            .is_some_and(|(vcpus, memory)| vcpus > 0 && memory > 0)
                );
                // Every family that is supported has drives of its own.
                assert!(gpu_instance_store(&instance_type).is_some_and(|gigabytes| gigabytes >= 125));
            }
        }
        Ok(())
    }

    #[test]
    fn what_is_offered_instead_of_a_refused_family_works() -> Result<(), Fault> {
        for refusal in &TABLE.refused {
            assert!(gpus_of(&refusal.instead.parse()?)?.is_some(), "{}", refusal.instead);
            assert!(gpus_of(&format!("{}.xlarge", refusal.family).parse()?).is_err(), "{}", refusal.family);
        }
        Ok(())
    }

    #[test]
    fn each_network_card_has_one_adapter_and_the_expectation_is_under_the_line_rate() -> Result<(), Fault> {
        for (machine, first, count, expected) in [
            ("p4d.24xlarge", 0, 4, Some(30)),
            ("p5.48xlarge", 0, 32, Some(240)),
            ("p5en.48xlarge", 0, 16, Some(240)),
            ("p6-b200.48xlarge", 0, 8, Some(240)),
            ("p6-b300.48xlarge", 1, 16, Some(480)),
            ("g6e.48xlarge", 0, 4, None),
            ("g5.xlarge", 0, 0, None),
        ] {
            let gpus = gpus_of(&machine.parse()?)?.ok_or_else(|| Fault::new(machine))?;
            assert_eq!(
                (gpus.efa, gpus.expected_all_reduce),
                (EfaCards { first, count }, expected),
                "{machine}"
            );
        }
        Ok(())
    }

    #[test]
    fn every_adapter_has_an_interface_beside_the_machines_own() -> Result<(), Fault> {
        for (machine, first, last) in [
            ("p4d.24xlarge", (0, 1), (3, 0)),
            ("p5.48xlarge", (0, 1), (31, 0)),
            ("p6-b300.48xlarge", (1, 0), (16, 0)),
            ("g6e.8xlarge", (0, 1), (0, 1)),
        ] {
            let gpus = gpus_of(&machine.parse()?)?.ok_or_else(|| Fault::new(machine))?;
            let found: Vec<(u32, u32)> =
                gpus.efa.interfaces().map(|interface| (interface.card, interface.device)).collect();
            assert_eq!(found.len(), usize::try_from(gpus.efa.count).unwrap_or_default(), "{machine}");
            assert_eq!((found.first(), found.last()), (Some(&first), Some(&last)), "{machine}");
        }
        Ok(())
    }

    #[test]
    fn an_image_is_refused_where_it_cannot_work() -> Result<(), Fault> {
        for (machine, image, works) in [
            ("p5.48xlarge", PoolImage::Flatcar, false),
            ("p5.48xlarge", PoolImage::DeepLearning, true),
            ("g6e.48xlarge", PoolImage::Flatcar, true),
            ("g6e.48xlarge", PoolImage::DeepLearning, true),
            ("p3dn.24xlarge", PoolImage::DeepLearning, false),
            ("m5.large", PoolImage::Flatcar, true),
        ] {
            assert_eq!(check_image(&machine.parse()?, image).is_ok(), works, "{machine} {image}");
        }
        for machine in [
            "p4d.24xlarge",
            "p4de.24xlarge",
            "p5.4xlarge",
            "p5.48xlarge",
            "p5e.48xlarge",
            "p5en.48xlarge",
            "p6-b200.48xlarge",
            "p6-b300.48xlarge",
            "g7.2xlarge",
        ] {
            assert!(check_image(&machine.parse()?, PoolImage::DeepLearning).is_ok(), "{machine}");
            let refused = check_image(&machine.parse()?, PoolImage::Flatcar);
            assert!(refused.is_err_and(|fault| fault.to_string().contains("lacks")), "{machine}");
        }
        Ok(())
    }

    #[test]
    fn volta_gets_the_proprietary_driver_and_turing_the_open_one() -> Result<(), Fault> {
        let driver =
            |text: &str| Ok::<_, Fault>(gpus_of(&text.parse()?)?.map(|gpus| gpus.driver.extension()));
        assert_eq!(driver("p3dn.24xlarge")?.as_deref(), Some("nvidia-drivers-570"));
        assert_eq!(driver("g4dn.xlarge")?.as_deref(), Some("nvidia-drivers-570-open"));
        assert_eq!(driver("m5.large")?, None);
        Ok(())
    }

    #[test]
    fn each_generation_refuses_the_drivers_that_cannot_run_it() -> Result<(), Fault> {
        let refused = |machine: &str, driver: &str| {
            let driver: NvidiaDriver = driver.parse()?;
            Ok::<_, Fault>(
                gpus_of(&machine.parse()?)?.is_some_and(|gpus| gpus.drivers.objection(driver).is_some()),
            )
        };
        for (machine, bad, good) in [
            ("p3dn.24xlarge", vec!["570-open", "595"], vec!["535", "580"]),
            ("g7e.2xlarge", vec!["570", "550-open"], vec!["570-open", "580-open"]),
            ("g5.xlarge", vec![], vec!["535", "595-open"]),
        ] {
            for driver in bad {
                assert!(refused(machine, driver)?, "{machine} {driver}");
            }
            for driver in good {
                assert!(!refused(machine, driver)?, "{machine} {driver}");
            }
        }
        Ok(())
    }
}
