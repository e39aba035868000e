//! How long AWS usually takes for a resource, where someone has measured it or AWS documents it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::aws::ResourceStatus;
use crate::document::parse_embedded_table;

static TABLE: LazyLock<BTreeMap<String, Times>> =
    LazyLock::new(|| parse_embedded_table(include_str!("typical_times.yaml")));

/// The times of one type, from and to, in seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Times {
    create: Option<(u32, u32)>,
    delete: Option<(u32, u32)>,
}

/// As `usually 2–3 min`; nothing for what nobody has measured.
pub(super) fn usual_time(kind: &str, status: &ResourceStatus) -> Option<String> {
    let times = TABLE.get(kind)?;
    let (from, to) = match status {
        ResourceStatus::CreateInProgress => times.create,
        ResourceStatus::DeleteInProgress => times.delete,
        _ => None,
    }?;
    Some(in_words(from, to))
}

/// In whole minutes, from the one before to the one after, so that nothing is more exact than it is known.
fn in_words(from: u32, to: u32) -> String {
    match (from / 60, to.div_ceil(60)) {
        (0, to) => format!("usually under {to} min"),
        (from, to) if from == to => format!("usually {to} min"),
        (from, to) => format!("usually {from}–{to} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::{TABLE, in_words, usual_time};

    #[test]
    fn every_row_of_the_table_is_a_range_of_a_type_that_templates_have() {
        let schemas = include_str!("../../check/resource_schemas.json");
        for (kind, times) in TABLE.iter() {
            assert!(schemas.contains(&format!("\"{kind}\"")), "{kind}");
            let ranges = [times.create, times.delete];
            assert!(ranges.iter().flatten().next().is_some(), "{kind}");
            assert!(ranges.into_iter().flatten().all(|(from, to)| from < to), "{kind}");
        }
    }

    #[test]
    fn minutes_are_no_more_exact_than_they_are_known() {
        assert_eq!(in_words(84, 121), "usually 1–3 min");
        assert_eq!(in_words(60, 120), "usually 1–2 min");
        assert_eq!(in_words(0, 60), "usually under 1 min");
        assert_eq!(in_words(120, 120), "usually 2 min");
    }

    #[test]
    fn what_nobody_measured_has_no_time() {
        let time = |kind: &str, status: &str| usual_time(kind, &status.into());
        assert_eq!(
            time("AWS::ElasticLoadBalancingV2::LoadBalancer", "CREATE_IN_PROGRESS").as_deref(),
            Some("usually 2–3 min")
        );
        assert_eq!(time("AWS::ElasticLoadBalancingV2::LoadBalancer", "UPDATE_IN_PROGRESS"), None);
        assert_eq!(
            time("AWS::EC2::NatGateway", "DELETE_IN_PROGRESS").as_deref(),
            Some("usually under 2 min")
        );
        assert_eq!(time("AWS::AutoScaling::AutoScalingGroup", "CREATE_IN_PROGRESS"), None);
    }
}
