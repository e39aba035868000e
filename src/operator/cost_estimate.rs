//! Links to AWS's calculator, filled in from our templates.

use crate::aws::{Clients, TemplateSource};
use crate::deploy::inputs::Inputs;
use crate::deploy::inputs::asset_store::LARGEST_INLINE;
use crate::deploy::state::desired::DesiredStack;
use crate::deploy::state::live::LiveCluster;

/// A stack's link, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CostEstimate {
    /// The stack.
    pub stack: String,
    /// The link.
    pub link: Result<String, String>,
}

/// Has AWS fill in its calculator, one link per stack.
pub(crate) async fn estimate_costs(
    clients: &Clients,
    inputs: &Inputs<'_>,
    live: &LiveCluster,
) -> Vec<CostEstimate> {
    let zones = inputs.blueprint.cluster.availability_zones.len();
    let mount_targets = (0..zones).map(|index| (index, true)).collect();
    let outputs = live.outputs();
    let mut estimates = Vec::new();
    for stack in DesiredStack::of_cluster(inputs, &mount_targets, live) {
        let text = stack.text();
        let link = match stack.parameters(&outputs) {
            Err(_) => {
                Err("the stack needs outputs of other stacks: run this again after the first `infra up`"
                    .to_owned())
            }
            Ok(_) if text.len() > LARGEST_INLINE => Err("the template is too large for this call".to_owned()),
            Ok(parameters) => {
                let template = TemplateSource::Inline(text);
                clients.estimate_cost(&template, &parameters).await.map_err(|error| error.to_string())
            }
        };
        estimates.push(CostEstimate { stack: stack.name, link });
    }
    estimates
}
