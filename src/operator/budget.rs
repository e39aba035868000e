//! What a cluster may grow to, compared with what it may cost.

use time::Date;

use crate::blueprint::{BilledItem, Blueprint, Cost, Currency, Prices};
use crate::config::values::Money;
use crate::outcome::{Explain, Outcome};

/// How many of the dearest items are named.
const NAMED_ITEMS: usize = 3;
/// How prices come into infra.lock.
pub(crate) const HOW_TO_GET_PRICES: &str = "`infra lock` and `infra cost --online` look them up";

/// Why a cluster does not fit into its budget, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BudgetError {
    /// The cluster may cost more.
    #[error(
        "the cluster may grow to {sum}/h, and budget.perHour is {limit}: {}{}",
        items.join(", "),
        old_prices.as_ref().map(|old| format!(" ({old})")).unwrap_or_default()
    )]
    Exceeded {
        /// The cost of an hour at full size.
        sum: String,
        /// The budget.
        limit: String,
        /// The dearest items.
        items: Vec<String>,
        /// How old the prices are, if they are too old to rely on.
        old_prices: Option<String>,
    },
    /// There are no prices to compare with.
    #[error("budget.perHour is {limit}, and infra.lock has no prices to compare with")]
    NoPrices {
        /// The budget.
        limit: String,
    },
    /// Some prices are missing.
    #[error("budget.perHour is {limit}, and infra.lock has no price for {}", missing.join(", "))]
    MissingPrices {
        /// The budget.
        limit: String,
        /// What has no price.
        missing: Vec<String>,
    },
}

impl BudgetError {
    /// Whether it is only not known whether the cluster fits.
    #[must_use]
    pub(crate) fn is_unknown(&self) -> bool {
        !matches!(self, Self::Exceeded { .. })
    }
}

impl Explain for BudgetError {
    fn help(&self) -> Option<String> {
        Some(match self {
            Self::Exceeded { .. } => {
                "lower maxCount of a pool or raise budget.perHour in cluster.yaml; `--over-budget` applies it all the same".to_owned()
            }
            Self::NoPrices { .. } | Self::MissingPrices { .. } => {
                format!("{HOW_TO_GET_PRICES}; `--over-budget` applies it without")
            }
        })
    }

    fn outcome(&self) -> Outcome {
        Outcome::Failed
    }
}

/// Compares a cluster at full size, paid on demand, with its budget, if it has one.
pub(crate) fn check_budget(
    blueprint: &Blueprint,
    prices: Option<&Prices>,
    today: Date,
) -> Result<(), BudgetError> {
    let Some(limit) = blueprint.cluster.budget_per_hour else { return Ok(()) };
    let currency = Currency::of(blueprint.cluster.region.partition());
    let limit_text = currency.exact(limit);
    let Some(prices) = prices else { return Err(BudgetError::NoPrices { limit: limit_text }) };
    let items = blueprint.largest_items();
    let cost = Cost::of(items.iter().map(|item| (item.count, &item.charge)), prices);
    // What is over the budget without the rest is over it.
    if cost.per_hour() > limit {
        let at_least = if cost.missing.is_empty() { "" } else { "at least " };
        return Err(BudgetError::Exceeded {
            sum: format!("{at_least}{}", currency.sum(cost.per_hour())),
            limit: limit_text,
            items: dearest(&items, prices),
            old_prices: describe_old_prices(prices, today),
        });
    }
    if !cost.missing.is_empty() {
        return Err(BudgetError::MissingPrices {
            limit: limit_text,
            missing: cost.missing.into_iter().collect(),
        });
    }
    Ok(())
}

/// What to say of the comparison of a cluster with its budget that relies on old prices.
pub(crate) fn budget_by_old_prices(
    blueprint: &Blueprint,
    prices: Option<&Prices>,
    today: Date,
) -> Option<String> {
    blueprint.cluster.budget_per_hour?;
    let old = describe_old_prices(prices?, today)?;
    Some(format!("budget.perHour is compared with {old}; {HOW_TO_GET_PRICES} again"))
}

fn describe_old_prices(prices: &Prices, today: Date) -> Option<String> {
    prices.is_stale(today).then(|| format!("prices of {}, more than 90 days old", prices.date))
}

fn dearest(items: &[BilledItem], prices: &Prices) -> Vec<String> {
    let cost = |item: &BilledItem| Cost::of([(item.count, &item.charge)], prices).per_hour();
    let mut costs: Vec<(Money, &BilledItem)> = items.iter().map(|item| (cost(item), item)).collect();
    costs.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    let named = costs.into_iter().filter(|(cost, _)| *cost > Money::ZERO).take(NAMED_ITEMS);
    named
        .map(|(cost, item)| {
            let what = item.note.split(',').next().filter(|_| item.what == "machine").unwrap_or(&item.what);
            format!("{} {} × {what} {}", item.stack, item.count, prices.currency.sum(cost))
        })
        .collect()
}
