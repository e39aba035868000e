//! Prices of what a cluster uses, looked up in AWS's price list and in EC2's history of spot prices.
//!
//! A price is taken only if AWS lists exactly one for the product; nothing is computed from other prices.

use std::collections::{BTreeMap, BTreeSet};

use time::OffsetDateTime;

use crate::aws::{AwsError, Cause, Clients, ListedProduct};
use crate::blueprint::{BlockIds, Blueprint, Charge, Currency, Prices, UnitPrice};
use crate::config::values::{Money, Partition};

/// What was looked up, and what could not be.
#[derive(Clone, Debug)]
pub(crate) struct LookedUpPrices {
    /// The prices that AWS listed; none if there is not a single one, or if AWS did not answer for a part that was known.
    pub prices: Option<Prices>,
    /// Why some prices, or all, could not be read.
    pub failures: Vec<String>,
}

/// Where the prices of some units are listed.
struct Listing {
    service: &'static str,
    attributes: &'static [(&'static str, &'static str)],
    /// Whether the products are listed by region.
    is_regional: bool,
    units: &'static [Listed],
}

/// The product that has a unit price, among those of a listing.
struct Listed {
    unit: UnitPrice,
    /// The usage type without the region's prefix.
    usage: &'static str,
    /// An attribute that distinguishes products with the same usage type.
    attribute: Option<(&'static str, &'static str)>,
}

const fn listed(unit: UnitPrice, usage: &'static str) -> Listed {
    Listed { unit, usage, attribute: None }
}

/// Service codes, attributes and usage types of the price list. Those of EFS are also in its user guide, under "Understanding billing and
/// usage reports".
const LISTINGS: [Listing; 8] = [
    Listing {
        service: "AmazonEC2",
        attributes: &[("productFamily", "NAT Gateway")],
        is_regional: true,
        units: &[
            listed(UnitPrice::NatGatewayHour, "NatGateway-Hours"),
            listed(UnitPrice::NatGatewayGigabyte, "NatGateway-Bytes"),
        ],
    },
    Listing {
        service: "AWSELB",
        attributes: &[("productFamily", "Load Balancer-Network")],
        is_regional: true,
        units: &[
            listed(UnitPrice::LoadBalancerHour, "LoadBalancerUsage"),
            listed(UnitPrice::LoadBalancerCapacityHour, "LCUUsage"),
        ],
    },
    Listing {
        service: "AmazonVPC",
        attributes: &[("group", "VPCPublicIPv4Address")],
        is_regional: true,
        units: &[listed(UnitPrice::PublicAddressHour, "PublicIPv4:InUseAddress")],
    },
    Listing {
        service: "AmazonEC2",
        attributes: &[("productFamily", "Storage"), ("volumeApiName", "gp3")],
        is_regional: true,
        units: &[listed(UnitPrice::DiskGibibyteMonth, "EBS:VolumeUsage.gp3")],
    },
    Listing {
        service: "AmazonRoute53",
        attributes: &[("productFamily", "DNS Zone")],
        is_regional: false,
        units: &[listed(UnitPrice::HostedZoneMonth, "HostedZone")],
    },
    Listing {
        service: "AmazonEFS",
        attributes: &[],
        is_regional: true,
        units: &[
            listed(UnitPrice::FileSystemGibibyteMonth, "TimedStorage-ByteHrs"),
            Listed {
                unit: UnitPrice::FileSystemRead,
                usage: "ETDataAccess-Bytes",
                attribute: Some(("accessType", "Read")),
            },
            Listed {
                unit: UnitPrice::FileSystemWrite,
                usage: "ETDataAccess-Bytes",
                attribute: Some(("accessType", "Write")),
            },
        ],
    },
    Listing {
        service: "AmazonS3",
        attributes: &[("productFamily", "Storage"), ("volumeType", "Standard")],
        is_regional: true,
        units: &[listed(UnitPrice::BucketGigabyteMonth, "TimedStorage-ByteHrs")],
    },
    Listing {
        service: "awskms",
        attributes: &[("productFamily", "Encryption Key")],
        is_regional: true,
        units: &[listed(UnitPrice::KeyMonth, "KMS-Keys")],
    },
];

/// The region of a partition in which the price list answers; GovCloud has none, and its credentials are not valid elsewhere.
fn price_list_region(partition: Partition) -> Option<&'static str> {
    match partition {
        Partition::Aws => Some("us-east-1"),
        Partition::China => Some("cn-northwest-1"),
        Partition::UsGovernment => None,
    }
}

/// Looks up the price of everything that a cluster uses, and of every type of machine whose price was known before: such machines may still
/// run. Fails only if AWS does not accept the credentials.
pub(crate) async fn look_up_prices(
    clients: &Clients,
    blueprint: &Blueprint,
    known: Option<&Prices>,
    now: OffsetDateTime,
) -> Result<LookedUpPrices, AwsError> {
    let partition = blueprint.cluster.region.partition();
    let mut prices = Prices::none(now.date(), Currency::of(partition));
    let mut failures = Vec::new();
    let list_is_read = match price_list_region(partition) {
        None => {
            failures.push(
                "AWS's price list does not answer in GovCloud, so that only spot prices are known there"
                    .to_owned(),
            );
            true
        }
        Some(region) => {
            let list =
                PriceList { clients: clients.in_region(region), blueprint, known, currency: prices.currency };
            note_failure(
                list.read_into(&mut prices).await,
                "AWS's price list could not be read",
                &mut failures,
            )?
        }
    };
    let read = read_spot_prices(clients, blueprint, known, now, &mut prices).await;
    // Who may not read spot prices gets none from the next lookup either: the others need not wait for them.
    let is_permanent = matches!(&read, Err(error) if error.is_denied()) && !prices.is_empty();
    let what = "spot prices could not be read, so that spot machines have no price of today";
    let spot_is_read = note_failure(read, what, &mut failures)?;
    // All prices have one day, so what was known stays as a whole when a part of it cannot be read again.
    let loses = known.is_some_and(|known| {
        let lists = !known.machines.is_empty() || !known.units.is_empty();
        (lists && !list_is_read) || (!known.spot.is_empty() && !spot_is_read && !is_permanent)
    });
    if let Some(known) = known.filter(|_| loses) {
        failures.push(format!(
            "infra.lock keeps its prices of {}, since some could not be read again",
            known.date
        ));
        return Ok(LookedUpPrices { prices: None, failures });
    }
    Ok(LookedUpPrices { prices: Some(prices).filter(|prices| !prices.is_empty()), failures })
}

/// Whether something was read; a failure is noted, unless AWS does not accept the credentials.
fn note_failure(
    read: Result<(), AwsError>,
    what: &str,
    failures: &mut Vec<String>,
) -> Result<bool, AwsError> {
    match read {
        Ok(()) => Ok(true),
        Err(error) if error.cause == Cause::Credentials => Err(error),
        Err(error) => {
            let allow =
                if error.is_denied() { format!("; allow {}", error.operation) } else { String::new() };
            failures.push(format!("{what}: {error}{allow}"));
            Ok(false)
        }
    }
}

/// The price list of a partition.
struct PriceList<'a> {
    clients: Clients,
    blueprint: &'a Blueprint,
    known: Option<&'a Prices>,
    currency: Currency,
}

impl PriceList<'_> {
    async fn read_into(&self, prices: &mut Prices) -> Result<(), AwsError> {
        let region = self.blueprint.cluster.region.as_str();
        for name in machine_types(self.blueprint, self.known) {
            let products = self.clients.products("AmazonEC2", &machine_attributes(region, &name)).await?;
            let on_demand = products.iter().filter(|product| is_on_demand(product));
            // Nothing is free: where AWS sells machines in blocks alone, their hours are listed with 0.
            if let Some(price) = self.only_price(on_demand).filter(|price| *price != Money::ZERO) {
                prices.machines.insert(name, price);
            }
        }
        let wanted = wanted_units(self.blueprint);
        for listing in &LISTINGS {
            if listing.units.iter().all(|listed| !wanted.contains(&listed.unit)) {
                continue;
            }
            let mut attributes = listing.attributes.to_vec();
            if listing.is_regional {
                attributes.push(("regionCode", region));
            }
            let products = self.clients.products(listing.service, &attributes).await?;
            for listed in listing.units.iter().filter(|listed| wanted.contains(&listed.unit)) {
                let matching = products.iter().filter(|product| listed.is_of(product, region));
                if let Some(price) = self.only_price(matching) {
                    prices.units.insert(listed.unit.key().to_owned(), price);
                }
            }
        }
        Ok(())
    }

    /// The price of the first unit, if all of these products have the same.
    fn only_price<'a>(&self, products: impl Iterator<Item = &'a ListedProduct>) -> Option<Money> {
        let first = |product: &'a ListedProduct| {
            product.prices.iter().filter(|price| matches!(price.from.as_str(), "0" | ""))
        };
        let amounts = products.flat_map(first).filter_map(|price| price.per_unit.get(self.currency.code()));
        let amounts: Option<BTreeSet<Money>> = amounts.map(|text| text.parse().ok()).collect();
        let amounts = amounts?;
        if amounts.len() == 1 { amounts.into_iter().next() } else { None }
    }
}

impl Listed {
    /// Whether a product is this one: its usage type is ours, with at most the region's prefix before it (`USW2-`, of KMS `us-west-2-`).
    fn is_of(&self, product: &ListedProduct, region: &str) -> bool {
        let attribute = |name: &str| product.attributes.get(name).map_or("", String::as_str);
        let has_usage = attribute("usagetype").strip_suffix(self.usage).is_some_and(|prefix| {
            let prefix = prefix.strip_suffix('-').unwrap_or(if prefix.is_empty() { "" } else { "-" });
            prefix == region || !prefix.contains('-')
        });
        has_usage && self.attribute.is_none_or(|(name, value)| attribute(name) == value)
    }
}

/// A machine with Linux, on shared hardware, without software that is paid for, and outside of reservations.
fn machine_attributes<'a>(region: &'a str, name: &'a str) -> [(&'a str, &'a str); 6] {
    [
        ("instanceType", name),
        ("regionCode", region),
        ("operatingSystem", "Linux"),
        ("tenancy", "Shared"),
        ("preInstalledSw", "NA"),
        ("capacitystatus", "Used"),
    ]
}

/// Whether the machine is not one of a capacity block, whose hours are listed beside those on demand. Not every product says for which market it is.
fn is_on_demand(product: &ListedProduct) -> bool {
    let is = |name: &str, value: &str| product.attributes.get(name).is_none_or(|found| found == value);
    is("marketoption", "OnDemand") && is("operation", "RunInstances")
}

/// Every type of machine, of pools without machines too: they may grow.
fn machine_types(blueprint: &Blueprint, known: Option<&Prices>) -> BTreeSet<String> {
    let charges = blueprint.largest_items(&BlockIds::new()).into_iter().map(|item| item.charge);
    let of_machines = charges.filter_map(|charge| match charge {
        Charge::Machine(machine) => Some(machine.types),
        Charge::Units(..) | Charge::Use | Charge::Prepaid => None,
    });
    let of_pools =
        blueprint.cluster.pools.iter().flat_map(|pool| &pool.instance_types).map(ToString::to_string);
    let of_lock = known.into_iter().flat_map(|known| known.machines.keys().cloned());
    of_machines.flatten().chain(of_pools).chain(of_lock).collect()
}

fn wanted_units(blueprint: &Blueprint) -> BTreeSet<UnitPrice> {
    let charges = blueprint.largest_items(&BlockIds::new()).into_iter().map(|item| item.charge);
    let of_items = charges.filter_map(|charge| match charge {
        Charge::Units(unit, _) => Some(unit),
        Charge::Machine(_) | Charge::Use | Charge::Prepaid => None,
    });
    of_items.chain(blueprint.used_units()).collect()
}

async fn read_spot_prices(
    clients: &Clients,
    blueprint: &Blueprint,
    known: Option<&Prices>,
    now: OffsetDateTime,
    prices: &mut Prices,
) -> Result<(), AwsError> {
    let known = || known.into_iter().flat_map(|known| &known.spot);
    let spot_pools = || blueprint.cluster.pools.iter().filter(|pool| pool.spot);
    let types: BTreeSet<String> = spot_pools()
        .flat_map(|pool| &pool.instance_types)
        .map(ToString::to_string)
        .chain(known().map(|(name, _)| name.clone()))
        .collect();
    let zones: BTreeSet<String> = spot_pools()
        .flat_map(|pool| &pool.availability_zones)
        .map(ToString::to_string)
        .chain(known().flat_map(|(_, zones)| zones.keys().cloned()))
        .collect();
    if types.is_empty() {
        return Ok(());
    }
    let (types, zones): (Vec<_>, Vec<_>) = (types.into_iter().collect(), zones.into_iter().collect());
    let mut spot: BTreeMap<String, BTreeMap<String, Money>> = BTreeMap::new();
    // The oldest comes first, so that the newest stays.
    for found in clients.spot_prices(&types, &zones, now).await? {
        if let Ok(price) = found.price.parse() {
            spot.entry(found.instance_type).or_default().insert(found.zone, price);
        }
    }
    prices.spot = spot;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LISTINGS, Listed, is_on_demand, price_list_region};
    use crate::aws::ListedProduct;
    use crate::blueprint::UnitPrice;
    use crate::config::values::Partition;

    fn listed(unit: UnitPrice) -> Option<&'static Listed> {
        LISTINGS.iter().flat_map(|listing| listing.units).find(|listed| listed.unit == unit)
    }

    fn is_of(unit: UnitPrice, usage: &str) -> bool {
        let attributes = [("usagetype".to_owned(), usage.to_owned())].into();
        let product = ListedProduct { attributes, prices: Vec::new() };
        listed(unit).is_some_and(|listed| listed.is_of(&product, "us-west-2"))
    }

    #[test]
    fn a_usage_type_may_have_the_regions_prefix_and_no_other() {
        assert!(is_of(UnitPrice::LoadBalancerHour, "USW2-LoadBalancerUsage"));
        assert!(is_of(UnitPrice::LoadBalancerHour, "LoadBalancerUsage"), "us-east-1 has no prefix");
        assert!(is_of(UnitPrice::KeyMonth, "us-west-2-KMS-Keys"));
        for (unit, other) in [
            (UnitPrice::LoadBalancerHour, "USW2-TS-LoadBalancerUsage"),
            (UnitPrice::LoadBalancerHour, "OutpostsLoadBalancerUsage"),
            (UnitPrice::NatGatewayHour, "USW2-RegionalNatGateway-Hours"),
            (UnitPrice::FileSystemGibibyteMonth, "USW2-IATimedStorage-ByteHrs"),
            (UnitPrice::FileSystemGibibyteMonth, "USW2-TimedStorage-Z-ByteHrs"),
            (UnitPrice::PublicAddressHour, "USW2-PublicIPv4:IdleAddress"),
        ] {
            assert!(!is_of(unit, other), "{other}");
        }
    }

    #[test]
    fn hours_of_a_capacity_block_are_none_on_demand_by_either_attribute() {
        let is = |attributes: &[(&str, &str)]| {
            let attributes = attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            is_on_demand(&ListedProduct { attributes: attributes.collect(), prices: Vec::new() })
        };
        let (market, operation) = (("marketoption", "OnDemand"), ("operation", "RunInstances"));
        assert!(is(&[market, operation]) && is(&[market]) && is(&[operation]) && is(&[]));
        assert!(!is(&[("marketoption", "CapacityBlock"), operation]));
        assert!(!is(&[market, ("operation", "RunInstances:0g00:CB")]));
    }

    #[test]
    fn the_price_list_answers_in_one_region_of_a_partition_or_in_none() {
        assert_eq!(price_list_region(Partition::Aws), Some("us-east-1"));
        assert_eq!(price_list_region(Partition::China), Some("cn-northwest-1"));
        assert_eq!(price_list_region(Partition::UsGovernment), None);
    }
}
