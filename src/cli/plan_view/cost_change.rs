//! What a plan changes in the cost of a cluster.

use schemars::JsonSchema;
use serde::Serialize;

use crate::blueprint::CostSummary;

/// What the cluster costs before and after `infra up`, by the prices in infra.lock.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct CostChange {
    /// What the live cluster costs.
    pub(in super::super) before: CostSummary,
    /// What the cluster costs as cluster.yaml says.
    pub(in super::super) after: CostSummary,
}

impl CostChange {
    /// The change in one line: `+$41.96/h; cluster $3.12 → $45.08/h`.
    pub(super) fn text(&self) -> String {
        let Self { before, after } = self;
        let basis = after.basis();
        // What has no price may change too, by nobody knows how much.
        if !before.missing.is_empty() || !after.missing.is_empty() {
            return format!("Cost: cluster {} → {} ({basis})", before.hourly(), after.hourly());
        }
        if before.per_hour == after.per_hour {
            return format!("Cost: {}, unchanged ({basis})", after.hourly());
        }
        let change = after.per_hour.rounded(2) - before.per_hour.rounded(2);
        let sign = if change.is_negative() { "" } else { "+" };
        let (change, from) = (after.currency.sum(change), before.currency.sum(before.per_hour));
        format!("Cost: {sign}{change}/h; cluster {from} → {} ({basis})", after.hourly())
    }
}

#[cfg(test)]
mod tests {
    use super::CostChange;
    use crate::blueprint::{CostSummary, Currency};

    fn summary(per_hour: &str, missing: &[&str]) -> CostSummary {
        CostSummary {
            per_hour: per_hour.parse().unwrap_or_default(),
            per_month: "1".parse().unwrap_or_default(),
            currency: Currency::Usd,
            prices_of: "2026-11-14".to_owned(),
            stale: false,
            missing: missing.iter().map(|name| (*name).to_owned()).collect(),
            prepaid_machines: 0,
        }
    }

    #[test]
    fn the_change_is_what_both_figures_differ_by_as_they_are_shown() {
        let text = |before, after| CostChange { before, after }.text();
        assert_eq!(
            text(summary("3.1204", &[]), summary("45.0796", &[])),
            "Cost: +$41.96/h; cluster $3.12 → $45.08/h (prices of 2026-11-14)"
        );
        assert_eq!(
            text(summary("45.0796", &[]), summary("1000.5", &["p9.48xlarge"])),
            "Cost: cluster $45.08/h → at least $1,000.50/h (prices of 2026-11-14; no price: p9.48xlarge)"
        );
        assert_eq!(
            text(summary("3", &[]), summary("1.5", &[])),
            "Cost: -$1.50/h; cluster $3.00 → $1.50/h (prices of 2026-11-14)"
        );
        let block = CostSummary { prepaid_machines: 2, ..summary("3.1", &[]) };
        assert_eq!(
            text(summary("3", &[]), block),
            "Cost: +$0.10/h; cluster $3.00 → $3.10/h (prices of 2026-11-14; not counted: 2 machines in a capacity block, paid in advance)"
        );
        let stale = CostSummary { stale: true, ..summary("3", &[]) };
        assert_eq!(
            text(stale.clone(), stale),
            "Cost: $3.00/h, unchanged (prices of 2026-11-14, more than 90 days old)"
        );
    }
}
