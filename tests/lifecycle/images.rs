//! Machines boot images of the publisher only, whatever infra.lock says.

use std::fs;

use crate::support::reading::is_reading;
use crate::support::world::World;

const NAME: &str = "Flatcar-stable-4459.2.1-hvm";

/// An image of the account itself.
fn make_image(world: &World, name: &str) -> String {
    let disk = ("RootDeviceName", "/dev/xvda");
    let facts = [("Name", name), ("Architecture", "x86_64"), ("VirtualizationType", "hvm"), disk];
    world.made("RegisterImage", &facts, "imageId")
}

/// Has infra.lock name an image.
fn lock(world: &World, id: &str, name: &str) {
    let text = format!("cluster: minimal\nregion: us-west-2\nimage:\n  id: {id}\n  name: {name}\n");
    fs::write(world.workspace.path("infra.lock"), text).unwrap();
}

/// Neither `validate --online` nor `plan` nor `up` accepts the lock, with or without preflight.
#[track_caller]
fn expect_refused(world: &World, refused: &str, help: &str) {
    world.proxy.clear();
    let place = format!("s3://{}/clusters", world.bucket());
    let outcome = world.run(["validate", "--online", "--s3-uri", &place]).expect_code(2);
    outcome.expect_stderr(refused).expect_stderr(help);
    for arguments in [&["plan"][..], &["up", "--yes"], &["up", "--yes", "--skip-preflight"]] {
        let outcome = world.run([arguments, &["--s3-uri", &place]].concat()).expect_code(1);
        outcome.expect_stderr(refused).expect_stderr(help);
    }
    let changing: Vec<String> =
        world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect();
    assert_eq!(changing, [""; 0]);
}

#[test]
fn an_image_of_another_account_is_refused() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let account = world.workspace.account().to_owned();
    for name in ["totally-not-flatcar", NAME] {
        let image = make_image(&world, name);
        lock(&world, &image, NAME);
        let refused = format!("the image {image} ({name}) belongs to account {account}, not to 075585003325");
        expect_refused(&world, &refused, "os.imageOwner");
    }
    // Without a lock the live stacks decide, which no one can change without the account's rights.
    fs::remove_file(world.workspace.path("infra.lock")).unwrap();
    world.up([]).expect_code(0).expect_stderr("no stack had to change");
}

#[test]
fn an_image_under_another_name_is_refused() {
    let world = World::of_golden("minimal");
    world.run(["lock"]).expect_code(0);
    let text = world.workspace.read("infra.lock");
    let id = text.split_once("id: ").unwrap().1.lines().next().unwrap().to_owned();
    lock(&world, &id, "Flatcar-stable-9999.0.0-hvm");
    let refused =
        format!("infra.lock calls the image {id} 'Flatcar-stable-9999.0.0-hvm', but its name is '{NAME}'");
    expect_refused(&world, &refused, "find out who changed infra.lock");

    lock(&world, &id, NAME);
    world.workspace.edit(|text| format!("{text}os: {{channel: beta}}\n"));
    let refused = format!("the image {id} is called '{NAME}', which does not match Flatcar-beta-*-hvm");
    expect_refused(&world, &refused, "put the channel back into os.channel");
    world.up(["--upgrade-os"]).expect_code(0);
    assert!(world.workspace.read("infra.lock").contains("Flatcar-beta-"));
}

#[test]
fn copies_of_an_account_that_cluster_yaml_names_are_used() {
    let world = World::of_golden("minimal");
    let account = world.workspace.account().to_owned();
    world.workspace.edit(|text| format!("{text}os: {{imageOwner: \"{account}\"}}\n"));
    world
        .up([])
        .expect_code(1)
        .expect_stderr(&format!("account {account} has no image Flatcar-stable-*-hvm"));
    let image = make_image(&world, NAME);
    world.up([]).expect_code(0);
    assert!(world.workspace.read("infra.lock").contains(&image));
    world.workspace.edit(|text| text.replace(&account, "222233334444"));
    let refused = format!("the image {image} ({NAME}) belongs to account {account}, not to 222233334444");
    expect_refused(&world, &refused, "os.imageOwner");
}
