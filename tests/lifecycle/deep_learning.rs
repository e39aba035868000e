//! A pool on AWS's Deep Learning image: its image is locked with its root disk, and machines keep it.

use std::fs;

use crate::support::world::World;

const NAME: &str = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20261009";

#[test]
fn the_image_is_locked_with_its_root_disk_and_kept() {
    let world = World::of_golden("deep-learning");
    world.run(["lock"]).expect_code(0).expect_stdout(NAME);
    let lock = world.workspace.read("infra.lock");
    let locked = format!("  name: {NAME}\n  rootDevice: /dev/sda1\n  smallestGiB: 75\n");
    assert!(lock.contains(&locked), "{lock}");

    world
        .workspace
        .edit(|text| text.replace("image: deep-learning", "image: deep-learning\n  rootVolumeGiB: 60"));
    let refused = format!("rootVolumeGiB of pool ubuntu is 60, and the image {NAME} needs 75 GiB");
    world.up([]).expect_code(1).expect_stderr(&refused).expect_stderr("set rootVolumeGiB to 75 or more");
    world.workspace.edit(|text| text.replace("\n  rootVolumeGiB: 60", ""));

    world.up([]).expect_code(0);
    let id = lock.split_once("deepLearning:\n  id: ").unwrap().1.lines().next().unwrap().to_owned();
    let parameters = |pool: &str| {
        let name = format!("deep-pool-{pool}");
        let form = [("Action", "DescribeStacks"), ("Version", "2010-05-15"), ("StackName", name.as_str())];
        world.aws().post("cloudformation", "us-west-2", &form)
    };
    let ubuntu = parameters("ubuntu");
    assert!(
        ubuntu.contains(&id) && ubuntu.contains("<ParameterValue>/dev/sda1</ParameterValue>"),
        "{ubuntu}"
    );
    let flatcar = parameters("flatcar");
    assert!(!flatcar.contains(&id) && !flatcar.contains("RootDevice"), "{flatcar}");

    // Without a lock the live stacks decide.
    fs::remove_file(world.workspace.path("infra.lock")).unwrap();
    world.up([]).expect_code(0).expect_stderr("no stack had to change");
    assert!(world.workspace.read("infra.lock").contains(&locked));

    let other = lock.replace("/dev/sda1", "/dev/xvda");
    fs::write(world.workspace.path("infra.lock"), other).unwrap();
    let refused = format!("infra.lock describes the image {id} differently than AWS does");
    world.up([]).expect_code(1).expect_stderr(&refused).expect_stderr("find out who changed infra.lock");
    fs::write(world.workspace.path("infra.lock"), lock).unwrap();

    world.run(["status"]).expect_stdout(NAME);
    world.run(["destroy", "--yes"]).expect_code(0);
}
