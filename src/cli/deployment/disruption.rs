//! What a plan does to machines and to the jobs on them, read from AWS and from the cluster's API.

use crate::cli::deployment::Deployment;
use crate::deploy::{
    LiveCluster, MachinePlan, Plan, Prepared, disrupted_jobs, load_balancer, plan_machines,
    pools_losing_machines,
};
use crate::kube::{Address, ApiServer};

/// What a plan does to machines, with the job pods on those that it terminates. That the API cannot be read is part of the answer.
/// `prepared` is what the plan was made from.
pub(in crate::cli) async fn read_disruption(
    deployment: &Deployment,
    plan: &Plan,
    prepared: &Prepared,
    address: Option<&Address>,
) -> MachinePlan {
    let live = &prepared.live;
    let mut machines = plan_machines(plan, &prepared.desired, live);
    let pools = pools_losing_machines(&machines);
    if pools.is_empty() {
        return machines;
    }
    let found = match connect_api(deployment, live, address) {
        Some(Ok(api)) => disrupted_jobs(&api, &pools).await.map_err(anyhow::Error::from),
        Some(Err(error)) => Err(error),
        // Without an API there are no jobs.
        None => return machines,
    };
    match found {
        Ok(jobs) => machines.jobs = Some(jobs),
        Err(error) => {
            machines.jobs = None;
            machines.jobs_unknown = Some(error.to_string());
        }
    }
    machines
}

/// The cluster's API, if there is one.
pub(in crate::cli) fn connect_api(
    deployment: &Deployment,
    live: &LiveCluster,
    address: Option<&Address>,
) -> Option<anyhow::Result<ApiServer>> {
    let target = load_balancer(&live.outputs())?;
    let name = deployment.project.blueprint.cluster.external_dns_name.to_string();
    let api = ApiServer::of_cluster(&deployment.credentials, &name, &target.name, address);
    Some(api.map_err(Into::into))
}
