//! Several users or directories for one cluster, one after the other: AWS holds the state, and no user breaks what another relies on.

use std::fs;

use serde_json::json;

use crate::support::element;
use crate::support::reading::is_reading;
use crate::support::world::World;

const OLD_IMAGE: &str = "Flatcar-stable-4230.2.3-hvm";
const NEW_IMAGE: &str = "Flatcar-stable-4459.2.1-hvm";

/// No call since the last `clear` changes anything.
#[track_caller]
fn expect_nothing_changed(world: &World) {
    let changing: Vec<String> =
        world.proxy.operations().into_iter().filter(|operation| !is_reading(operation)).collect();
    assert_eq!(changing, [""; 0]);
}

fn image_id(world: &World, name: &str) -> String {
    let aws = world.aws();
    let form = [
        ("Action", "DescribeImages"),
        ("Version", "2016-11-15"),
        ("Filter.1.Name", "name"),
        ("Filter.1.Value.1", name),
    ];
    element(&aws.post("ec2", &aws.region, &form), "imageId").unwrap().to_owned()
}

fn write_lock(world: &World, cluster: &str, region: &str, image: &str) {
    let id = image_id(world, image);
    let text = format!("cluster: {cluster}\nregion: {region}\nimage:\n  id: {id}\n  name: {image}\n");
    fs::write(world.workspace.path("infra.lock"), text).unwrap();
}

/// A cluster whose machines boot an image that is not the newest.
fn with_old_image(world: World) -> World {
    write_lock(&world, &world.cluster(), &world.aws().region, OLD_IMAGE);
    world.up([]).expect_code(0);
    assert_eq!(images_in_use(&world), vec![image_id(&world, OLD_IMAGE); 3]);
    world
}

/// The images of all running machines.
fn images_in_use(world: &World) -> Vec<String> {
    let aws = world.aws();
    let answer = aws.post("ec2", &aws.region, &[("Action", "DescribeInstances"), ("Version", "2016-11-15")]);
    let machines = answer.split("<instanceId>").skip(1);
    let running = machines.filter(|machine| machine.contains("<name>running</name>"));
    running.map(|machine| element(machine, "imageId").unwrap().to_owned()).collect()
}

#[test]
fn a_user_with_other_keys_is_refused() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let other = world.workspace.elsewhere(false);
    other.infra(["render", "credentials", "--generate-ca"]).run().expect_code(0);
    world.proxy.clear();
    let outcome = world.infra_in(&other, ["up", "--yes"]).run().expect_code(1);
    outcome
        .expect_stderr(
            "credentials/ does not hold the keys this cluster runs on: ca, etcd-ca, service-account, secrets-encryption differ",
        )
        .expect_stderr("copy credentials/ from whoever created the cluster");
    expect_nothing_changed(&world);
    world.infra_in(&other, ["plan"]).run().expect_code(1).expect_stderr("does not hold the keys");
    expect_nothing_changed(&world);

    // One key is enough, and the one that encrypts secrets is easily forgotten: nothing is signed with it.
    let half = world.workspace.elsewhere(true);
    let name = "secrets-encryption.key";
    fs::copy(other.credentials().join(name), half.credentials().join(name)).unwrap();
    let outcome = world.infra_in(&half, ["up", "--yes"]).run().expect_code(1);
    outcome.expect_stderr("runs on: secrets-encryption differ");
    expect_nothing_changed(&world);
}

#[test]
fn a_lost_lock_is_written_again_from_the_live_stacks() {
    let world = with_old_image(World::of_golden("minimal"));
    let lock = world.workspace.path("infra.lock");
    let old = image_id(&world, OLD_IMAGE);
    assert_ne!(old, image_id(&world, NEW_IMAGE));
    fs::remove_file(&lock).unwrap();
    world.proxy.clear();
    let outcome = world.up([]).expect_code(0);
    outcome
        .expect_stderr(&format!("infra.lock is missing; machines keep the image of the live stacks, {old}"))
        .expect_stderr("no stack had to change");
    expect_nothing_changed(&world);
    let text = world.workspace.read("infra.lock");
    assert!(text.contains(&old) && text.contains(OLD_IMAGE), "{text}");

    let outcome = world.up([]).expect_code(0);
    assert!(!outcome.stderr.contains("infra.lock"), "{}", outcome.stderr);
}

#[test]
fn the_cluster_file_and_the_credentials_are_all_that_must_be_kept() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let copy = world.workspace.elsewhere(true);
    world.proxy.clear();
    world.infra_in(&copy, ["up"]).run().expect_code(0).expect_stderr("no stack had to change");
    expect_nothing_changed(&world);
    assert_eq!(copy.read("infra.lock"), world.workspace.read("infra.lock"));
    world.infra_in(&copy, ["status"]).run().expect_code(0);
}

#[test]
fn a_lock_of_another_cluster_is_refused() {
    let world = World::of_golden("minimal");
    for (cluster, region, complaint) in [
        ("other", "us-west-2", "infra.lock belongs to clusterName 'other', cluster.yaml says 'minimal'"),
        ("minimal", "eu-west-1", "infra.lock belongs to region 'eu-west-1', cluster.yaml says 'us-west-2'"),
    ] {
        write_lock(&world, cluster, region, NEW_IMAGE);
        let before = world.workspace.read("infra.lock");
        world.up([]).expect_code(1).expect_stderr(complaint);
        assert_eq!(world.workspace.read("infra.lock"), before);
    }
    expect_nothing_changed(&world);
    assert!(world.stacks().is_empty());
}

#[test]
fn a_deleted_image_is_reported_before_anything_is_changed() {
    let world = with_old_image(World::alone("minimal"));
    world.control(json!({"gone_images": [image_id(&world, OLD_IMAGE)]}));
    world.proxy.clear();
    world.up([]).expect_code(1).expect_stderr("infra up --upgrade-os");
    expect_nothing_changed(&world);

    world.up(["--upgrade-os", "--yes"]).expect_code(0);
    assert_eq!(images_in_use(&world), vec![image_id(&world, NEW_IMAGE); 3]);
    assert!(world.workspace.read("infra.lock").contains(NEW_IMAGE));
    world.up([]).expect_code(0).expect_stderr("no stack had to change");
    world.run(["status"]).expect_code(0);
}

#[test]
fn an_upgrade_shows_what_it_replaces_and_replaces_all_of_it() {
    let world = with_old_image(World::of_golden("minimal"));
    let new = image_id(&world, NEW_IMAGE);
    let plan = world.run(["plan", "--upgrade-os", "--detailed-exitcode"]).expect_code(3);
    let origin = format!("{NEW_IMAGE} of account 075585003325");
    for part in ["control plane: ", "pool cpu: ", "etcd member 0", "machines of pool cpu", &new, &origin] {
        assert!(plan.stdout.contains(part), "no '{part}' in:\n{}", plan.stdout);
    }
    assert!(world.workspace.read("infra.lock").contains(OLD_IMAGE), "a plan writes no lock");

    let outcome = world.up(["--upgrade-os", "--yes"]).expect_code(0);
    outcome.expect_stderr(&new).expect_stderr("control plane: ").expect_stderr("pool cpu: ");
    assert_eq!(images_in_use(&world), vec![new; 3]);
    assert!(world.workspace.read("infra.lock").contains(NEW_IMAGE));
    world.run(["status"]).expect_code(0);
}

#[test]
fn a_foreign_stack_is_not_changed() {
    let world = World::of_golden("minimal");
    let aws = world.aws();
    let template = json!({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}).to_string();
    let form = [
        ("Action", "CreateStack"),
        ("Version", "2010-05-15"),
        ("StackName", "minimal-network"),
        ("TemplateBody", &template),
    ];
    aws.post("cloudformation", &aws.region, &form);
    let outcome = world.up([]).expect_code(1);
    outcome
        .expect_stderr("there is a stack 'minimal-network' that infra did not create")
        .expect_stderr("another clusterName");
    expect_nothing_changed(&world);
    assert_eq!(world.stacks(), [("minimal-network".to_owned(), "CREATE_COMPLETE".to_owned())].into());
}
