//! Prices of a command: from infra.lock, or looked up in AWS and kept there.

use time::{Date, OffsetDateTime};

use crate::aws::Clients;
use crate::blueprint::{BlockIds, Blueprint, Prices};
use crate::cli::deployment::read_lock;
use crate::cli::session::Session;
use crate::deploy::ImageLock;
use crate::operator::{
    BudgetError, HOW_TO_GET_PRICES, LookedUpPrices, budget_by_old_prices, check_budget, look_up_prices,
};
use crate::outcome::Explain as _;
use crate::project::Project;

/// Today's date.
pub(in crate::cli) fn today() -> Date {
    OffsetDateTime::now_utc().date()
}

/// infra.lock, for a command that also works without it: an invalid file is a warning.
pub(in crate::cli) fn usable_lock(project: &Project, session: &Session) -> Option<ImageLock> {
    match read_lock(project) {
        Ok(lock) => lock,
        Err(error) => {
            session.printer.warning(format_args!("costs are not known: {error:#}"));
            None
        }
    }
}

/// The lock of the asset directory, whichever cluster it belongs to, if there is one that can be read.
pub(in crate::cli) fn any_lock(session: &Session) -> Option<ImageLock> {
    let (path, text) = session.assets.read_lock().ok()??;
    ImageLock::parse_any(&path, &text).ok()
}

/// Looks up prices in AWS; what could not be read is a warning.
pub(in crate::cli) async fn look_up(
    clients: &Clients,
    blueprint: &Blueprint,
    known: Option<&Prices>,
    session: &Session,
) -> anyhow::Result<Option<Prices>> {
    let LookedUpPrices { prices, failures } =
        look_up_prices(clients, blueprint, known, OffsetDateTime::now_utc()).await?;
    for failure in &failures {
        session.printer.warning(failure.as_str());
    }
    Ok(prices)
}

/// Prints how prices come into infra.lock.
pub(in crate::cli) fn print_how_to_get_prices(session: &Session) {
    session.printer.note(format_args!("infra.lock has no prices; {HOW_TO_GET_PRICES}"));
}

/// Refuses a cluster that may cost more than its budget, unless the user insists.
pub(in crate::cli) fn require_budget(
    blueprint: &Blueprint,
    lock: Option<&ImageLock>,
    insists: bool,
    session: &Session,
) -> Result<(), BudgetError> {
    let (prices, blocks) = budget_facts(lock);
    match check_budget(blueprint, &blocks, prices, today()) {
        Err(error) if insists => {
            session.printer.warning(format_args!("{error}; --over-budget applies it all the same"));
            Ok(())
        }
        Ok(()) => {
            if let Some(notice) = budget_by_old_prices(blueprint, prices, today()) {
                session.printer.warning(notice);
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// What to say of a budget in a command that applies nothing; nothing where prices are missing, which `up` says.
pub(in crate::cli) fn budget_notice(blueprint: &Blueprint, lock: Option<&ImageLock>) -> Option<String> {
    let (prices, blocks) = budget_facts(lock);
    let Err(error) = check_budget(blueprint, &blocks, prices, today()) else {
        return budget_by_old_prices(blueprint, prices, today());
    };
    if error.is_unknown() && prices.is_none() {
        return None;
    }
    let help = error.help().unwrap_or_default();
    Some(format!("{error}; {help}"))
}

/// What of infra.lock a budget is compared with.
fn budget_facts(lock: Option<&ImageLock>) -> (Option<&Prices>, BlockIds) {
    let prices = lock.and_then(|lock| lock.prices.as_ref());
    (prices, lock.map(ImageLock::block_ids).unwrap_or_default())
}
