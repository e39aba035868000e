//! What is unavailable while a plan replaces machines, and for about how long.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::aws::GroupMachine;
use crate::blueprint::Role;
use crate::deploy::event::{MachineAction, MachineChange, Outage, Service};
use crate::deploy::state::live::LiveCluster;
use crate::well_known::ROLE_TAG;

/// How long EC2 takes to shut a machine down and to start the next one, its downloads among it (docs/decisions.md).
const EC2_PART: Duration = Duration::from_secs(90);
/// How long a controller was unavailable, at most, where starting a machine takes no time (docs/real-cluster.md).
const CONTROLLER_PART: Duration = Duration::from_secs(74);
/// The same of an etcd member.
const MEMBER_PART: Duration = Duration::from_secs(14);

/// What is unavailable while machines are replaced.
#[must_use]
pub(super) fn find_outages(changes: &[MachineChange], live: &LiveCluster) -> Vec<Outage> {
    let (without_quorum, quorum_reason) = time_without_quorum(changes, live);
    let without_controller = time_without_controller(changes);
    let mut outages = Vec::new();
    if !without_quorum.is_zero() {
        outages.push(Outage {
            of: Service::EtcdQuorum,
            about_minutes: whole_minutes(without_quorum),
            because: quorum_reason,
        });
    }
    let reasons =
        [(without_quorum, "etcd loses its quorum"), (without_controller, "there is only 1 controller")];
    let reasons: Vec<&str> =
        reasons.iter().filter(|(time, _)| !time.is_zero()).map(|(_, reason)| *reason).collect();
    if !reasons.is_empty() {
        outages.push(Outage {
            of: Service::Api,
            about_minutes: whole_minutes(without_quorum + without_controller),
            because: reasons.join(", and "),
        });
    }
    outages
}

fn whole_minutes(time: Duration) -> u64 {
    time.as_secs().div_ceil(60)
}

/// How long too few members are in service, and why. Members are replaced one after the other; a new machine is a member in service.
fn time_without_quorum(changes: &[MachineChange], live: &LiveCluster) -> (Duration, String) {
    let groups = live.groups.iter().filter_map(|group| {
        let role = Role::from_name(group.tags.get(ROLE_TAG)?)?;
        matches!(role, Role::EtcdMember(_)).then_some((role, group))
    });
    let mut members: Vec<_> = groups.collect();
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut in_service: BTreeSet<&Role> = members
        .iter()
        .filter(|(_, group)| group.machines.iter().any(GroupMachine::is_in_service))
        .map(|(role, _)| role)
        .collect();
    let found = in_service.len();
    let quorum = members.len() / 2 + 1;
    let mut time = Duration::ZERO;
    for (role, _) in &members {
        // Two machines cannot have a member's volume and address at a time, whatever replaces it.
        let is_replaced =
            changes.iter().any(|change| change.role == *role && change.change.terminates_machines());
        if !is_replaced {
            continue;
        }
        in_service.remove(role);
        if in_service.len() < quorum {
            time += EC2_PART + MEMBER_PART;
        }
        in_service.insert(role);
    }
    let reason = match members.len() {
        1 => "it has only 1 member".to_owned(),
        all => format!("only {found} of {all} members are in service"),
    };
    (time, reason)
}

fn time_without_controller(changes: &[MachineChange]) -> Duration {
    let is_gap = |change: MachineAction| matches!(change, MachineAction::Replace { in_service: 0, .. });
    let replaced = changes.iter().any(|change| change.role == Role::Controller && is_gap(change.change));
    if replaced { EC2_PART + CONTROLLER_PART } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::find_outages;
    use crate::aws::{GroupMachine, ScalingGroup};
    use crate::blueprint::Role;
    use crate::deploy::event::{MachineAction, MachineChange, Service};
    use crate::deploy::state::live::LiveCluster;
    use crate::well_known::ROLE_TAG;

    fn cluster(members: &[&str]) -> LiveCluster {
        let group = |(index, state): (usize, &&str)| ScalingGroup {
            machines: vec![GroupMachine {
                id: "i-1".to_owned(),
                state: (*state).to_owned(),
                template_version: None,
                instance_type: String::new(),
                zone: String::new(),
            }],
            tags: BTreeMap::from([(ROLE_TAG.to_owned(), format!("etcd-{index}"))]),
            ..ScalingGroup::of_test(&format!("etcd-{index}"), 1)
        };
        LiveCluster { groups: members.iter().enumerate().map(group).collect(), ..LiveCluster::default() }
    }

    fn replaced(role: Role, in_service: u32) -> MachineChange {
        let change = MachineAction::Replace { at_once: 1, in_service };
        MachineChange { role, machines: 1, change, resources: BTreeSet::new() }
    }

    fn found(members: &[&str], changes: &[MachineChange]) -> Vec<(Service, u64, String)> {
        let outages = find_outages(changes, &cluster(members)).into_iter();
        outages.map(|outage| (outage.of, outage.about_minutes, outage.because)).collect()
    }

    fn all_members(count: u32) -> Vec<MachineChange> {
        (0..count).map(|member| replaced(Role::EtcdMember(member), 0)).collect()
    }

    #[test]
    fn one_member_and_one_controller_are_unavailable_one_after_the_other() {
        let mut changes = all_members(1);
        assert_eq!(
            found(&["InService"], &changes),
            [
                (Service::EtcdQuorum, 2, "it has only 1 member".to_owned()),
                (Service::Api, 2, "etcd loses its quorum".to_owned())
            ]
        );
        changes.push(replaced(Role::Controller, 0));
        assert_eq!(found(&["InService"], &changes)[1].1, 5);
        let controller = found(&["InService"], &changes[1..]);
        assert_eq!(controller.len(), 1);
        assert_eq!((controller[0].0, controller[0].1), (Service::Api, 3));
    }

    #[test]
    fn several_are_replaced_without_an_outage_unless_one_is_missing_already() {
        let up = ["InService"; 3];
        let mut changes = all_members(3);
        changes.push(replaced(Role::Controller, 1));
        assert_eq!(found(&up, &changes), []);
        let degraded = found(&["InService", "Pending", "InService"], &changes);
        assert_eq!(degraded[0], (Service::EtcdQuorum, 2, "only 2 of 3 members are in service".to_owned()));
        // The missing one is replaced first, and is there when its turn is over.
        assert_eq!(found(&["Pending", "InService", "InService"], &changes), []);
    }

    #[test]
    fn what_does_not_exist_yet_cannot_become_unavailable() {
        let created = MachineChange { change: MachineAction::Create, ..replaced(Role::Controller, 0) };
        assert_eq!(found(&[], &[created]), []);
    }
}
