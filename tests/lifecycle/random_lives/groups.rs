//! The sizes of pools, as Auto Scaling has them and as the autoscaler sets them.

use crate::support::element;
use crate::support::world::World;

const VERSION: (&str, &str) = ("Version", "2011-01-01");

/// The name and the size of a pool's Auto Scaling group.
fn group(world: &World, pool: &str) -> Option<(String, u32)> {
    let aws = world.aws();
    let groups = aws.post("autoscaling", &aws.region, &[("Action", "DescribeAutoScalingGroups"), VERSION]);
    let mut groups = groups.split("<member><AutoScalingGroupName>");
    let mine = groups.find(|part| part.contains(&format!("<Value>pool-{pool}</Value>")))?;
    let name = mine.split('<').next()?.to_owned();
    Some((name, element(mine, "DesiredCapacity")?.parse().ok()?))
}

/// How many machines a pool's Auto Scaling group should have.
pub fn desired_count(world: &World, pool: &str) -> Option<u32> {
    Some(group(world, pool)?.1)
}

/// What the autoscaler does.
pub fn scale(world: &World, pool: &str, count: u32) {
    let Some((name, _)) = group(world, pool) else { return };
    let aws = world.aws();
    let count = count.to_string();
    let form = [
        ("Action", "SetDesiredCapacity"),
        VERSION,
        ("AutoScalingGroupName", &name),
        ("DesiredCapacity", &count),
    ];
    aws.post("autoscaling", &aws.region, &form);
}
