//! Which of NVIDIA's drivers can run a GPU, by its architecture.

use serde::Deserialize;

use super::values::NvidiaDriver;

/// Which drivers can run a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverLimits {
    /// The kernel modules that its architecture needs, if it does not run with both.
    pub(super) modules: Option<KernelModules>,
    /// The first branch that knows it.
    pub(super) oldest: Option<u16>,
    /// The last branch that knows it.
    pub(super) newest: Option<u16>,
}

/// The kind of a driver's kernel modules.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum KernelModules {
    /// NVIDIA's open ones.
    Open,
    /// NVIDIA's proprietary ones.
    Proprietary,
}

impl DriverLimits {
    /// Why a driver cannot run the GPU; none if it can.
    #[must_use]
    pub fn objection(&self, driver: NvidiaDriver) -> Option<String> {
        match self.modules {
            Some(KernelModules::Open) if !driver.open => {
                return Some("its GPU needs open kernel modules".to_owned());
            }
            Some(KernelModules::Proprietary) if driver.open => {
                return Some("its GPU is too old for open kernel modules".to_owned());
            }
            _ => {}
        }
        if let Some(oldest) = self.oldest.filter(|oldest| driver.branch < *oldest) {
            return Some(format!("its GPU needs driver {oldest} or newer"));
        }
        let newest = self.newest.filter(|newest| driver.branch > *newest)?;
        Some(format!("the last driver for its GPU is {newest}"))
    }
}
