//! Which machines of a pool take part in a check: those that no job and no other check uses.

use super::pods::ROLE;
use super::report::Backend;
use crate::job::names::{JOB_LABEL, ROLE_LABEL};
use crate::kube::{Node, Pod};
use crate::plural::count_of;
use crate::well_known::JOB_SET_LABEL;

/// A machine of the pool.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The node.
    pub(super) node: Node,
    /// Why it does not take part.
    pub(super) absence: Option<Absence>,
}

/// Why a machine does not take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// Nothing is wrong with it.
    LeftOut(String),
    /// Something is wrong with it.
    Problem(String),
}

impl Member {
    /// The processes that measure on the machine.
    pub(super) fn processes(&self, backend: Backend) -> u32 {
        match backend {
            Backend::Nccl => self.node.gpus,
            Backend::Gloo => 1,
        }
    }
}

/// A machine that measures.
pub(super) struct Runner<'a> {
    /// The node.
    pub(super) node: &'a Node,
    /// The pod on it.
    pub(super) pod: String,
    /// The processes of the pod.
    pub(super) processes: u32,
    /// The address of the pod.
    pub(super) address: String,
}

/// The machines of a pool, in the order of their names.
pub(super) fn members_of(nodes: Vec<Node>, pods: &[Pod], pool: &str, backend: Backend) -> Vec<Member> {
    let mut own: Vec<Node> = nodes.into_iter().filter(|node| node.pool.as_deref() == Some(pool)).collect();
    own.sort_by(|one, other| one.name.cmp(&other.name));
    own.into_iter().map(|node| Member { absence: absence_of(&node, pods, backend), node }).collect()
}

fn absence_of(node: &Node, pods: &[Pod], backend: Backend) -> Option<Absence> {
    if !node.ready {
        let why = node.why_not_ready.as_deref().unwrap_or("no reason is given");
        return Some(Absence::Problem(format!("the node is not Ready: {why}")));
    }
    let labelled = node.labelled_gpus.unwrap_or(node.gpus);
    if backend == Backend::Nccl && node.gpus < labelled.max(1) {
        let given = count_of(node.gpus, "GPU");
        return Some(Absence::Problem(format!(
            "Kubernetes offers pods {given}, but the machine has {labelled}"
        )));
    }
    if backend == Backend::Nccl && node.given_efa < node.efa {
        let given = count_of(node.given_efa, "EFA adapter");
        return Some(Absence::Problem(format!(
            "Kubernetes can give {given} to pods, the machine has {}",
            node.efa
        )));
    }
    let uses = |pod: &&Pod| pod.node.as_deref() == Some(node.name.as_str()) && !pod.phase.is_over();
    if let Some(user) = pods.iter().filter(uses).find_map(user_of) {
        return Some(Absence::LeftOut(user));
    }
    (!node.schedulable).then(|| Absence::LeftOut("the node is cordoned".to_owned()))
}

/// What a pod does on its machine, if it and the check would disturb each other.
fn user_of(pod: &Pod) -> Option<String> {
    if pod.labels.get(ROLE_LABEL).is_some_and(|role| role == ROLE) {
        // A pod that is being deleted ends before the image is pulled.
        return (!pod.leaving).then(|| "another nccl-check runs there".to_owned());
    }
    if let Some(job) = pod.labels.get(JOB_LABEL).filter(|_| pod.labels.contains_key(JOB_SET_LABEL)) {
        return Some(format!("job '{job}' of namespace {} runs there", pod.namespace));
    }
    if pod.labels.contains_key(JOB_SET_LABEL) || pod.gpus > 0 {
        let held = Some(pod.gpus).filter(|gpus| *gpus > 0).map(|gpus| count_of(gpus, "GPU"));
        let does = held.map_or_else(|| "runs there".to_owned(), |gpus| format!("holds {gpus}"));
        return Some(format!("pod {} of namespace {} {does}", pod.name, pod.namespace));
    }
    None
}
