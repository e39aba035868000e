//! `infra cost`: what AWS will bill for.

use clap::Args;
use serde_json::json;

use super::Session;
use super::exit::Exit;
use super::printer::{Output, columns};
use crate::blueprint::Blueprint;

/// List what AWS will bill for, by stack; no network and no AWS account are needed
///
/// It names kinds and numbers, not prices: those depend on region, contract and, for spot machines, the hour.
#[derive(Args, Debug)]
pub(super) struct CostArguments {}

pub(super) fn run(_: &CostArguments, session: &Session) -> anyhow::Result<Exit> {
    let blueprint = Blueprint::new(session.assets.load_cluster(&session.printer)?)?;
    let items = blueprint.billed_items();
    if session.output == Output::Json {
        session.printer.json(&json!({ "region": blueprint.cluster.region.as_str(), "items": items }))?;
        return Ok(Exit::Done);
    }
    let header = ["STACK", "COUNT", "WHAT", "NOTE"].map(str::to_owned);
    let lines = items.into_iter().map(|item| [item.stack, item.count.to_string(), item.what, item.note]);
    session.printer.data(columns(&std::iter::once(header).chain(lines).collect::<Vec<_>>()))?;
    Ok(Exit::Done)
}
