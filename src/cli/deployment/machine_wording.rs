//! Machines in words, for plans and questions.

use crate::blueprint::Role;
use crate::deploy::{MachineAction, MachineChange, Service};
use crate::plural::count_of;

/// The machines of changes of one kind, as the subject of a sentence, and whether there are several. All etcd members are named in one.
pub(in crate::cli) fn name_machines(changes: &[&MachineChange]) -> (String, bool) {
    let members: Vec<String> = changes
        .iter()
        .filter(|change| matches!(change.role, Role::EtcdMember(_)))
        .map(|change| change.role.name())
        .collect();
    let others = changes.iter().filter_map(|change| match &change.role {
        Role::EtcdMember(_) => None,
        Role::Controller => Some(count_of(change.machines, "controller")),
        Role::Pool(pool) => Some(format!("{} of pool {pool}", count_of(change.machines, "machine"))),
    });
    let names: Vec<String> = members.into_iter().chain(others).collect();
    let several = changes.iter().map(|change| change.machines).sum::<u32>() > 1;
    (join_with_and(&names), several)
}

/// `a, b and c`.
fn join_with_and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What happens to machines of one role, or to several etcd members alike, in a sentence.
pub(in crate::cli) fn describe_change(changes: &[&MachineChange]) -> String {
    let Some(change) = changes.first() else { return String::new() };
    let (machines, several) = name_machines(changes);
    let verb = if several { "are" } else { "is" };
    match change.change {
        MachineAction::Create => format!("{machines} {verb} created"),
        MachineAction::Terminate => format!("{machines} {verb} terminated"),
        MachineAction::Replace { at_once, in_service } => {
            let pace = describe_pace(changes, at_once, in_service);
            format!("{machines} {verb} replaced{pace}")
        }
        MachineAction::ReplaceGroup => format!("{machines} {verb} replaced by a new Auto Scaling group"),
        MachineAction::ReplaceUnfitting => {
            format!("Auto Scaling replaces what no longer fits of {machines}")
        }
        MachineAction::StayOutdated => {
            let verb = if several { "stay" } else { "stays" };
            let until = match &change.role {
                Role::Pool(pool) => format!("until `infra up --pool {pool} --replace-nodes`"),
                Role::EtcdMember(_) | Role::Controller => "until you terminate each".to_owned(),
            };
            format!("{machines} {verb} outdated {until}; only new ones are up to date")
        }
    }
}

fn describe_pace(changes: &[&MachineChange], at_once: u32, in_service: u32) -> String {
    let machines: u32 = changes.iter().map(|change| change.machines).sum();
    let batch = match (machines, at_once) {
        (1, _) => String::new(),
        (_, 0 | 1) => ", one by one".to_owned(),
        (_, several) => format!(", {several} at a time"),
    };
    if changes.iter().any(|change| matches!(change.role, Role::EtcdMember(_))) {
        return batch;
    }
    let meanwhile = match (machines, in_service) {
        // The outage of the API says so.
        (1, 0) if changes.iter().any(|change| change.role == Role::Controller) => String::new(),
        (_, 0) => "; none stays in service".to_owned(),
        (1, _) => ", after a new one is ready".to_owned(),
        (machines, in_service) if in_service >= machines => ", each after a new one is ready".to_owned(),
        (_, 1) => "; 1 stays in service".to_owned(),
        (_, several) => format!("; {several} stay in service"),
    };
    format!("{batch}{meanwhile}")
}

/// A service of the control plane, as the subject of a sentence that ends in "unavailable".
pub(in crate::cli) fn name_service(service: Service) -> &'static str {
    match service {
        Service::EtcdQuorum => "etcd's quorum",
        Service::Api => "the API",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{describe_change, name_machines};
    use crate::blueprint::Role;
    use crate::config::values::PoolName;
    use crate::deploy::{MachineAction, MachineChange};

    fn change(role: Role, machines: u32, change: MachineAction) -> MachineChange {
        MachineChange { role, machines, change, resources: BTreeSet::new() }
    }

    fn pool(machines: u32, action: MachineAction) -> MachineChange {
        change(Role::Pool(PoolName::of_test("cpu")), machines, action)
    }

    fn replaced(at_once: u32, in_service: u32) -> MachineAction {
        MachineAction::Replace { at_once, in_service }
    }

    #[test]
    fn each_change_is_a_sentence_with_the_right_number() {
        let controllers = |machines, in_service| change(Role::Controller, machines, replaced(1, in_service));
        for (change, expected) in [
            (controllers(1, 0), "1 controller is replaced"),
            (controllers(2, 1), "2 controllers are replaced, one by one; 1 stays in service"),
            (controllers(3, 2), "3 controllers are replaced, one by one; 2 stay in service"),
            (pool(1, replaced(1, 0)), "1 machine of pool cpu is replaced; none stays in service"),
            (pool(1, replaced(1, 1)), "1 machine of pool cpu is replaced, after a new one is ready"),
            (
                pool(3, replaced(1, 3)),
                "3 machines of pool cpu are replaced, one by one, each after a new one is ready",
            ),
            (pool(4, replaced(2, 2)), "4 machines of pool cpu are replaced, 2 at a time; 2 stay in service"),
            (
                pool(4, replaced(4, 0)),
                "4 machines of pool cpu are replaced, 4 at a time; none stays in service",
            ),
            (pool(1, MachineAction::Create), "1 machine of pool cpu is created"),
            (pool(2, MachineAction::Terminate), "2 machines of pool cpu are terminated"),
            (
                pool(2, MachineAction::ReplaceGroup),
                "2 machines of pool cpu are replaced by a new Auto Scaling group",
            ),
            (
                pool(2, MachineAction::ReplaceUnfitting),
                "Auto Scaling replaces what no longer fits of 2 machines of pool cpu",
            ),
            (
                pool(1, MachineAction::StayOutdated),
                "1 machine of pool cpu stays outdated until `infra up --pool cpu --replace-nodes`; only new ones are up to date",
            ),
        ] {
            assert_eq!(describe_change(&[&change]), expected);
        }
    }

    #[test]
    fn members_are_named_together() {
        let members: Vec<MachineChange> =
            (0..3).map(|member| change(Role::EtcdMember(member), 1, replaced(1, 0))).collect();
        let all: Vec<&MachineChange> = members.iter().collect();
        assert_eq!(describe_change(&all), "etcd-0, etcd-1 and etcd-2 are replaced, one by one");
        assert_eq!(describe_change(&all[..1]), "etcd-0 is replaced");
        let workers = pool(2, replaced(1, 2));
        assert_eq!(
            name_machines(&[all[0], &workers]),
            ("etcd-0 and 2 machines of pool cpu".to_owned(), true)
        );
    }
}
