//! A cost with the day of its prices, for people and programs.

use schemars::JsonSchema;
use serde::Serialize;
use time::Date;

use super::cost::Cost;
use super::prices::{Currency, Prices};
use crate::config::values::Money;
use crate::plural::count_of;

/// What something costs, by the prices in infra.lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostSummary {
    /// The cost of an hour, as decimal text.
    pub per_hour: Money,
    /// The cost of a month of 730 hours, as decimal text.
    pub per_month: Money,
    /// The currency of both.
    pub currency: Currency,
    /// The day on which AWS listed the prices (YYYY-MM-DD).
    pub prices_of: String,
    /// Whether the prices are more than 90 days old.
    pub stale: bool,
    /// What has no known price and is not in the sums, by name.
    pub missing: Vec<String>,
    /// How many machines are not in the sums because they are in a capacity block, which is paid in advance.
    pub prepaid_machines: u32,
}

impl CostSummary {
    /// A cost with the day of its prices.
    #[must_use]
    pub fn new(cost: &Cost, prices: &Prices, today: Date) -> Self {
        Self {
            per_hour: cost.per_hour().rounded(6),
            per_month: cost.per_month().rounded(6),
            currency: prices.currency,
            prices_of: prices.date.to_string(),
            stale: prices.is_stale(today),
            missing: cost.missing.iter().cloned().collect(),
            prepaid_machines: cost.prepaid_machines,
        }
    }

    /// The cost of an hour: `$3.12/h`, or `at least $3.12/h` if something has no price.
    #[must_use]
    pub fn hourly(&self) -> String {
        let at_least = if self.missing.is_empty() { "" } else { "at least " };
        format!("{at_least}{}/h", self.currency.sum(self.per_hour))
    }

    /// Where the figures come from, and what is not in them.
    #[must_use]
    pub fn basis(&self) -> String {
        let mut text = format!("prices of {}", self.prices_of);
        if self.stale {
            text.push_str(", more than 90 days old");
        }
        if !self.missing.is_empty() {
            text.push_str("; no price: ");
            text.push_str(&self.missing.join(", "));
        }
        if self.prepaid_machines > 0 {
            text.push_str("; not counted: ");
            text.push_str(&count_of(self.prepaid_machines, "machine"));
            text.push_str(" in a capacity block, paid in advance");
        }
        text
    }
}
