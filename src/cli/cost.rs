//! `infra cost`: what AWS will bill for, and at which prices.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::aws_access::{AwsOptions, block_on};
use super::deployment::read_lock;
use super::exit::Exit;
use super::session::Session;
use crate::aws::Clients;
use crate::blueprint::{BilledItem, BlockIds, Blueprint, Cost, CostSummary, Prices, UnitPrice};
use crate::cli::deployment::prices::{look_up, print_how_to_get_prices, today};
use crate::cli::terminal::printer::{Output, align_columns};
use crate::config::values::{Money, S3Uri};
use crate::credentials::Credentials;
use crate::deploy::{DesiredStack, ImageChoice, ImageLock, Inputs, LiveCluster, PoolBlocks, s3_uri_in_use};
use crate::operator::{CostEstimate, estimate_costs};
use crate::project::Project;

/// List what AWS will bill for, by stack, with what an hour and a month cost by the prices in infra.lock; no network and no AWS account are needed
///
/// Prices are those of AWS's price list, before taxes and discounts, and of EC2's spot price history. Of several types or availability
/// zones the highest price counts. What has no price is named and not in the sum; so is what is billed by use. Machines of a capacity
/// block are paid in advance, when you buy the block: they are listed without a price.
#[derive(Args, Debug)]
pub(super) struct CostArguments {
    /// Look up the prices of today, keep them in infra.lock, and have AWS fill in its calculator, one link per stack
    #[arg(long)]
    online: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

/// What AWS will bill for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CostDocument {
    /// The region of the cluster.
    region: String,
    /// Each kind of resource that costs money.
    items: Vec<PricedItem>,
    /// What all items cost; null if infra.lock has no prices.
    total: Option<CostSummary>,
    /// What is billed by use, and is not in the total. Empty if infra.lock has no prices.
    usage: Vec<UsagePrice>,
    /// With `--online`, a link to AWS's calculator by stack.
    #[schemars(with = "BTreeMap<String, String>")]
    calculator: Map<String, Value>,
}

/// One line of the bill, with its price.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PricedItem {
    #[serde(flatten)]
    item: BilledItem,
    /// What an hour of all of them costs, as decimal text; null if the price is not known, or if it is billed by use alone or paid in advance.
    per_hour: Option<Money>,
    /// What a month of 730 hours of all of them costs, as decimal text; null as `perHour`.
    per_month: Option<Money>,
}

/// The price of something that is billed by use.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UsagePrice {
    /// What is billed.
    what: &'static str,
    /// What one unit is.
    unit: &'static str,
    /// The price of a unit, as decimal text; null if it is not known.
    price: Option<Money>,
}

pub(super) fn run(arguments: &CostArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project_quietly()?;
    let lock = read_lock(&project)?;
    let blocks = lock.as_ref().map(ImageLock::block_ids).unwrap_or_default();
    let (prices, estimates) = if arguments.online {
        block_on(Box::pin(ask_aws(arguments, &project, lock, session)))?
    } else {
        (lock.and_then(|lock| lock.prices), Vec::new())
    };
    let bill = Bill::new(&project.blueprint, &blocks, prices.as_ref());
    if session.output == Output::Json {
        session.printer.json(&bill.document(&project.blueprint, estimates))?;
        return Ok(Exit::Done);
    }
    session.printer.data(bill.text())?;
    for estimate in estimates {
        match estimate.link {
            Ok(link) => session.printer.data(format_args!("{}: {link}", estimate.stack))?,
            Err(reason) => {
                session.printer.note(format_args!("{}: no calculator link: {reason}", estimate.stack));
            }
        }
    }
    match &bill.total {
        None if !arguments.online => print_how_to_get_prices(session),
        Some(total) if total.stale && !arguments.online => session.printer.warning(format_args!(
            "the prices are of {}; `infra cost --online` looks them up again",
            total.prices_of
        )),
        _ => {}
    }
    Ok(Exit::Done)
}

/// Looks up prices and keeps them in infra.lock, then has AWS fill in its calculator.
async fn ask_aws(
    arguments: &CostArguments,
    project: &Project,
    lock: Option<ImageLock>,
    session: &Session,
) -> anyhow::Result<(Option<Prices>, Vec<CostEstimate>)> {
    let clients = arguments.aws.connect(&project.blueprint.cluster, session).await;
    let known = lock.as_ref().and_then(|lock| lock.prices.as_ref());
    let found = look_up(&clients, &project.blueprint, known, session).await?;
    let prices = match (lock, found) {
        (Some(lock), Some(prices)) => {
            let lock = ImageLock { prices: Some(prices), ..lock };
            if project.write_lock(&lock.text())? {
                session.printer.note("infra.lock has the prices of today");
            }
            lock.prices
        }
        (None, Some(prices)) => {
            session.printer.note(
                "infra.lock does not exist, so that prices are not kept; `infra lock` writes it with them",
            );
            Some(prices)
        }
        (lock, None) => lock.and_then(|lock| lock.prices),
    };
    Ok((prices, ask_calculator(&clients, project, session).await?))
}

async fn ask_calculator(
    clients: &Clients,
    project: &Project,
    session: &Session,
) -> anyhow::Result<Vec<CostEstimate>> {
    let blueprint = &project.blueprint;
    let credentials = Credentials::placeholders(&blueprint.identities);
    let rendered = project.render(&credentials)?;
    session.print_unused_snippets(&rendered);
    let live = LiveCluster::read(clients, &blueprint.cluster.name, Some(&blueprint.cluster)).await?;
    let s3_uri = s3_uri_in_use(&live).or_else(|| blueprint.cluster.s3_uri.clone());
    let inputs = Inputs {
        blueprint,
        credentials: &credentials,
        assets: &rendered.assets,
        s3_uri: s3_uri.unwrap_or_else(S3Uri::placeholder),
        image: ImageChoice::Live { deep_learning: None },
        blocks: PoolBlocks::default(),
    };
    let stacks = DesiredStack::with_all_mount_targets(&inputs, &live);
    Ok(estimate_costs(clients, stacks, &live).await)
}

/// What a cluster costs as cluster.yaml says.
struct Bill {
    items: Vec<(BilledItem, Option<Cost>)>,
    total: Option<CostSummary>,
    usage: Vec<UsagePrice>,
}

impl Bill {
    fn new(blueprint: &Blueprint, blocks: &BlockIds, prices: Option<&Prices>) -> Self {
        let items = blueprint.billed_items(blocks);
        let total = prices.map(|prices| {
            let cost = Cost::of(items.iter().map(|item| (item.count, &item.charge)), prices);
            CostSummary::new(&cost, prices, today())
        });
        let usage = prices.map(|prices| {
            let price = |unit: UnitPrice| UsagePrice {
                what: unit.what(),
                unit: unit.unit(),
                price: prices.unit(unit),
            };
            blueprint.used_units().into_iter().map(price).collect()
        });
        let cost = |item: &BilledItem| {
            let cost = Cost::of([(item.count, &item.charge)], prices?);
            Some(cost).filter(|cost| cost.per_month() > Money::ZERO)
        };
        let items = items.into_iter().map(|item| (item.clone(), cost(&item))).collect();
        Self { items, total, usage: usage.unwrap_or_default() }
    }

    fn document(self, blueprint: &Blueprint, estimates: Vec<CostEstimate>) -> CostDocument {
        let link = |estimate: CostEstimate| Some((estimate.stack, Value::String(estimate.link.ok()?)));
        let priced = |(item, cost): (BilledItem, Option<Cost>)| PricedItem {
            item,
            per_hour: cost.as_ref().map(|cost| cost.per_hour().rounded(6)),
            per_month: cost.as_ref().map(|cost| cost.per_month().rounded(6)),
        };
        CostDocument {
            region: blueprint.cluster.region.to_string(),
            items: self.items.into_iter().map(priced).collect(),
            total: self.total,
            usage: self.usage,
            calculator: estimates.into_iter().filter_map(link).collect(),
        }
    }

    fn text(&self) -> String {
        let Some(total) = &self.total else {
            let header = ["STACK", "COUNT", "WHAT", "NOTE"].map(str::to_owned);
            let line = |(item, _): &(BilledItem, _)| describe(item);
            return align_columns(
                &std::iter::once(header).chain(self.items.iter().map(line)).collect::<Vec<_>>(),
            );
        };
        let currency = total.currency;
        let header = ["STACK", "COUNT", "WHAT", "PER HOUR", "PER MONTH", "NOTE"].map(str::to_owned);
        let line = |(item, cost): &(BilledItem, Option<Cost>)| {
            let [stack, count, what, note] = describe(item);
            let [hour, month] = match cost {
                Some(cost) => [currency.exact(cost.per_hour().rounded(4)), currency.sum(cost.per_month())],
                None => ["-", "-"].map(str::to_owned),
            };
            [stack, count, what, hour, month, note]
        };
        let mut text =
            align_columns(&std::iter::once(header).chain(self.items.iter().map(line)).collect::<Vec<_>>());
        let month = currency.sum(total.per_month);
        let _ = write!(text, "\ntotal: {}, {month} a month of 730 hours ({})", total.hourly(), total.basis());
        let usage = |usage: &UsagePrice| {
            let price = usage.price.map_or_else(
                || "no price is known".to_owned(),
                |price| format!("{} per {}", currency.exact(price), usage.unit),
            );
            [format!("  {}", usage.what), price]
        };
        let lines: Vec<[String; 2]> = self.usage.iter().map(usage).collect();
        let _ = write!(text, "\nby use, not in the total:\n{}", align_columns(&lines));
        text
    }
}

fn describe(item: &BilledItem) -> [String; 4] {
    [item.stack.clone(), item.count.to_string(), item.what.clone(), item.note.clone()]
}
