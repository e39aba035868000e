//! What `up` asks before it changes anything: pools to delete, an API that becomes unavailable, resources and jobs that are lost.

use crate::cli::deployment::Deployment;
use crate::cli::deployment::machine_wording::name_machines;
use crate::cli::question::ask_on_thread;
use crate::cli::session::Session;
use crate::deploy::{
    Consent, MachineAction, MachineChange, MachinePlan, Prepared, Service, pools_losing_machines,
};
use crate::plural::count_of;

/// Asks where something would be lost or unavailable. `prune` is the yes to deleting pools.
pub(in crate::cli) async fn ask_for_consent(
    session: &Session,
    deployment: &Deployment,
    prepared: &Prepared,
    mut machines: MachinePlan,
    prune: bool,
) -> anyhow::Result<Consent> {
    let plan = &prepared.plan;
    let deletions: Vec<String> = plan.deletions().map(|stack| stack.part.to_string()).collect();
    let mut consent = Consent { delete_dropped_pools: prune };
    if !deletions.is_empty() && !prune {
        let question = match deletions.as_slice() {
            [one] => format!("{one} is no longer in cluster.yaml; without a yes it is kept. Delete it?"),
            all => format!(
                "{} are no longer in cluster.yaml; without a yes they are kept. Delete them?",
                all.join(", ")
            ),
        };
        // Without a yes the pools are kept, and everything else continues.
        let agreed = ask_on_thread(&question, "--prune", &session.printer).await.is_ok();
        consent.delete_dropped_pools = agreed;
        if !agreed {
            session
                .printer
                .warning("pools that are no longer in cluster.yaml are kept; `--prune` deletes them");
            let cluster = &deployment.project.blueprint.cluster;
            machines = machines.without_pools(|pool| cluster.pool(pool).is_none());
        }
    }
    if let Some(question) = consent_question(&machines, plan.losses())
        && !session.yes
    {
        ask_on_thread(&question, "--yes", &session.printer).await?;
    }
    Ok(consent)
}

/// The question about what would be lost or unavailable; none if nothing would be. `losses` counts resources.
fn consent_question(machines: &MachinePlan, losses: usize) -> Option<String> {
    let outage = machines.outage_of(Service::Api).map(|outage| {
        format!("The API will be unavailable for about {}.", count_of(outage.about_minutes, "minute"))
    });
    let resources =
        (losses > 0).then(|| format!("{} will be replaced or deleted.", count_of(losses, "resource")));
    let jobs = match &machines.jobs {
        Some(jobs) if jobs.is_empty() => None,
        Some(jobs) => Some(format!("{} will be terminated.", count_of(jobs.len(), "job pod"))),
        None if pools_losing_machines(machines).is_empty() => None,
        None => Some("Jobs may be running on nodes that will be terminated.".to_owned()),
    };
    let reasons: Vec<String> = [outage, resources, jobs].into_iter().flatten().collect();
    if reasons.is_empty() {
        return None;
    }
    let sentences: Vec<String> = machine_sentences(machines).into_iter().chain(reasons).collect();
    Some(format!("{} Continue?", sentences.join(" ")))
}

/// Which machines are replaced and which are terminated.
fn machine_sentences(machines: &MachinePlan) -> Vec<String> {
    let sentence = |wanted: fn(MachineAction) -> bool, word: &str| {
        let found: Vec<&MachineChange> =
            machines.machines.iter().filter(|change| wanted(change.change)).collect();
        (!found.is_empty()).then(|| format!("{} will be {word}.", name_machines(&found).0))
    };
    let sentences = [
        sentence(|change| change.terminates_machines() && change != MachineAction::Terminate, "replaced"),
        sentence(|change| change == MachineAction::Terminate, "terminated"),
    ];
    sentences.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::consent_question;
    use crate::blueprint::Role;
    use crate::config::values::PoolName;
    use crate::deploy::event::{DisruptedJob, Outage};
    use crate::deploy::{MachineAction, MachineChange, MachinePlan, Service};

    fn change(role: Role, machines: u32, change: MachineAction) -> MachineChange {
        MachineChange { role, machines, change, resources: BTreeSet::new() }
    }

    fn pool(name: &str, machines: u32, action: MachineAction) -> MachineChange {
        change(Role::Pool(PoolName::of_test(name)), machines, action)
    }

    fn job(pool: &str) -> DisruptedJob {
        let [namespace, job, pod, node] = ["default", "train", "train-0", "ip-1"].map(str::to_owned);
        DisruptedJob { pool: PoolName::of_test(pool), namespace, job, pod, node }
    }

    const ROLLING: MachineAction = MachineAction::Replace { at_once: 1, in_service: 2 };

    fn quiet() -> MachinePlan {
        MachinePlan {
            machines: vec![pool("cpu", 2, ROLLING)],
            jobs: Some(Vec::new()),
            ..MachinePlan::default()
        }
    }

    #[test]
    fn machines_whose_loss_interrupts_nothing_are_not_asked_about() {
        assert_eq!(consent_question(&quiet(), 0), None);
        let kept = MachinePlan { jobs: None, machines: Vec::new(), ..quiet() };
        assert_eq!(consent_question(&kept, 0), None, "no machine, so no job on it");
    }

    #[test]
    fn a_question_has_correct_counts_and_omits_zeros() {
        let text = |machines: &MachinePlan, losses| consent_question(machines, losses).unwrap_or_default();
        let replaced = "2 machines of pool cpu will be replaced.";
        assert_eq!(
            text(&quiet(), 1),
            format!("{replaced} 1 resource will be replaced or deleted. Continue?")
        );
        let jobs = MachinePlan { jobs: Some(vec![job("cpu")]), ..quiet() };
        assert_eq!(text(&jobs, 0), format!("{replaced} 1 job pod will be terminated. Continue?"));
        let unknown = MachinePlan { jobs: None, ..quiet() };
        let said = "Jobs may be running on nodes that will be terminated. Continue?";
        assert_eq!(text(&unknown, 0), format!("{replaced} {said}"));
    }

    #[test]
    fn an_api_that_becomes_unavailable_is_asked_about_with_the_machines_first() {
        let mut machines = quiet();
        let alone = MachineAction::Replace { at_once: 1, in_service: 0 };
        machines.machines.insert(0, change(Role::Controller, 1, alone));
        machines.machines.insert(0, change(Role::EtcdMember(0), 1, alone));
        machines.machines.push(pool("old", 1, MachineAction::Terminate));
        machines.outages = vec![Outage { of: Service::Api, about_minutes: 5, because: String::new() }];
        assert_eq!(
            consent_question(&machines, 0).unwrap_or_default(),
            "etcd-0, 1 controller and 2 machines of pool cpu will be replaced. 1 machine of pool old will be terminated. \
             The API will be unavailable for about 5 minutes. Continue?"
        );
    }

    #[test]
    fn a_pool_that_is_kept_is_no_loss() {
        let machines = MachinePlan {
            machines: vec![pool("old", 1, MachineAction::Terminate)],
            jobs: Some(vec![job("old")]),
            ..MachinePlan::default()
        };
        assert_eq!(consent_question(&machines.without_pools(|pool| pool.as_str() == "old"), 0), None);
    }
}
