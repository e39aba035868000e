//! What is unusual about capacity blocks: one that begins while `up` runs, one that AWS does not list, and quotas.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use serde_json::json;
use time::OffsetDateTime;

use crate::capacity_blocks::{NEW, expect_sizes, nothing_to_do, world};
use crate::support::outcome::Outcome;
use crate::support::world::{DAY, TimeOfBlock, World, minute};

/// The account is checked.
fn online(world: &World) -> Outcome {
    world.run(["validate", "--online", "--s3-uri", &format!("s3://{}/clusters", world.bucket())])
}

/// A small cluster with a pool in a capacity block that begins while `up` runs.
fn world_whose_block_begins() -> (World, String) {
    let (world, id) = world();
    let begins: Arc<OnceLock<OffsetDateTime>> = Arc::default();
    let (aws, block, known) = (world.aws(), id.clone(), Arc::clone(&begins));
    // To come when it is read, open when stacks are created.
    world.proxy.before("ec2:DescribeCapacityReservations", move || {
        begins.get_or_init(|| {
            let begins = OffsetDateTime::now_utc() + Duration::from_secs(2);
            let (hour, minute, second) = begins.to_hms();
            let text = format!("{}T{hour:02}:{minute:02}:{second:02}.000Z", begins.date());
            let action = [("Action", "PutCapacityBlock"), ("Version", "2016-11-15")];
            let times = [("CapacityReservationId", block.as_str()), ("StartDate", text.as_str())];
            aws.post("ec2", &aws.region, &[action, times].concat());
            begins
        });
    });
    world.proxy.before("cloudformation:CreateChangeSet", move || {
        while known.get().is_some_and(|begins| OffsetDateTime::now_utc() < *begins) {
            thread::sleep(Duration::from_millis(50));
        }
    });
    (world, id)
}

#[test]
fn a_block_that_begins_while_up_runs_is_said() {
    let (world, id) = world_whose_block_begins();
    world.up([]).expect_code(0).expect_stderr(&format!(
        "warning: the capacity block {id} of pool block has begun meanwhile: run `infra up` again if the pool has no machines"
    ));
    expect_sizes(&world, [0, 0, 0]);
    world.proxy.heal();
    let again = world.up([]).expect_code(0);
    assert!(!again.stderr.contains("has begun meanwhile"), "{}", again.stderr);
    expect_sizes(&world, [1, 2, 2]);
    nothing_to_do(&world);
}

#[test]
fn a_block_that_begins_while_up_runs_is_said_before_the_error() {
    let (world, id) = world_whose_block_begins();
    world.control(json!({"fail_create": {"Nodes": "it is not to be"}}));
    let failed = world.up([]).expect_code(6);
    let begun = format!("warning: the capacity block {id} of pool block has begun meanwhile");
    let at = |text: &str| failed.stderr.find(text).unwrap_or_else(|| panic!("{text}: {}", failed.stderr));
    assert!(at(&begun) < at("error: stack deep-pool-block failed"), "{}", failed.stderr);
    world.control(json!({}));
    world.proxy.heal();
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 2, 2]);
}

#[test]
fn a_block_that_aws_does_not_list_before_its_end_is_not_believed() {
    let (world, id) = world();
    let times = TimeOfBlock::from_now(DAY, 3 * DAY);
    world.put_block(&id, &times);
    world.up([]).expect_code(0);
    let lock = world.workspace.read("infra.lock");
    world.ec2("ForgetCapacityBlock", &[("CapacityReservationId", &id)]);
    let what = format!(
        "AWS lists no capacity block {id} of pool block, which ends on {} by infra.lock",
        minute(&times.ends)
    );
    for command in ["lock", "plan", "up"] {
        world
            .run([command])
            .expect_code(1)
            .expect_stderr(&what)
            .expect_stderr("use the account and the region of the block; `aws ec2 describe-capacity-reservations` lists yours")
            .expect_stderr("name another in capacityReservationId, or remove the pool from cluster.yaml");
    }
    online(&world).expect_code(1).expect_stderr(&format!("refused: capacity reservations: {what}"));
    world.run(["status"]).expect_code(0).expect_stdout(&format!("? {what}: use the account and the region"));
    assert_eq!(world.workspace.read("infra.lock"), lock);
    // What it advises.
    let other = world.put_block(NEW, &TimeOfBlock::from_now(2 * DAY, 3 * DAY));
    world.workspace.edit(|text| text.replace(&id, &other));
    world.up([]).expect_code(0);
    nothing_to_do(&world);
}

#[test]
fn machines_in_a_block_do_not_count_against_the_quota_of_on_demand_machines() {
    let (world, id) = world();
    world.put_block(&id, &TimeOfBlock::from_now(-60, DAY));
    world.up([]).expect_code(0);
    expect_sizes(&world, [1, 2, 2]);
    world.control(json!({"quotas": {"L-417A185B": 100}}));
    let checked = online(&world).expect_code(0);
    assert!(!checked.stderr.contains("quotas"), "{}", checked.stderr);
    let text = world.workspace.read("cluster.yaml");
    let more = "pools:\n- {name: more, image: deep-learning, instanceType: p5.48xlarge}\n";
    world.workspace.write("cluster.yaml", &text.replace("pools:\n", more));
    let needed = |wanted: u32, pool: &str| {
        format!(
            "refused: quotas: {wanted} vCPUs of on-demand P machines are needed by pool {pool}; the quota is 100, and 0 are in use"
        )
    };
    online(&world).expect_code(1).expect_stderr(&needed(192, "more"));

    // Machines that leave the block are on-demand machines.
    world.workspace.write("cluster.yaml", &text.replace(&format!("  capacityReservationId: {id}\n"), ""));
    online(&world).expect_code(1).expect_stderr(&needed(384, "block"));
}
