//! What a cluster may grow to, compared with what it may cost.

use time::Date;

use crate::blueprint::{BilledItem, BlockIds, Blueprint, Cost, Currency, Prices};
use crate::config::values::Money;
use crate::outcome::{Explain, Outcome};
use crate::plural::count_of;

/// How many of the dearest items are named.
const NAMED_ITEMS: usize = 3;
/// How prices come into infra.lock.
pub(crate) const HOW_TO_GET_PRICES: &str = "`infra lock` and `infra cost --online` look them up";

/// Why a cluster does not fit into its budget, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BudgetError {
    /// The cluster may cost more.
    #[error(
        "the cluster may grow to {sum}/h, and budget.perHour is {limit}: {}{}{}",
        items.join(", "),
        in_brackets(not_counted.as_ref()),
        in_brackets(old_prices.as_ref())
    )]
    Exceeded {
        /// The cost of an hour at full size, rounded up: more than the budget, however little.
        sum: String,
        /// The budget.
        limit: String,
        /// The dearest items.
        items: Vec<String>,
        /// Machines that are paid in advance, if there are any.
        not_counted: Option<String>,
        /// How old the prices are, if they are too old to rely on.
        old_prices: Option<String>,
        /// The reservations that are counted, since nobody has asked AWS yet whether they are capacity blocks.
        reservations: Vec<String>,
    },
    /// There are no prices to compare with.
    #[error("budget.perHour is {limit}, and infra.lock has no prices to compare with")]
    NoPrices {
        /// The budget.
        limit: String,
    },
    /// Some prices are missing.
    #[error(
        "budget.perHour is {limit}, and infra.lock has no price for {}{}",
        missing.join(", "),
        in_brackets(old_prices.as_ref())
    )]
    MissingPrices {
        /// The budget.
        limit: String,
        /// What has no price.
        missing: Vec<String>,
        /// How old the other prices are, if they are too old to rely on.
        old_prices: Option<String>,
    },
}

fn in_brackets(text: Option<&String>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
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
            Self::Exceeded { old_prices, reservations, .. } => {
                let again = old_prices
                    .as_ref()
                    .map(|_| format!("{HOW_TO_GET_PRICES} again; if it is still too much, "));
                let blocks = (!reservations.is_empty()).then(|| {
                    let reservations = reservations.join(", ");
                    format!("if {reservations} is a capacity block, `infra lock` writes that down, and it is not counted; otherwise ")
                });
                format!(
                    "{}{}lower maxCount of a pool or raise budget.perHour in cluster.yaml; `--over-budget` applies it all the same",
                    blocks.unwrap_or_default(),
                    again.unwrap_or_default()
                )
            }
            Self::NoPrices { .. } => format!("{HOW_TO_GET_PRICES}; `--over-budget` applies it without"),
            Self::MissingPrices { .. } => format!(
                "{HOW_TO_GET_PRICES}; if AWS lists none, choose another type, or apply it without a check by `--over-budget`"
            ),
        })
    }

    fn outcome(&self) -> Outcome {
        Outcome::Failed
    }
}

/// Compares a cluster at full size, paid on demand, with its budget, if it has one. Machines of capacity blocks do not count: AWS charged the
/// whole block when it was bought.
pub(crate) fn check_budget(
    blueprint: &Blueprint,
    blocks: &BlockIds,
    prices: Option<&Prices>,
    today: Date,
) -> Result<(), BudgetError> {
    let Some(limit) = blueprint.cluster.budget_per_hour else { return Ok(()) };
    let currency = Currency::of(blueprint.cluster.region.partition());
    let limit_text = currency.exact(limit);
    let Some(prices) = prices else { return Err(BudgetError::NoPrices { limit: limit_text }) };
    let items = blueprint.largest_items(blocks);
    let cost = Cost::of(items.iter().map(|item| (item.count, &item.charge)), prices);
    // What is over the budget without the rest is over it.
    if cost.per_hour() > limit {
        let at_least = if cost.missing.is_empty() { "" } else { "at least " };
        return Err(BudgetError::Exceeded {
            sum: format!("{at_least}{}", currency.exact(cost.per_hour().rounded_up(2))),
            limit: limit_text,
            items: dearest(&items, prices),
            not_counted: (cost.prepaid_machines > 0).then(|| {
                let machines = count_of(cost.prepaid_machines, "machine");
                format!("not counted: {machines} in a capacity block, paid in advance")
            }),
            old_prices: describe_old_prices(prices, today),
            reservations: unread_reservations(blueprint, blocks),
        });
    }
    if !cost.missing.is_empty() {
        return Err(BudgetError::MissingPrices {
            limit: limit_text,
            missing: cost.missing.into_iter().collect(),
            old_prices: describe_old_prices(prices, today),
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

/// The reservations that may be capacity blocks, and are none as far as infra.lock knows.
fn unread_reservations(blueprint: &Blueprint, blocks: &BlockIds) -> Vec<String> {
    let pools = blueprint.cluster.pools.iter().filter(|pool| pool.may_have_block());
    let ids = pools.filter_map(|pool| pool.capacity_reservation.as_ref()).map(ToString::to_string);
    let unread: BlockIds = ids.filter(|id| !blocks.contains(id)).collect();
    unread.into_iter().collect()
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
