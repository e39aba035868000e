//! Region, availability zones and KMS key: whether they belong together.

use super::super::file::ClusterFile;
use super::super::values::{AvailabilityZone, KmsKeyArn, Region};
use crate::document::{At, Fault, Problems};

/// The location of a cluster, as far as it is valid.
pub(super) struct Location {
    pub(super) region: Option<Region>,
    pub(super) availability_zones: Option<Vec<AvailabilityZone>>,
    kms_key: Option<KmsKeyArn>,
}

/// A location with nothing missing.
pub(super) struct CompleteLocation {
    pub(super) region: Region,
    pub(super) availability_zones: Vec<AvailabilityZone>,
    pub(super) kms_key: KmsKeyArn,
}

impl Location {
    pub(super) fn complete(self) -> Option<CompleteLocation> {
        Some(CompleteLocation {
            region: self.region?,
            availability_zones: self.availability_zones?,
            kms_key: self.kms_key?,
        })
    }
}

pub(super) fn build_location(file: &ClusterFile, problems: &mut Problems) -> Location {
    let region: Option<Region> = problems.parse(&file.region);
    let availability_zones = parse_availability_zones(&file.availability_zones, region.as_ref(), problems);
    let kms_key: Option<KmsKeyArn> = problems.parse(&file.kms_key_arn);
    if let (Some(region), Some(kms_key)) = (&region, &kms_key) {
        problems.take(file.kms_key_arn.position, kms_key.check_region(region));
    }
    Location { region, availability_zones, kms_key }
}

/// The availability zones of a list, if all of them are in the region and none is named twice.
fn parse_availability_zones(
    list: &At<Vec<At<String>>>,
    region: Option<&Region>,
    problems: &mut Problems,
) -> Option<Vec<AvailabilityZone>> {
    if list.value.is_empty() {
        problems.add(
            list.position,
            Fault::new("availabilityZones is empty")
                .help("name at least one availability zone of the region"),
        );
        return None;
    }
    let zones: Vec<At<AvailabilityZone>> = problems.parse_all(&list.value);
    let all_parsed = zones.len() == list.value.len();
    let mut good = Vec::new();
    for zone in zones {
        match region {
            Some(region) if !zone.value.is_in(region) => {
                let fault = Fault::new(format!("availability zone {} is not in region {region}", zone.value));
                problems.add(
                    zone.position,
                    fault.help(format!("availability zones of {region} are {region}a, {region}b and so on")),
                );
            }
            _ if good.contains(&zone.value) => {
                problems.add(
                    zone.position,
                    Fault::new(format!("availability zone {} is named twice", zone.value)),
                );
            }
            _ => good.push(zone.value),
        }
    }
    (all_parsed && good.len() == list.value.len()).then_some(good)
}
