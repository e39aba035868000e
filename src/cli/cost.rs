//! `infra cost`: what AWS will bill for.

use std::collections::BTreeMap;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::aws_access::{AwsOptions, block_on};
use super::exit::Exit;
use super::printer::{Output, columns};
use super::session::Session;
use crate::blueprint::BilledItem;
use crate::config::values::S3Uri;
use crate::credentials::Credentials;
use crate::deploy::{DesiredStack, ImageChoice, Inputs, LiveCluster, s3_uri_in_use};
use crate::operator::{CostEstimate, estimate_costs};
use crate::project::Project;

/// List what AWS will bill for, by stack; no network and no AWS account are needed
///
/// Lists kinds and counts, not prices: those depend on region, contract and, for spot machines, the hour.
#[derive(Args, Debug)]
pub(super) struct CostArguments {
    /// Also have AWS fill in its calculator, one link per stack
    #[arg(long)]
    online: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

/// What AWS will bill for.
#[derive(Serialize, JsonSchema)]
pub(super) struct CostDocument {
    /// The region of the cluster.
    region: String,
    /// Each kind of resource that costs money.
    items: Vec<BilledItem>,
    /// With `--online`, a link to AWS's calculator by stack.
    #[schemars(with = "BTreeMap<String, String>")]
    calculator: Map<String, Value>,
}

pub(super) fn run(arguments: &CostArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project_quietly()?;
    let blueprint = &project.blueprint;
    let items = blueprint.billed_items();
    let estimates = if arguments.online { ask_calculator(arguments, &project, session)? } else { Vec::new() };
    if session.output == Output::Json {
        let link = |estimate: CostEstimate| Some((estimate.stack, Value::String(estimate.link.ok()?)));
        let calculator = estimates.into_iter().filter_map(link).collect();
        let region = blueprint.cluster.region.to_string();
        session.printer.json(&CostDocument { region, items, calculator })?;
        return Ok(Exit::Done);
    }
    let header = ["STACK", "COUNT", "WHAT", "NOTE"].map(str::to_owned);
    let lines = items.into_iter().map(|item| [item.stack, item.count.to_string(), item.what, item.note]);
    session.printer.data(columns(&std::iter::once(header).chain(lines).collect::<Vec<_>>()))?;
    for estimate in estimates {
        match estimate.link {
            Ok(link) => session.printer.data(format_args!("{}: {link}", estimate.stack))?,
            Err(reason) => {
                session.printer.note(format_args!("{}: no calculator link: {reason}", estimate.stack));
            }
        }
    }
    Ok(Exit::Done)
}

fn ask_calculator(
    arguments: &CostArguments,
    project: &Project,
    session: &Session,
) -> anyhow::Result<Vec<CostEstimate>> {
    let blueprint = &project.blueprint;
    let credentials = Credentials::placeholders(&blueprint.identities);
    let rendered = project.render(&credentials)?;
    session.print_unused_snippets(&rendered);
    block_on(async {
        let clients = arguments.aws.connect(&blueprint.cluster, session).await;
        let live = LiveCluster::read(&clients, &blueprint.cluster.name, Some(&blueprint.cluster)).await?;
        let s3_uri = s3_uri_in_use(&live).or_else(|| blueprint.cluster.s3_uri.clone());
        let inputs = Inputs {
            blueprint,
            credentials: &credentials,
            assets: &rendered.assets,
            s3_uri: s3_uri.unwrap_or_else(S3Uri::placeholder),
            image: ImageChoice::Live,
        };
        let stacks = DesiredStack::with_all_mount_targets(&inputs, &live);
        Ok(estimate_costs(&clients, stacks, &live).await)
    })
}
