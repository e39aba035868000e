//! Auto Scaling does not terminate machines of pools to balance availability zones: neither after the first `up`, nor after a rolling
//! update that switched rebalancing on again.

use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

const SUSPEND: &str = "autoscaling:SuspendProcesses";

/// The suspended processes of the Auto Scaling groups, by the role of their machines.
fn suspended(world: &World) -> Vec<(String, bool)> {
    let answer = world.aws().post(
        "autoscaling",
        "us-west-2",
        &[("Action", "DescribeAutoScalingGroups"), ("Version", "2011-01-01")],
    );
    let groups = answer.split("<AutoScalingGroupName>").skip(1).map(|group| {
        let role =
            group.split("<Value>").find(|value| value.starts_with("pool-") || value.starts_with("etcd-"));
        let role = role.and_then(|value| value.split('<').next()).unwrap_or("controller");
        (role.to_owned(), group.contains("<ProcessName>AZRebalance</ProcessName>"))
    });
    let mut groups: Vec<(String, bool)> = groups.collect();
    groups.sort();
    groups.dedup();
    groups
}

#[test]
fn az_rebalancing_is_suspended_for_pools_in_several_availability_zones() {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| {
        let pools = "pools:\n- {name: spread, instanceType: m5.large}\n\
                     - {name: near, instanceType: m5.large, availabilityZones: [us-west-2a]}\n";
        text.replace("Zones: [us-west-2a]\n", "Zones: [us-west-2a, us-west-2b]\n").replace("pools:\n", pools)
    });
    world.up([]).expect_code(0);
    let groups = suspended(&world);
    let of = |role: &str| groups.iter().find(|(found, _)| found == role).unwrap().1;
    assert!(of("pool-spread"), "{groups:?}");
    // In one availability zone there is nothing to balance.
    assert!(!of("pool-near"), "{groups:?}");
    assert!(!of("controller"), "{groups:?}");

    world.proxy.clear();
    world.up([]).expect_code(0);
    assert_eq!(world.proxy.count(SUSPEND), 0);

    // As a rolling update does at its end.
    let name = world.aws().post(
        "autoscaling",
        "us-west-2",
        &[("Action", "DescribeAutoScalingGroups"), ("Version", "2011-01-01")],
    );
    let spread =
        name.split("<AutoScalingGroupName>").find(|part| part.contains("<Value>pool-spread</Value>"));
    let spread = spread.unwrap().split('<').next().unwrap().to_owned();
    world.aws().post(
        "autoscaling",
        "us-west-2",
        &[
            ("Action", "ResumeProcesses"),
            ("Version", "2011-01-01"),
            ("AutoScalingGroupName", &spread),
            ("ScalingProcesses.member.1", "AZRebalance"),
        ],
    );
    world.proxy.fault(SUSPEND, Fault::AccessDenied, Times::First(1));
    world.up([]).expect_code(1).expect_stderr(SUSPEND);
    world.up([]).expect_code(0);
    assert_eq!(world.proxy.count(SUSPEND), 2);
    let groups = suspended(&world);
    assert!(groups.contains(&("pool-spread".to_owned(), true)), "{groups:?}");
}
