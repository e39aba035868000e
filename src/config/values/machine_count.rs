//! The number of machines of a pool.

use std::str::FromStr;

use crate::document::Fault;

/// The number of machines of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCount(u32);

impl MachineCount {
    /// The most machines that a pool can have.
    pub const MOST: u32 = 5000;

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for MachineCount {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        match text.parse() {
            Ok(number) if number <= Self::MOST => Ok(Self(number)),
            _ => Err(Fault::new(format!("'{text}' is not a number from 0 to {}", Self::MOST))),
        }
    }
}
