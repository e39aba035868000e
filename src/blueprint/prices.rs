//! Prices as AWS listed them on a day: data that infra.lock keeps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::Date;

use crate::config::values::{Money, Partition};

time::serde::format_description!(day, Date, "[year]-[month]-[day]");

/// AWS changes prices rarely, and mostly downwards; after a quarter of a year they are looked up again.
pub const DAYS_OF_A_PRICE: i64 = 90;

/// Prices of one region, and when AWS listed them. What is not in here has no known price.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// The day on which AWS listed the prices.
    #[serde(with = "day")]
    #[schemars(with = "String")]
    pub date: Date,
    /// The currency of all prices.
    pub currency: Currency,
    /// The price of a machine by the hour, on demand, by instance type.
    #[serde(default)]
    pub machines: BTreeMap<String, Money>,
    /// The price of a spot machine by the hour, by instance type and availability zone.
    #[serde(default)]
    pub spot: BTreeMap<String, BTreeMap<String, Money>>,
    /// The prices of everything else, by unit.
    #[serde(default)]
    pub units: BTreeMap<String, Money>,
}

/// A currency that AWS lists prices in.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Currency {
    /// US dollars.
    Usd,
    /// Renminbi.
    Cny,
}

impl Currency {
    /// The currency of a partition's price list.
    #[must_use]
    pub fn of(partition: Partition) -> Self {
        match partition {
            Partition::Aws | Partition::UsGovernment => Self::Usd,
            Partition::China => Self::Cny,
        }
    }

    /// The code of the currency.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Usd => "USD",
            Self::Cny => "CNY",
        }
    }

    /// A sum, rounded to hundredths.
    #[must_use]
    pub fn sum(self, amount: Money) -> String {
        self.exact(amount.rounded(2))
    }

    /// An amount with all its digits.
    #[must_use]
    pub fn exact(self, amount: Money) -> String {
        let sign = if amount.is_negative() { "-" } else { "" };
        let symbol = match self {
            Self::Usd => "$",
            Self::Cny => "¥",
        };
        format!("{sign}{symbol}{}", amount.grouped(2))
    }
}

/// What a unit price is the price of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitPrice {
    /// A NAT gateway.
    NatGatewayHour,
    /// A gigabyte through a NAT gateway.
    NatGatewayGigabyte,
    /// A network load balancer.
    LoadBalancerHour,
    /// A capacity unit of a network load balancer.
    LoadBalancerCapacityHour,
    /// A public IPv4 address.
    PublicAddressHour,
    /// A gibibyte of a gp3 disk.
    DiskGibibyteMonth,
    /// A hosted zone.
    HostedZoneMonth,
    /// A gibibyte in the shared file system.
    FileSystemGibibyteMonth,
    /// A gibibyte read from the shared file system, with elastic throughput.
    FileSystemRead,
    /// A gibibyte written to the shared file system, with elastic throughput.
    FileSystemWrite,
    /// A gigabyte of uploaded assets and snapshots.
    BucketGigabyteMonth,
    /// A KMS key.
    KeyMonth,
}

/// What a price is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// The hours that the resource exists.
    Hour,
    /// The months that the resource exists.
    Month,
    /// How much of it is used.
    Use,
}

impl UnitPrice {
    /// The name of the price in infra.lock.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::NatGatewayHour => "natGatewayHour",
            Self::NatGatewayGigabyte => "natGatewayGB",
            Self::LoadBalancerHour => "networkLoadBalancerHour",
            Self::LoadBalancerCapacityHour => "networkLoadBalancerCapacityUnitHour",
            Self::PublicAddressHour => "publicIPv4AddressHour",
            Self::DiskGibibyteMonth => "diskGiBMonth",
            Self::HostedZoneMonth => "hostedZoneMonth",
            Self::FileSystemGibibyteMonth => "fileSystemGiBMonth",
            Self::FileSystemRead => "fileSystemReadGiB",
            Self::FileSystemWrite => "fileSystemWriteGiB",
            Self::BucketGigabyteMonth => "bucketGBMonth",
            Self::KeyMonth => "keyMonth",
        }
    }

    /// What is paid for, in words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::NatGatewayHour => "NAT gateway",
            Self::NatGatewayGigabyte => "traffic through NAT gateways",
            Self::LoadBalancerHour => "network load balancer",
            Self::LoadBalancerCapacityHour => "capacity units (LCU) of load balancers",
            Self::PublicAddressHour => "public IPv4 address",
            Self::DiskGibibyteMonth => "gp3 disk",
            Self::HostedZoneMonth => "hosted zone",
            Self::FileSystemGibibyteMonth => "files in EFS",
            Self::FileSystemRead => "reading from EFS",
            Self::FileSystemWrite => "writing to EFS",
            Self::BucketGigabyteMonth => "assets and snapshots in S3",
            Self::KeyMonth => "KMS key",
        }
    }

    /// What one unit is, in words.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::NatGatewayHour | Self::LoadBalancerHour | Self::PublicAddressHour => "hour",
            Self::LoadBalancerCapacityHour => "unit and hour",
            Self::NatGatewayGigabyte => "GB",
            Self::FileSystemRead | Self::FileSystemWrite => "GiB",
            Self::DiskGibibyteMonth | Self::FileSystemGibibyteMonth => "GiB and month",
            Self::BucketGigabyteMonth => "GB and month",
            Self::HostedZoneMonth | Self::KeyMonth => "month",
        }
    }

    /// What the price is multiplied with.
    #[must_use]
    pub fn period(self) -> Period {
        match self {
            Self::NatGatewayHour | Self::LoadBalancerHour | Self::PublicAddressHour => Period::Hour,
            Self::DiskGibibyteMonth | Self::HostedZoneMonth => Period::Month,
            Self::NatGatewayGigabyte
            | Self::LoadBalancerCapacityHour
            | Self::FileSystemGibibyteMonth
            | Self::FileSystemRead
            | Self::FileSystemWrite
            | Self::BucketGigabyteMonth
            | Self::KeyMonth => Period::Use,
        }
    }
}

impl Prices {
    /// No prices, as of a day.
    #[must_use]
    pub fn none(date: Date, currency: Currency) -> Self {
        Self { date, currency, machines: BTreeMap::new(), spot: BTreeMap::new(), units: BTreeMap::new() }
    }

    /// Whether there is no price at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty() && self.spot.is_empty() && self.units.is_empty()
    }

    /// How many days old the prices are.
    #[must_use]
    pub fn age_days(&self, today: Date) -> i64 {
        (today - self.date).whole_days()
    }

    /// Whether the prices are too old to rely on.
    #[must_use]
    pub fn is_stale(&self, today: Date) -> bool {
        self.age_days(today) > DAYS_OF_A_PRICE
    }

    /// A unit price, if it is known.
    #[must_use]
    pub fn unit(&self, unit: UnitPrice) -> Option<Money> {
        self.units.get(unit.key()).copied()
    }

    /// The price of a spot machine: the highest of these availability zones, or of all if none is named.
    #[must_use]
    pub fn spot(&self, instance_type: &str, zones: &[String]) -> Option<Money> {
        let by_zone = self.spot.get(instance_type)?.iter();
        by_zone.filter(|(zone, _)| zones.is_empty() || zones.contains(zone)).map(|(_, price)| *price).max()
    }

    /// The lines of infra.lock.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut text = format!("prices:\n  date: {}\n  currency: {}\n", self.date, self.currency.code());
        let section = |name: &str, indent: &str, entries: &BTreeMap<String, Money>| {
            let lines = entries.iter().map(|(key, price)| format!("{indent}  {key}: \"{price}\"\n"));
            if entries.is_empty() {
                String::new()
            } else {
                format!("{indent}{name}:\n{}", lines.collect::<String>())
            }
        };
        text.push_str(&section("machines", "  ", &self.machines));
        if !self.spot.is_empty() {
            text.push_str("  spot:\n");
            text.extend(self.spot.iter().map(|(name, zones)| section(name, "    ", zones)));
        }
        text.push_str(&section("units", "  ", &self.units));
        text
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::{Currency, Prices};

    #[test]
    fn prices_are_stale_from_the_91st_day_on() {
        let prices = Prices::none(date!(2026 - 01 - 01), Currency::Usd);
        assert!(!prices.is_stale(date!(2026 - 04 - 01)), "they are 90 days old");
        assert!(prices.is_stale(date!(2026 - 04 - 02)), "they are 91 days old");
    }
}
