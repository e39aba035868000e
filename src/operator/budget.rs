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
        "the cluster may grow to {sum}/h, and budget.perHour is {limit}: {}{}",
        items.join(", "),
        remarks.iter().map(|remark| format!(" ({remark})")).collect::<Vec<_>>().concat()
    )]
    Exceeded {
        /// The cost of an hour at full size, rounded up: more than the budget, however little.
        sum: String,
        /// The budget.
        limit: String,
        /// The dearest items.
        items: Vec<String>,
        /// What is not counted, and how old the prices are if they are too old to rely on.
        remarks: Vec<String>,
        /// What may lower the sum without a change of the cluster.
        look_ups: Vec<String>,
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

fn still_too_much(look_ups: &[String]) -> Option<String> {
    (!look_ups.is_empty()).then(|| "if it is still too much, ".to_owned())
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
            Self::Exceeded { look_ups, .. } => {
                let first: String =
                    look_ups.iter().map(|text| format!("{text}; ")).chain(still_too_much(look_ups)).collect();
                format!(
                    "{first}lower maxCount of a pool or raise budget.perHour in cluster.yaml; `--over-budget` applies it all the same"
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
    let old_prices = describe_old_prices(prices, today);
    if cost.per_hour() > limit {
        let at_least = if cost.missing.is_empty() { "" } else { "at least " };
        return Err(BudgetError::Exceeded {
            sum: format!("{at_least}{}", currency.exact(cost.per_hour().rounded_up(2))),
            limit: limit_text,
            items: dearest(&items, prices),
            remarks: describe_prepaid(&cost).into_iter().chain(old_prices.clone()).collect(),
            look_ups: describe_unread(blueprint, blocks)
                .into_iter()
                .chain(old_prices.map(|_| format!("{HOW_TO_GET_PRICES} again")))
                .collect(),
        });
    }
    if !cost.missing.is_empty() {
        return Err(BudgetError::MissingPrices {
            limit: limit_text,
            missing: cost.missing.into_iter().collect(),
            old_prices,
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

/// The machines that are paid in advance.
fn describe_prepaid(cost: &Cost) -> Option<String> {
    let machines = count_of(cost.prepaid_machines, "machine");
    (cost.prepaid_machines > 0)
        .then(|| format!("not counted: {machines} in a capacity block, paid in advance"))
}

/// How the reservations are read that may be capacity blocks, and are none as far as infra.lock knows.
fn describe_unread(blueprint: &Blueprint, blocks: &BlockIds) -> Option<String> {
    let pools = blueprint.cluster.pools.iter().filter(|pool| pool.may_have_block());
    let ids = pools.filter_map(|pool| pool.capacity_reservation.as_ref()).map(ToString::to_string);
    let unread: Vec<String> = ids.filter(|id| !blocks.contains(id)).collect();
    let first = unread.first()?;
    Some(format!("if {first} is a capacity block, `infra lock` writes that down, and it is not counted"))
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
