//! One cluster of a list, judged by its stacks, Auto Scaling groups and images.

use std::collections::BTreeMap;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::shape::{FirstExpiry, ListedCluster, MachinesState};
use crate::aws::{Image, ScalingGroup, Stack};
use crate::blueprint::{Charge, Cost, CostSummary, MachineCharge, Prices, Role, StackPart};
use crate::config::values::ClusterName;
use crate::credentials::{FEWEST_DAYS_LEFT, days_until};
use crate::deploy::state::charges::is_in_block;
use crate::deploy::status::etcd::member_state;
use crate::deploy::status::image::{UsedImage, used_image, used_images};
use crate::deploy::status::shape::{EtcdState, StackState};
use crate::plural::count_of;
use crate::well_known::{CLUSTER_TAG, ROLE_TAG};

/// The cluster that a stack is of, and the part of it; none if the stack is not infra's.
#[must_use]
pub(super) fn owner_of(stack: &Stack) -> Option<(ClusterName, StackPart)> {
    let cluster: ClusterName = stack.tags.get(CLUSTER_TAG)?.parse().ok()?;
    let part = StackPart::from_stack_name(&cluster, &stack.name)?;
    Some((cluster, part))
}

/// What was read of a region's clusters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region<'a> {
    /// The name of the region.
    pub(super) name: &'a str,
    /// The Auto Scaling groups of all clusters; none if they could not be read.
    pub(super) groups: Option<&'a [ScalingGroup]>,
    /// The images that stacks name and that exist, by id; none if they could not be read.
    pub(super) images: Option<&'a BTreeMap<String, Image>>,
    /// The prices of the region, if they are known.
    pub(super) prices: Option<&'a Prices>,
    /// The time.
    pub(super) now: OffsetDateTime,
}

impl ListedCluster {
    /// The cluster of these stacks.
    pub(super) fn judge(
        name: &ClusterName,
        stacks: &BTreeMap<StackPart, Stack>,
        region: &Region<'_>,
    ) -> Self {
        let outputs = stacks.get(&StackPart::ControlPlane).map(|stack| &stack.outputs);
        let output = |key: &str| outputs.and_then(|outputs| outputs.get(key));
        let states: Vec<StackState> = stacks.values().map(StackState::of).collect();
        let mut problems: Vec<String> = states.iter().filter_map(StackState::problem).collect();
        if outputs.is_none() {
            problems.push("there is no control plane".to_owned());
        }
        let machines = region.groups.map(|groups| Machines::of(name, stacks, groups));
        problems.extend(machines.iter().flat_map(|machines| machines.problems.clone()));
        let images = region.images.map_or_else(Vec::new, |images| {
            let used = used_images(stacks.values()).into_iter();
            used.map(|(id, stacks)| {
                let found = images.get(&id);
                used_image(id, stacks, found, region.now)
            })
            .collect()
        });
        problems.extend(images.iter().filter_map(UsedImage::problem));
        let certificates = output("CertificatesExpire").and_then(|text| FirstExpiry::read(text, region.now));
        problems.extend(certificates.as_ref().and_then(FirstExpiry::problem));
        let machines_cost = region.groups.zip(region.prices).map(|(groups, prices)| {
            CostSummary::new(&cost_of_machines(name, stacks, groups, prices), prices, region.now.date())
        });
        let (nodes, etcd) = machines.map(|machines| (machines.nodes, machines.etcd)).unzip();
        Self {
            cluster: name.to_string(),
            region: region.name.to_owned(),
            healthy: problems.is_empty(),
            problems,
            warnings: images.iter().filter_map(UsedImage::warning).collect(),
            kubernetes: output("KubernetesVersion").cloned(),
            stacks: states,
            nodes,
            etcd,
            images: images.into_iter().map(|image| image.state).collect(),
            machines_cost,
            certificates,
        }
    }
}

/// What the machines of a cluster cost that run now.
fn cost_of_machines(
    cluster: &ClusterName,
    stacks: &BTreeMap<StackPart, Stack>,
    groups: &[ScalingGroup],
    prices: &Prices,
) -> Cost {
    let is_prepaid =
        |group: &ScalingGroup| match group.tags.get(ROLE_TAG).and_then(|name| Role::from_name(name)) {
            Some(Role::Pool(pool)) => stacks.get(&StackPart::Pool(pool)).is_some_and(is_in_block),
            _ => false,
        };
    let charges: Vec<Charge> = groups
        .iter()
        .filter(|group| group.tags.get(CLUSTER_TAG).map(String::as_str) == Some(cluster.as_str()))
        .flat_map(|group| group.machines.iter().map(move |machine| (group, machine)))
        .filter(|(_, machine)| !machine.is_terminating())
        .map(|(group, machine)| {
            if is_prepaid(group) {
                return Charge::Prepaid;
            }
            let (types, zones) = (vec![machine.instance_type.clone()], vec![machine.zone.clone()]);
            Charge::Machine(MachineCharge { types, spot: group.spot, zones })
        })
        .collect();
    Cost::of(charges.iter().map(|charge| (1, charge)), prices)
}

/// The machines of a cluster, and what is wrong with them.
struct Machines {
    nodes: Vec<MachinesState>,
    etcd: MachinesState,
    problems: Vec<String>,
}

impl Machines {
    fn of(cluster: &ClusterName, stacks: &BTreeMap<StackPart, Stack>, groups: &[ScalingGroup]) -> Self {
        let of_cluster =
            |group: &&ScalingGroup| group.tags.get(CLUSTER_TAG).map(String::as_str) == Some(cluster.as_str());
        let role =
            |group: &'_ ScalingGroup| group.tags.get(ROLE_TAG).filter(|name| Role::is_name(name)).cloned();
        let by_role: BTreeMap<String, &ScalingGroup> =
            groups.iter().filter(of_cluster).filter_map(|group| Some((role(group)?, group))).collect();
        let is_good = |part: &StackPart| stacks.get(part).is_some_and(|stack| StackState::of(stack).good);

        let mut problems = Vec::new();
        let etcd = etcd_state(&by_role);
        // Before the control plane is complete no machine of it is lost.
        if is_good(&StackPart::ControlPlane) {
            problems.extend(etcd.problems());
            if etcd.wanted == 0 {
                problems.push("etcd: no member has an Auto Scaling group".to_owned());
            }
        }
        let mut nodes = Vec::new();
        for part in stacks.keys() {
            let (role, name, what) = match part {
                StackPart::ControlPlane => {
                    (Role::Controller, "controllers".to_owned(), "controllers".to_owned())
                }
                StackPart::Pool(pool) => (Role::Pool(pool.clone()), pool.to_string(), format!("pool {pool}")),
                StackPart::Network | StackPart::Storage => continue,
            };
            match by_role.get(&role.name()) {
                Some(group) => {
                    let state = machines_state(name, group);
                    let MachinesState { in_service, wanted, .. } = state;
                    if in_service < wanted {
                        problems.push(format!("{what}: {in_service} of {wanted} machines are in service"));
                    }
                    nodes.push(state);
                }
                None if is_good(part) => problems.push(format!("{what}: there is no Auto Scaling group")),
                None => {}
            }
        }
        let etcd =
            MachinesState { name: "etcd".to_owned(), in_service: etcd.in_service, wanted: etcd.wanted };
        Self { nodes, etcd, problems }
    }
}

fn machines_state(name: String, group: &ScalingGroup) -> MachinesState {
    MachinesState {
        name,
        in_service: group.machines.iter().filter(|machine| machine.is_in_service()).count(),
        wanted: usize::try_from(group.desired).unwrap_or(usize::MAX),
    }
}

/// The members up to the last that has an Auto Scaling group: how many there should be is not in a listing.
fn etcd_state(by_role: &BTreeMap<String, &ScalingGroup>) -> EtcdState {
    let number = |name: &String| match Role::from_name(name) {
        Some(Role::EtcdMember(number)) => Some(number),
        _ => None,
    };
    let count = by_role.keys().filter_map(number).max().map_or(0, |last| last.saturating_add(1));
    let names = (0..count.min(LARGEST_ETCD)).map(|number| Role::EtcdMember(number).name());
    EtcdState::of(names.map(|name| {
        let group = by_role.get(&name).copied();
        member_state(name, group)
    }))
}

/// What to do about certificates that expire soon.
const RENEWAL: &str = "run `infra render credentials --renew`, then `infra up`";

/// No cluster has more members; a tag that anyone may write must not make the list long.
const LARGEST_ETCD: u32 = 9;

impl FirstExpiry {
    fn read(text: &str, now: OffsetDateTime) -> Option<Self> {
        let expires = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        Some(Self { expires, days_left: days_until(expires, now) })
    }

    fn problem(&self) -> Option<String> {
        let what = match self.days_left {
            FEWEST_DAYS_LEFT.. => return None,
            0.. => format!("a certificate has {} left", count_of(self.days_left, "day")),
            _ => "a certificate has expired".to_owned(),
        };
        Some(format!("{what}; {RENEWAL}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use time::macros::datetime;
    use time::{Duration, OffsetDateTime};

    use super::{Region, cost_of_machines, owner_of};
    use crate::aws::{GroupMachine, ScalingGroup, Stack};
    use crate::blueprint::{BLOCK_ENDS_AT, Currency, Prices, StackPart};
    use crate::config::values::Money;
    use crate::deploy::status::list::shape::{ListedCluster, MachinesState};
    use crate::deploy::test_stack::network_stack;
    use crate::well_known::{CLUSTER_TAG, ROLE_TAG};

    const NOW: OffsetDateTime = datetime!(2026-03-01 12:00 UTC);

    fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn stack(part: &str, status: &str, outputs: &[(&str, &str)]) -> Stack {
        Stack {
            name: format!("paddle-{part}"),
            tags: tags(&[(CLUSTER_TAG, "paddle")]),
            outputs: tags(outputs),
            ..network_stack(status)
        }
    }

    fn group(role: &str, desired: u32, in_service: usize) -> ScalingGroup {
        let machine = GroupMachine {
            id: "i-1".to_owned(),
            state: "InService".to_owned(),
            template_version: None,
            instance_type: String::new(),
            zone: String::new(),
        };
        ScalingGroup {
            machines: vec![machine; in_service],
            tags: tags(&[(CLUSTER_TAG, "paddle"), (ROLE_TAG, role)]),
            ..ScalingGroup::of_test(role, desired)
        }
    }

    fn judge(stacks: Vec<Stack>, groups: &[ScalingGroup]) -> Option<ListedCluster> {
        let mut cluster = None;
        let mut parts = BTreeMap::new();
        for stack in stacks {
            let (name, part) = owner_of(&stack)?;
            cluster = Some(name);
            parts.insert(part, stack);
        }
        let region = Region {
            name: "us-west-2",
            groups: Some(groups),
            images: Some(&BTreeMap::new()),
            prices: None,
            now: NOW,
        };
        Some(ListedCluster::judge(&cluster?, &parts, &region))
    }

    #[test]
    fn machines_of_a_capacity_block_are_not_charged_by_the_hour() {
        let mut groups = [group("controller", 1, 1), group("pool-cpu", 2, 2)];
        for machine in groups.iter_mut().flat_map(|group| &mut group.machines) {
            machine.instance_type = "p5.48xlarge".to_owned();
        }
        let price: Money = "55.04".parse().unwrap_or_default();
        let mut prices = Prices::none(NOW.date(), Currency::Usd);
        prices.machines = [("p5.48xlarge".to_owned(), price)].into();
        let cost = |ends_at: &str| {
            let cluster = "paddle".parse().ok()?;
            let mut stacks: BTreeMap<StackPart, Stack> =
                whole(&[]).into_iter().filter_map(|stack| Some((owner_of(&stack)?.1, stack))).collect();
            let pool = stacks.get_mut(&StackPart::Pool("cpu".parse().ok()?))?;
            pool.parameters = tags(&[(BLOCK_ENDS_AT, ends_at)]);
            let cost = cost_of_machines(&cluster, &stacks, &groups, &prices);
            Some((cost.per_hour(), cost.prepaid_machines))
        };
        assert_eq!(cost(""), Some((price.times(3), 0)), "an ordinary reservation");
        assert_eq!(cost("20 11 20 11 *"), Some((price, 2)));
    }

    fn problems(stacks: Vec<Stack>, groups: &[ScalingGroup]) -> Vec<String> {
        judge(stacks, groups).map(|cluster| cluster.problems).unwrap_or_default()
    }

    fn whole(outputs: &[(&str, &str)]) -> Vec<Stack> {
        let complete = "CREATE_COMPLETE";
        ["network", "pool-cpu"]
            .map(|part| stack(part, complete, &[]))
            .into_iter()
            .chain([stack("control-plane", complete, outputs)])
            .collect()
    }

    #[test]
    fn machines_are_those_of_the_clusters_own_groups() {
        let groups = [group("etcd-0", 1, 1), group("controller", 2, 2), group("pool-cpu", 3, 3)];
        let mut foreign = group("pool-cpu", 9, 0);
        foreign.tags.insert(CLUSTER_TAG.to_owned(), "paddle-2".to_owned());
        let cluster = judge(whole(&[]), &[groups.as_slice(), &[foreign]].concat());
        let nodes = cluster.as_ref().and_then(|cluster| cluster.nodes.clone()).unwrap_or_default();
        let state =
            |name: &str, count| MachinesState { name: name.to_owned(), in_service: count, wanted: count };
        assert_eq!(nodes, [state("controllers", 2), state("cpu", 3)]);
        assert_eq!(cluster.map(|cluster| cluster.problems), Some(Vec::new()));
    }

    #[test]
    fn a_lost_machine_and_a_lost_group_are_problems_once_the_stack_is_complete() {
        let groups = [group("etcd-0", 1, 1), group("etcd-2", 1, 1), group("controller", 2, 1)];
        assert_eq!(
            problems(whole(&[]), &groups),
            [
                "etcd: 2 of 3 members are in service; if one more is lost, the API stops",
                "controllers: 1 of 2 machines are in service",
                "pool cpu: there is no Auto Scaling group",
            ]
        );
        let creating = vec![stack("control-plane", "CREATE_IN_PROGRESS", &[])];
        assert_eq!(problems(creating, &[]), ["stack paddle-control-plane is in CREATE_IN_PROGRESS"]);
        // A tag that someone wrote by hand does not make the list endless.
        let absurd = judge(whole(&[]), &[group("etcd-4294967295", 1, 1)]);
        assert_eq!(absurd.and_then(|cluster| cluster.etcd).map(|etcd| etcd.wanted), Some(9));
    }

    #[test]
    fn a_certificate_is_a_problem_from_thirty_days_before_it_expires() {
        let groups = [group("etcd-0", 1, 1), group("controller", 1, 1), group("pool-cpu", 1, 1)];
        let found = |left: Duration| {
            let expiry =
                (NOW + left).format(&time::format_description::well_known::Rfc3339).unwrap_or_default();
            problems(whole(&[("CertificatesExpire", &expiry)]), &groups)
        };
        assert_eq!(found(Duration::days(30)), [""; 0]);
        let text = "; run `infra render credentials --renew`, then `infra up`";
        assert_eq!(found(Duration::hours(47)), [format!("a certificate has 1 day left{text}")]);
        assert_eq!(found(Duration::hours(-1)), [format!("a certificate has expired{text}")]);
        let unknown = judge(whole(&[("CertificatesExpire", "soon")]), &groups);
        assert!(unknown.is_some_and(|cluster| cluster.healthy && cluster.certificates.is_none()));
    }

    #[test]
    fn a_stack_is_a_clusters_by_its_tag_and_its_name() {
        let is_owned = |name: &str, cluster: &str| {
            let stack = Stack {
                name: name.to_owned(),
                tags: tags(&[(CLUSTER_TAG, cluster)]),
                ..network_stack("CREATE_COMPLETE")
            };
            owner_of(&stack).is_some()
        };
        assert!(is_owned("x-pool-network", "x-pool") && is_owned("x-pool-network", "x"));
        assert!(!is_owned("billing", "x") && !is_owned("X-network", "X"));
    }
}
