//! Links to AWS's calculator, filled in from our templates.

use crate::aws::{Clients, TemplateSource};
use crate::deploy::error::DeployError;
use crate::deploy::inputs::asset_store::LARGEST_INLINE;
use crate::deploy::inputs::credential_digests::CredentialDigests;
use crate::deploy::inputs::rendered::Sources;
use crate::deploy::inputs::settings::{ImageChoice, Settings};
use crate::deploy::state::desired::{DesiredStack, live_place};
use crate::deploy::state::live::LiveCluster;

/// A stack's link, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostEstimate {
    /// The stack.
    pub stack: String,
    /// The link.
    pub link: Result<String, String>,
}

/// Asks for a link a stack.
pub async fn estimate_costs(
    clients: &Clients,
    sources: Sources<'_>,
    live: &LiveCluster,
    image: ImageChoice,
) -> Result<Vec<CostEstimate>, DeployError> {
    let place = live_place(live).or_else(|| sources.blueprint.cluster.s3_uri.clone());
    let unknown = || {
        "s3://unknown".parse().map_err(|fault: crate::document::Fault| DeployError::Unusable {
            what: fault.to_string(),
            help: String::new(),
        })
    };
    let settings = Settings {
        place: place.map_or_else(unknown, Ok)?,
        image,
        credentials: CredentialDigests::of(sources.credentials),
        missing_mount_targets: (0..sources.blueprint.cluster.zones.len())
            .map(|index| (index, true))
            .collect(),
    };
    let outputs = live.outputs();
    let mut estimates = Vec::new();
    for stack in DesiredStack::of_cluster(sources.blueprint, sources.assets, &settings, live) {
        let text = stack.text();
        let link = match stack.parameters(&outputs) {
            Err(_) => {
                Err("it needs what other stacks hand on: ask again after the first `infra up`".to_owned())
            }
            Ok(_) if text.len() > LARGEST_INLINE => Err("its template is too large for this call".to_owned()),
            Ok(parameters) => {
                let template = TemplateSource::Inline(text);
                clients.estimate_cost(&template, &parameters).await.map_err(|error| error.to_string())
            }
        };
        estimates.push(CostEstimate { stack: stack.name, link });
    }
    Ok(estimates)
}
