//! Two users work on one cluster at the same time: nothing breaks, and each gets a true report.

mod destroys;
mod ups;
mod ups_and_destroys;

use std::time::Duration;

use serde_json::json;

use crate::support::census::Census;
use crate::support::fault_proxy::Fault;
use crate::support::invocation::Running;
use crate::support::wait_until;
use crate::support::world::World;

/// There is no answer until the proxy is healed; a client gives up after a minute and a half.
const SILENCE: Fault = Fault::Hang(Duration::from_secs(200));

/// A cluster with a file system, and what there is before it.
fn world() -> (World, Census) {
    let world = World::of_golden("paddle-tutorial");
    let before = world.census();
    (world, before)
}

fn stack(world: &World, part: &str) -> String {
    format!("{}-{part}", world.cluster())
}

/// Returns as soon as all of these stacks have a status that begins so.
#[track_caller]
fn wait_for(world: &World, parts: &[&str], status: &str) {
    wait_until(&format!("{parts:?} are in {status}"), || {
        let stacks = world.stacks();
        let is_in =
            |part: &&str| stacks.get(&stack(world, part)).is_some_and(|found| found.starts_with(status));
        parts.iter().all(is_in)
    });
}

/// Returns as soon as there is no such stack.
#[track_caller]
fn wait_until_gone(world: &World, part: &str) {
    wait_until(&format!("{part} is gone"), || !world.stacks().contains_key(&stack(world, part)));
}

/// Operations on these stacks wait until they are no longer held.
fn hold(world: &World, parts: &[&str]) {
    let names: Vec<String> = parts.iter().map(|part| stack(world, part)).collect();
    world.control(json!({"hold": names}));
}

fn destroy(world: &World) -> Running {
    world.infra(["destroy", "--yes"]).spawn()
}

/// After two users: one of them can delete everything, and bring a whole cluster up.
#[track_caller]
fn expect_good_end(world: &World, before: &Census) {
    world.control(json!({}));
    world.proxy.heal();
    world.run(["destroy", "--delete-data", "--confirm", &world.cluster()]).expect_code(0);
    assert_eq!(world.census(), *before);
    world.up([]).expect_code(0);
    world.run(["status"]).expect_code(0);
}
