//! `infra job gpu-check`: whether every GPU node has the GPUs it should have.

use std::time::Duration;

use clap::Args;

use super::target::{random_mark, warn_if_not_removed};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::interruption::until_interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::job::life::{GpuCheck, NodeGpus};
use crate::job::{ClusterFacts, HELPER_IMAGE};
use crate::kube::Node;

/// An image is pulled once per node; after that the check takes a second.
const CHECK_TIME_LIMIT: Duration = Duration::from_mins(5);

/// Run nvidia-smi on every GPU node and compare what it sees with what the machine has
///
/// Jobs keep their GPUs. Exits with 3 if a node does not have the GPUs it should have.
#[derive(Args, Debug)]
pub(super) struct GpuCheckArguments {
    /// The image it runs in, if the usual one cannot be pulled; nvidia-smi comes from the node
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

pub(super) fn run(arguments: &GpuCheckArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = TargetCluster::find(session)?;
    let expected = |node: &Node| {
        let Some(blueprint) = cluster.blueprint() else { return node.labelled_gpus.unwrap_or(0) };
        let mut pools = blueprint.cluster.pools.iter();
        let pool = pools.find(|pool| node.pool.as_deref() == Some(pool.name.as_str()));
        pool.and_then(|pool| pool.gpus.as_ref()).map_or(0, |gpus| gpus.count)
    };
    let mark = random_mark()?;
    let (_interrupter, waiting) = session.begin_waiting(Some(CHECK_TIME_LIMIT));
    let image = arguments.image.clone();
    let image =
        image.unwrap_or_else(|| ClusterFacts::of_blueprint(cluster.blueprint()).mirrored_image(HELPER_IMAGE));
    let check = GpuCheck::new(&cluster.api, &mark, &image);
    let checked = block_on(async {
        let run = async { Ok(check.run(expected, &waiting).await?) };
        let checked = Box::pin(until_interrupted(run)).await;
        warn_if_not_removed(check.remove().await, "the pods of the check", &session.printer);
        checked
    });
    let nodes = checked?;
    let healthy = nodes.iter().all(|node| node.problem.is_none());
    match session.output {
        Output::Json => session.printer.json(&nodes)?,
        Output::Text | Output::Markdown | Output::Html if nodes.is_empty() => {
            session.printer.data(format_args!("{}: there are no GPU nodes", cluster.name))?;
        }
        Output::Text | Output::Markdown | Output::Html => session.printer.data(gpu_table(&nodes))?,
    }
    Ok(if healthy { Exit::Done } else { Exit::Unhealthy })
}

fn gpu_table(nodes: &[NodeGpus]) -> String {
    let heading = ["NODE", "POOL", "GPUS", "SEEN", ""].map(str::to_owned);
    let line = |node: &NodeGpus| {
        let first =
            node.gpus.first().map(|line| line.split_once(", ").map_or(line.as_str(), |(_, rest)| rest));
        [
            node.node.clone(),
            node.pool.clone().unwrap_or_else(|| "-".to_owned()),
            node.expected.to_string(),
            node.gpus.len().to_string(),
            node.problem.clone().or_else(|| first.map(str::to_owned)).unwrap_or_default(),
        ]
    };
    align_columns(&std::iter::once(heading).chain(nodes.iter().map(line)).collect::<Vec<_>>())
}
