//! Two runs of `infra destroy` at the same time.

use serde_json::json;

use super::{expect_good_end, hold, wait_for, world};
use crate::support::fault_proxy::FaultProxy;

/// Two destroys of a whole cluster, the second when the first has reached a stack; both succeed.
fn destroy_twice(first: &[&str], second: &[&str], moment: Option<&str>) {
    let (world, before) = world();
    world.up([]).expect_code(0);
    world.control(json!({"delay": 0.3}));
    let name = world.cluster();
    let arguments = |with: &[&str]| -> Vec<String> {
        let all = ["destroy"].iter().chain(with).map(|word| word.replace("NAME", &name));
        all.collect()
    };
    let (first, second) = (arguments(first), arguments(second));
    let keeps_files = |arguments: &[String]| !arguments.contains(&"--delete-data".to_owned());
    if let Some(part) = moment {
        hold(&world, &[part]);
    }
    let running = world.infra_in(&world.workspace, first.iter().map(String::as_str)).spawn();
    if let Some(part) = moment {
        wait_for(&world, &[part], "DELETE_IN_PROGRESS");
    }
    let (other, way) = (world.workspace.elsewhere(true), FaultProxy::start(&world.proxy.url()));
    let late =
        other.infra(second.iter().map(String::as_str)).endpoint(&way.url()).kubernetes(&world.api).spawn();
    // The second call is made once the first is answered: by then the late run has seen what there is to delete.
    way.wait_for("cloudformation:DescribeStacks", 2);
    world.control(json!({}));
    running.wait().expect_code(0).expect_stderr("is deleted");
    late.wait().expect_code(0).expect_stderr("is deleted");
    if !keeps_files(&first) || !keeps_files(&second) {
        assert_eq!(world.census(), before);
    } else {
        assert_eq!(world.census()["file systems"], 1);
        assert!(world.stacks().is_empty());
    }
    expect_good_end(&world, &before);
}

const PLAIN: &[&str] = &["--yes"];
const WITH_DATA: &[&str] = &["--delete-data", "--confirm", "NAME"];

#[test]
fn two_destroys_at_once() {
    destroy_twice(PLAIN, PLAIN, None);
}

#[test]
fn two_destroys_with_data_at_once() {
    destroy_twice(WITH_DATA, WITH_DATA, None);
}

#[test]
fn two_destroys_with_different_options_at_once() {
    destroy_twice(PLAIN, WITH_DATA, None);
}

#[test]
fn a_destroy_joins_another_one() {
    destroy_twice(PLAIN, PLAIN, Some("control-plane"));
}

#[test]
fn a_destroy_joins_another_one_at_its_last_stack() {
    destroy_twice(WITH_DATA, WITH_DATA, Some("network"));
}
