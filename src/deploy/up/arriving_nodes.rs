//! Nodes as they join the cluster and get Ready, while stacks are still brought up: CloudFormation does not report them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;

use crate::aws::Alias;
use crate::deploy::event::{MachineState, Progress};
use crate::deploy::run::Run;
use crate::deploy::state::public_name::load_balancer;
use crate::kube::{ApiServer, Node};

/// Between two looks at the nodes; a machine takes minutes.
const PAUSE: Duration = Duration::from_secs(10);

/// Does the work, and reports nodes meanwhile. An API that does not answer is no failure here: who waits for it says so afterwards.
pub(super) async fn while_nodes_arrive<T>(
    run: &Run,
    outputs: watch::Receiver<BTreeMap<String, String>>,
    connect: impl Fn(&Alias) -> Option<ApiServer>,
    work: impl Future<Output = T>,
) -> T {
    tokio::select! {
        done = work => done,
        never = follow_nodes(run, outputs, connect) => match never {},
    }
}

async fn follow_nodes(
    run: &Run,
    outputs: watch::Receiver<BTreeMap<String, String>>,
    connect: impl Fn(&Alias) -> Option<ApiServer>,
) -> Infallible {
    let mut api = None;
    loop {
        if run.waiting.pause(PAUSE).await.is_err() {
            // The work ends for the same reason.
            return std::future::pending().await;
        }
        if !run.progress.awaits_nodes() {
            continue;
        }
        if api.is_none() {
            let target = load_balancer(&outputs.borrow());
            api = target.and_then(|target| connect(&target));
        }
        if let Some(api) = &api
            && let Ok(nodes) = api.nodes().await
        {
            report_nodes(&run.progress, &nodes);
        }
    }
}

/// Reports how far the machines of nodes are, of those that were launched in this run.
pub(super) fn report_nodes(progress: &Progress, nodes: &[Node]) {
    for node in nodes {
        if let Some(machine) = &node.instance_id {
            let state = if node.ready { MachineState::Ready } else { MachineState::Joined };
            progress.node(machine, state, &node.name);
        }
    }
}
