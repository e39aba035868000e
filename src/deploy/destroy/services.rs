//! Lets Kubernetes delete the load balancers of its Services, while its API answers.

use std::time::Duration;

use super::target::DestroyTarget;
use crate::deploy::error::DeployError;
use crate::deploy::event::Event;
use crate::deploy::run::Run;
use crate::kube::ApiServer;
use crate::waiting::Pace;
use crate::well_known::SERVICE_TAG;

/// After this time load balancers that are left are deleted by tag.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Deletes every Service of type LoadBalancer and waits until their load balancers are deleted.
pub(crate) async fn delete_services(
    run: &Run,
    target: &DestroyTarget,
    api: &ApiServer,
    vpc: &str,
) -> Result<(), DeployError> {
    let services = match api.load_balancer_services().await {
        Ok(services) => services,
        Err(error) => {
            run.progress.warn(format!(
                "could not list Services: {error}; their load balancers are deleted by tag instead"
            ));
            return Ok(());
        }
    };
    if services.is_empty() {
        return Ok(());
    }
    for service in &services {
        if let Err(error) = api.delete_service(service).await {
            // Another process that destroys the cluster at the same time may have deleted its API already.
            run.progress.warn(format!(
                "Service {}/{} could not be deleted: {error}; its load balancer is deleted by tag instead",
                service.namespace, service.name
            ));
            return Ok(());
        }
        run.progress.note(format!("deleted Service {}/{}", service.namespace, service.name));
    }
    let wait = run.waiting.optional_wait(LONGEST_WAIT);
    let mut pace = Pace::of_stack();
    loop {
        let balancers = run.clients.load_balancers_in(vpc).await?;
        let left: Vec<String> = balancers
            .into_iter()
            .filter(|balancer| target.is_of_cluster(&balancer.tags))
            .filter(|balancer| balancer.tags.contains_key(SERVICE_TAG))
            .map(|balancer| format!("load balancer {}", balancer.name))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        run.progress.report(Event::Waiting { waiting_for: left });
        let ended = |end| Run::still_running(end, "the deletion of Services");
        if !wait.pause(pace.next_pause()).await.map_err(ended)? {
            run.progress.warn(
                "Kubernetes did not delete all load balancers in time; they are deleted by tag instead",
            );
            return Ok(());
        }
    }
}
