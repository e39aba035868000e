//! Hosted zones and the records in them.

use aws_sdk_route53::types::{
    AliasTarget, Change, ChangeAction, ChangeBatch, ChangeStatus, ResourceRecordSet, RrType,
};

use super::actions;
use super::{AwsError, Clients};

/// A hosted zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostedZone {
    /// The id of the hosted zone, without a path.
    pub id: String,
    /// The name of the hosted zone, without a dot at the end.
    pub name: String,
    /// Whether only VPCs can see the hosted zone.
    pub private: bool,
}

impl HostedZone {
    /// Whether a name is that of the hosted zone or below it.
    #[must_use]
    pub(crate) fn can_hold(&self, name: &str) -> bool {
        let (name, zone) = (name.to_ascii_lowercase(), self.name.to_ascii_lowercase());
        name == zone || name.strip_suffix(&zone).is_some_and(|rest| rest.ends_with('.'))
    }
}

/// A record that points a name at something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AddressRecord {
    /// `A`, `AAAA` or `CNAME`.
    pub kind: String,
    /// The name it is an alias of, and the hosted zone of that name.
    pub alias: Option<Alias>,
    /// The values of the record, if it is no alias.
    pub values: Vec<String>,
    /// Whether it is one of several for the same name, chosen by a routing policy.
    pub routed: bool,
    whole: ResourceRecordSet,
}

/// What an alias record points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alias {
    /// The load balancer's name, without a dot at the end.
    pub name: String,
    /// The load balancer's own hosted zone.
    pub zone: String,
}

impl Clients {
    /// Every hosted zone that a name could be a record of, the nearest first; among equals public before private.
    pub(crate) async fn hosted_zones_for(&self, name: &str) -> Result<Vec<HostedZone>, AwsError> {
        let mut pages = self.route53.list_hosted_zones().into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let zone = hosted_zone(next.map_err(AwsError::of(actions::ROUTE53_LIST_HOSTED_ZONES))?);
            if zone.can_hold(name) {
                found.push(zone);
            }
        }
        found.sort_by_key(|zone| (std::cmp::Reverse(zone.name.len()), zone.private));
        Ok(found)
    }

    /// The private hosted zones of a name that VPCs of a region see: one name may be in use in several regions.
    pub(crate) async fn private_hosted_zones(
        &self,
        name: &str,
        region: &str,
    ) -> Result<Vec<HostedZone>, AwsError> {
        let mut found = Vec::new();
        let of_name = |zone: &HostedZone| zone.private && zone.name.eq_ignore_ascii_case(name);
        for zone in self.hosted_zones_for(name).await?.into_iter().filter(of_name) {
            let answer = self.route53.get_hosted_zone().id(&zone.id).send().await;
            let answer = match answer.map_err(AwsError::of(actions::ROUTE53_GET_HOSTED_ZONE)) {
                Err(error) if error.has_code("NoSuchHostedZone") => continue,
                answer => answer?,
            };
            let vpcs = answer.vpcs.unwrap_or_default();
            let regions = vpcs.into_iter().filter_map(|vpc| vpc.vpc_region);
            if regions.into_iter().any(|known| known.as_str() == region) {
                found.push(zone);
            }
        }
        Ok(found)
    }

    /// A hosted zone by its id.
    pub(crate) async fn hosted_zone(&self, id: &str) -> Result<Option<HostedZone>, AwsError> {
        let answer = self.route53.get_hosted_zone().id(id).send().await;
        match answer.map_err(AwsError::of(actions::ROUTE53_GET_HOSTED_ZONE)) {
            Ok(answer) => Ok(answer.hosted_zone.map(hosted_zone)),
            Err(error) if error.has_code("NoSuchHostedZone") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The address records of a name.
    pub(crate) async fn address_records(
        &self,
        zone: &str,
        name: &str,
    ) -> Result<Vec<AddressRecord>, AwsError> {
        let call = self.route53.list_resource_record_sets().hosted_zone_id(zone).start_record_name(name);
        let answer = call.send().await.map_err(AwsError::of(actions::ROUTE53_LIST_RESOURCE_RECORD_SETS))?;
        // The list begins at the name and continues after it.
        let mine = answer.resource_record_sets.into_iter().filter(|record| {
            record.name.trim_end_matches('.').eq_ignore_ascii_case(name)
                && matches!(record.r#type, RrType::A | RrType::Aaaa | RrType::Cname)
        });
        Ok(mine.map(address_record).collect())
    }

    /// Writes an alias record that points at a load balancer, over any record of that name; returns the id of the change.
    pub(crate) async fn put_alias(&self, zone: &str, name: &str, alias: &Alias) -> Result<String, AwsError> {
        let target = AliasTarget::builder()
            .dns_name(format!("{}.", alias.name))
            .hosted_zone_id(&alias.zone)
            .evaluate_target_health(false)
            .build()
            .map_err(|error| not_sent(&error))?;
        let record = ResourceRecordSet::builder().name(name).r#type(RrType::A).alias_target(target);
        self.change_record(ChangeAction::Upsert, zone, record.build().map_err(|error| not_sent(&error))?)
            .await
    }

    /// Deletes a record exactly as it was read; returns whether it is gone. It is not if someone else has changed it meanwhile.
    pub(crate) async fn delete_address_record(
        &self,
        zone: &str,
        record: &AddressRecord,
    ) -> Result<bool, AwsError> {
        match self.change_record(ChangeAction::Delete, zone, record.whole.clone()).await {
            Err(error) if is_record_gone(&error) => Ok(true),
            Err(error) if error.has_code("InvalidChangeBatch") => Ok(false),
            other => other.map(|_| true),
        }
    }

    async fn change_record(
        &self,
        action: ChangeAction,
        zone: &str,
        record: ResourceRecordSet,
    ) -> Result<String, AwsError> {
        let change = Change::builder()
            .action(action)
            .resource_record_set(record)
            .build()
            .map_err(|error| not_sent(&error))?;
        let batch = ChangeBatch::builder()
            .comment("infra")
            .changes(change)
            .build()
            .map_err(|error| not_sent(&error))?;
        let call = self.route53.change_resource_record_sets().hosted_zone_id(zone).change_batch(batch);
        let answer = call.send().await.map_err(AwsError::of(actions::ROUTE53_CHANGE_RESOURCE_RECORD_SETS))?;
        Ok(answer.change_info.map(|change| change.id).unwrap_or_default())
    }

    /// Whether every name server has a change.
    pub(crate) async fn is_in_sync(&self, change: &str) -> Result<bool, AwsError> {
        let answer = self.route53.get_change().id(change).send().await;
        let answer = answer.map_err(AwsError::of(actions::ROUTE53_GET_CHANGE))?;
        Ok(answer.change_info.is_some_and(|change| change.status == ChangeStatus::Insync))
    }
}

fn not_sent(error: &aws_sdk_route53::error::BuildError) -> AwsError {
    AwsError::incomplete(actions::ROUTE53_CHANGE_RESOURCE_RECORD_SETS, error.to_string())
}

/// Whether a record could not be deleted because it, or its hosted zone, does not exist: Route 53 has no token that makes a retry the
/// same call.
pub(super) fn is_record_gone(error: &AwsError) -> bool {
    error.has_code("NoSuchHostedZone")
        || (error.has_code("InvalidChangeBatch") && error.says("but it was not found"))
}

fn hosted_zone(zone: aws_sdk_route53::types::HostedZone) -> HostedZone {
    HostedZone {
        id: zone.id.rsplit('/').next().unwrap_or_default().to_owned(),
        name: zone.name.trim_end_matches('.').to_owned(),
        private: zone.config.is_some_and(|config| config.private_zone),
    }
}

fn address_record(record: ResourceRecordSet) -> AddressRecord {
    let alias = record.alias_target.as_ref();
    AddressRecord {
        kind: record.r#type.as_str().to_owned(),
        routed: record.set_identifier.is_some(),
        alias: alias
            .map(|alias| Alias { name: plain_name(&alias.dns_name), zone: alias.hosted_zone_id.clone() }),
        values: record.resource_records().iter().map(|value| value.value.clone()).collect(),
        whole: record,
    }
}

/// The console writes `dualstack.` before the names of load balancers; they point at the same load balancer.
fn plain_name(name: &str) -> String {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.strip_prefix("dualstack.").map(str::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{HostedZone, plain_name};

    #[test]
    fn a_hosted_zone_holds_its_own_name_and_those_below_it() {
        let holds = |zone: &str, name: &str| {
            HostedZone { id: String::new(), name: zone.to_owned(), private: false }.can_hold(name)
        };
        assert!(holds("example.com", "k8s.example.com"));
        assert!(holds("k8s.example.com", "k8s.Example.com"));
        assert!(!holds("s.example.com", "k8s.example.com"));
        assert!(!holds("k8s.example.com", "example.com"));
    }

    #[test]
    fn the_same_load_balancer_has_the_same_name() {
        assert_eq!(
            plain_name("dualstack.API-1.elb.us-west-2.amazonaws.com."),
            "api-1.elb.us-west-2.amazonaws.com"
        );
    }
}
