//! What resources cost by the hour and by the month, from prices that are given.

use std::collections::BTreeSet;

use super::prices::{Period, Prices, UnitPrice};
use crate::config::values::Money;

/// The hours of a month, as AWS's own calculator counts them.
pub const HOURS_A_MONTH: u64 = 730;

/// What one resource is charged for while it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// A machine.
    Machine(MachineCharge),
    /// A number of units of something that has a price per unit.
    Units(UnitPrice, u32),
    /// Nothing by the hour: it depends on use alone.
    Use,
    /// Nothing by the hour: a machine of a capacity block, which is paid in advance.
    Prepaid,
}

/// How a machine is paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCharge {
    /// The types that the machine may be of.
    pub types: Vec<String>,
    /// Whether it is a spot machine.
    pub spot: bool,
    /// The availability zones that a spot machine may be in; any if none is named.
    pub zones: Vec<String>,
}

/// What a set of resources costs. Exact for a month, from which the hour follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    per_month: Money,
    /// What has no known price and is not in the sum, by name.
    pub missing: BTreeSet<String>,
    /// How many machines are not in the sum because their capacity block is paid in advance.
    pub prepaid_machines: u32,
}

impl Cost {
    /// What these resources cost, each multiplied by its count.
    #[must_use]
    pub fn of<'a>(charges: impl IntoIterator<Item = (u32, &'a Charge)>, prices: &Prices) -> Self {
        let mut cost = Self::default();
        for (count, charge) in charges {
            if count == 0 {
                continue;
            }
            if *charge == Charge::Prepaid {
                cost.prepaid_machines += count;
            }
            match charge.per_month(prices) {
                Ok(price) => cost.per_month = cost.per_month + price.times(u64::from(count)),
                Err(missing) => cost.missing.extend(missing),
            }
        }
        cost
    }

    /// The cost of an hour.
    #[must_use]
    pub fn per_hour(&self) -> Money {
        self.per_month.divided_by(HOURS_A_MONTH)
    }

    /// The cost of a month of 730 hours.
    #[must_use]
    pub fn per_month(&self) -> Money {
        self.per_month
    }
}

impl Charge {
    /// The price of one such resource for a month, or what has no price.
    fn per_month(&self, prices: &Prices) -> Result<Money, Vec<String>> {
        match self {
            Self::Machine(machine) => machine.per_hour(prices).map(|price| price.times(HOURS_A_MONTH)),
            Self::Units(unit, amount) => {
                let price = prices.unit(*unit).ok_or_else(|| vec![unit.what().to_owned()])?;
                let hours = if unit.period() == Period::Hour { HOURS_A_MONTH } else { 1 };
                Ok(price.times(u64::from(*amount)).times(hours))
            }
            Self::Use | Self::Prepaid => Ok(Money::ZERO),
        }
    }

    /// The same resource, paid on demand.
    #[must_use]
    pub fn on_demand(self) -> Self {
        match self {
            Self::Machine(machine) => Self::Machine(MachineCharge { spot: false, ..machine }),
            other => other,
        }
    }
}

impl MachineCharge {
    /// A machine of one type, on demand.
    #[must_use]
    pub fn on_demand(instance_type: impl Into<String>) -> Self {
        Self { types: vec![instance_type.into()], spot: false, zones: Vec::new() }
    }

    /// The price of an hour, or what has no price: of several types and availability zones the highest, because it may be any.
    pub fn per_hour(&self, prices: &Prices) -> Result<Money, Vec<String>> {
        let price = |name: &String| {
            if self.spot { prices.spot(name, &self.zones) } else { prices.machines.get(name).copied() }
        };
        let how = if self.spot { " spot" } else { "" };
        let missing: Vec<String> = self
            .types
            .iter()
            .filter(|name| price(name).is_none())
            .map(|name| format!("{name}{how}"))
            .collect();
        let highest = self.types.iter().filter_map(price).max();
        highest.filter(|_| missing.is_empty()).ok_or(missing)
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::super::prices::{Currency, Prices, UnitPrice};
    use super::{Charge, Cost, MachineCharge};
    use crate::config::values::Money;

    fn money(text: &str) -> Money {
        text.parse().unwrap_or_default()
    }

    fn prices() -> Prices {
        let mut prices = Prices::none(date!(2026 - 11 - 01), Currency::Usd);
        prices.machines = [("g5.xlarge", "1.006"), ("g5.2xlarge", "1.212")]
            .map(|(name, price)| (name.to_owned(), money(price)))
            .into();
        let zones = [("us-west-2a", "0.4"), ("us-west-2b", "0.5")];
        prices.spot =
            [("g5.xlarge".to_owned(), zones.map(|(zone, price)| (zone.to_owned(), money(price))).into())]
                .into();
        prices.units = [(UnitPrice::DiskGibibyteMonth.key().to_owned(), money("0.08"))].into();
        prices
    }

    fn machine(types: &[&str], spot: bool, zones: &[&str]) -> Charge {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Charge::Machine(MachineCharge { types: texts(types), spot, zones: texts(zones) })
    }

    #[test]
    fn of_several_types_and_availability_zones_the_highest_price_counts() {
        let per_hour = |charge: &Charge| Cost::of([(1, charge)], &prices()).per_hour();
        assert_eq!(per_hour(&machine(&["g5.xlarge", "g5.2xlarge"], false, &[])), money("1.212"));
        assert_eq!(per_hour(&machine(&["g5.xlarge"], true, &["us-west-2a"])), money("0.4"));
        assert_eq!(per_hour(&machine(&["g5.xlarge"], true, &[])), money("0.5"));
        assert_eq!(per_hour(&machine(&["g5.xlarge"], true, &[]).on_demand()), money("1.006"));
    }

    #[test]
    fn a_month_is_exact_and_what_has_no_price_is_named_and_not_summed() {
        let disk = Charge::Units(UnitPrice::DiskGibibyteMonth, 100);
        let unknown = [
            machine(&["p9.48xlarge", "g5.xlarge"], false, &[]),
            machine(&["g5.2xlarge"], true, &[]),
            Charge::Units(UnitPrice::NatGatewayHour, 1),
        ];
        let charges = std::iter::once((3, &disk)).chain(unknown.iter().map(|charge| (1, charge)));
        let cost = Cost::of(charges, &prices());
        assert_eq!(cost.per_month(), money("24"));
        assert_eq!(cost.per_hour().rounded(6), money("0.032877"));
        assert_eq!(
            cost.missing.iter().map(String::as_str).collect::<Vec<_>>(),
            ["NAT gateway", "g5.2xlarge spot", "p9.48xlarge"]
        );
        // What does not exist needs no price.
        assert_eq!(Cost::of([(0, &unknown[0])], &prices()), Cost::default());
    }

    #[test]
    fn what_is_paid_in_advance_is_counted_and_not_summed() {
        let disk = Charge::Units(UnitPrice::DiskGibibyteMonth, 100);
        let charges = [(3, &disk), (2, &Charge::Prepaid), (1, &Charge::Prepaid), (0, &Charge::Prepaid)];
        let cost = Cost::of(charges, &prices());
        assert_eq!((cost.per_month(), cost.prepaid_machines), (money("24"), 3));
        assert!(cost.missing.is_empty(), "{cost:?}");
    }
}
