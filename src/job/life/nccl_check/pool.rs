//! Which pool is checked.

use super::report::Backend;
use crate::document::{Fault, nearest_word};
use crate::job::ClusterFacts;

/// The pool that is named, or the only one that can be meant.
pub(crate) fn choose_pool(
    facts: ClusterFacts<'_>,
    wanted: Option<&str>,
    backend: Backend,
) -> Result<String, Fault> {
    let pools = facts.pools();
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    let Some(wanted) = wanted else {
        let suits = |has_gpus: bool| has_gpus || backend == Backend::Gloo;
        let suitable: Vec<&str> =
            pools.iter().filter(|pool| suits(pool.has_gpus)).map(|pool| pool.name.as_str()).collect();
        return match suitable.as_slice() {
            [name] => Ok((*name).to_owned()),
            [] if names.is_empty() => {
                Err(Fault::new("the cluster has no pools").help("add one to cluster.yaml"))
            }
            [] => Err(Fault::new("no pool has GPUs")
                .help("`--backend gloo --pool NAME` measures the network of machines without")),
            several => Err(Fault::new(
                "the machines of one pool are compared with one another, and there are several pools",
            )
            .help(format!("name one with `--pool`: {}", several.join(", ")))),
        };
    };
    match pools.iter().find(|pool| pool.name == wanted) {
        Some(pool) if backend == Backend::Nccl && !pool.has_gpus => {
            Err(Fault::new(format!("pool {wanted} has no GPUs"))
                .help("`--backend gloo` measures the network of its machines"))
        }
        Some(pool) => Ok(pool.name.clone()),
        None => {
            let fault = Fault::new(format!("the cluster has no pool '{wanted}'"));
            Err(match nearest_word(wanted, names.iter().copied()) {
                Some(near) => fault.help(format!("did you mean '{near}'?")),
                None if names.is_empty() => fault,
                None => fault.help(format!("its pools are {}", names.join(", "))),
            })
        }
    }
}
