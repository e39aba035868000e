//! What the cluster may cost.

use super::super::file::BudgetFile;
use super::super::values::Money;
use crate::document::{Fault, Problems};

/// A typing mistake rather than a budget.
const MOST: f64 = 1_000_000.0;

pub(super) fn parse_budget(budget: &BudgetFile, problems: &mut Problems) -> Option<Money> {
    let number = budget.per_hour.value;
    let fault = || {
        Fault::new(format!("perHour is {number}, but must be more than 0 and at most 1000000"))
            .help("write what an hour may cost in US dollars, as 60 or 2.5; without a limit, remove budget")
    };
    // The shortest text that means this number is what was written.
    let amount = Some(number).filter(|number| *number > 0.0 && *number <= MOST);
    let amount = amount.and_then(|number| number.to_string().parse::<Money>().ok());
    problems.take(budget.per_hour.position, amount.ok_or_else(fault))
}
