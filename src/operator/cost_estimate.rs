//! Links to AWS's calculator, filled in from our templates.

use crate::aws::{Clients, TemplateSource};
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
    stacks: Vec<DesiredStack>,
    live: &LiveCluster,
) -> Vec<CostEstimate> {
    let outputs = live.outputs();
    let mut estimates = Vec::new();
    for stack in stacks {
        let text = stack.text();
        let link = match stack.parameters(&outputs) {
            Err(_) => {
                Err("the stack needs outputs of other stacks: run this again after the first `infra up`"
                    .to_owned())
            }
            Ok(_) if text.len() > TemplateSource::LARGEST_INLINE => {
                Err("the template is too large for this call".to_owned())
            }
            Ok(parameters) => {
                let template = TemplateSource::Inline(text);
                clients.estimate_cost(&template, &parameters).await.map_err(|error| error.to_string())
            }
        };
        estimates.push(CostEstimate { stack: stack.name, link });
    }
    estimates
}
