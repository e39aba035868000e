//! What `status` shows of a cluster that still works and would not survive the next loss: etcd members, the image, snapshots.

use serde_json::{Value, json};

use crate::schema_judge::{broken, expect_fit, expect_refused};
use crate::support::fault_proxy::{Fault, Times};
use crate::support::outcome::Outcome;
use crate::support::wait_until;
use crate::support::world::World;

const IMAGE: &str = "Flatcar-stable-4459.2.1-hvm";
const NO_CAPACITY: &str = "We currently do not have sufficient t3.medium capacity in the Availability Zone you requested (us-west-2b).\n \
                           Launching EC2 instance failed.";

/// A cluster that is complete.
fn whole(golden: &str) -> World {
    let world = World::of_golden(golden);
    world.up([]).expect_code(0);
    world
}

/// Uploads a snapshot as an etcd member does; gives its key.
fn save(world: &World, name: &str) -> String {
    let key = format!("clusters/{}/snapshots/{name}", world.cluster());
    let answer = world.aws().send("s3", "us-west-2", "PUT", &format!("/{}/{key}", world.bucket()), "x");
    assert_eq!(answer.status(), 200, "{}", answer.text());
    key
}

/// The line of the screen that begins with a word, without its columns.
#[track_caller]
fn line(outcome: &Outcome, word: &str) -> String {
    let found = outcome.stdout.lines().find(|line| line.split(' ').next() == Some(word));
    let found = found.unwrap_or_else(|| panic!("no line {word} in:\n{}", outcome.stdout));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The status as programs read it, which fits its schema.
fn document(world: &World, code: i32) -> Value {
    let text = world.run(["status", "--output", "json"]).expect_code(code).stdout;
    expect_fit("status", std::slice::from_ref(&text));
    serde_json::from_str(&text).unwrap()
}

fn lose_member(world: &World, role: &str) {
    let filters = [("Filter.1.Name", "tag:infra:role"), ("Filter.1.Value.1", role)];
    let machine = world.made("DescribeInstances", &filters, "instanceId");
    world.ec2("TerminateInstances", &[("InstanceId.1", &machine)]);
}

#[test]
fn a_healthy_cluster_shows_its_members_its_image_and_its_newest_snapshot() {
    let world = whole("ha-gpu-efs");
    let key = save(&world, "etcd.db");
    let outcome = world.run(["status"]).expect_code(0).expect_stdout("research: healthy");
    assert_eq!(line(&outcome, "etcd"), "etcd 3/3 members in service");
    let image = line(&outcome, "image");
    assert!(image.starts_with(&format!("image 30 days {IMAGE}, Flatcar deletes it about 20")), "{image}");
    let saved = line(&outcome, "saved");
    assert!(saved.ends_with(&format!("minutes ago etcd's newest snapshot: {key}")), "{saved}");
    assert!(!outcome.stdout.contains("\n! ") && !outcome.stdout.contains("\n? "), "{}", outcome.stdout);

    let text = world.run(["status", "--output", "json"]).expect_code(0).stdout;
    expect_fit("status", std::slice::from_ref(&text));
    expect_refused("status", &broken(&text, &[]));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&document["healthy"], &document["warnings"]), (&json!(true), &json!([])));
    assert_eq!((&document["etcd"]["inService"], &document["etcd"]["wanted"]), (&json!(3), &json!(3)));
    assert_eq!(document["etcd"]["members"][2]["state"], "InService");
    assert_eq!(
        (&document["images"][0]["name"], &document["images"][0]["ageDays"]),
        (&json!(IMAGE), &json!(30))
    );
    let stacks = json!(["research-control-plane", "research-pool-cpu", "research-pool-gpu"]);
    assert_eq!(document["images"][0]["stacks"], stacks);
    assert_eq!(document["snapshot"]["newest"]["key"], key);
}

#[test]
fn a_lost_etcd_member_that_cannot_be_launched_is_a_problem_and_its_reason_is_shown() {
    let world = whole("ha-gpu-efs");
    world.control(json!({"fail_launch": {"EtcdMember1": NO_CAPACITY}}));
    lose_member(&world, "etcd-1");
    let outcome = world.run(["status"]).expect_code(3).expect_stdout("research: NOT HEALTHY");
    assert_eq!(line(&outcome, "etcd"), "etcd 2/3 etcd-1 has no machine");
    let outcome = outcome
        .expect_stdout("\n! etcd: 2 of 3 members are in service; if one more is lost, the API stops\n")
        .expect_stdout("\n! etcd-1: its last launch failed at 20");
    let reason = "UTC: We currently do not have sufficient t3.medium capacity in the Availability Zone you requested (us-west-2b)";
    outcome.expect_stdout(reason);
    let document = document(&world, 3);
    let member = &document["etcd"]["members"][1];
    assert_eq!(
        (&member["name"], &member["inService"], &member["machine"]),
        (&json!("etcd-1"), &json!(false), &Value::Null)
    );
    let reason = member["failedLaunch"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("We currently") && reason.ends_with("(us-west-2b)."), "{member}");
    assert_eq!(document["problems"].as_array().unwrap().len(), 2, "{document:#}");

    world.control(json!({"fail_launch": {"EtcdMember1": NO_CAPACITY, "EtcdMember2": NO_CAPACITY}}));
    lose_member(&world, "etcd-2");
    let text =
        "! etcd: 1 of 3 members are in service, fewer than the majority that etcd needs: the API cannot work";
    world.run(["status"]).expect_code(3).expect_stdout(text);

    world.control(json!({}));
    wait_until("the members are back", || world.run(["status"]).code == 0);
}

#[test]
fn snapshots_that_have_stopped_are_a_problem_after_three_hours() {
    let world = whole("minimal");
    let control_plane = "minimal-control-plane";
    let outcome = world.run(["status"]).expect_code(0);
    let address = format!("s3://{}/clusters/minimal/snapshots/", world.bucket());
    assert_eq!(line(&outcome, "saved"), format!("saved never etcd's snapshots: {address}"));
    world.control(json!({"ages": {control_plane: 4}}));
    world
        .run(["status"])
        .expect_code(3)
        .expect_stdout("! there is no etcd snapshot, though one is uploaded every hour");
    assert_eq!(document(&world, 3)["snapshot"], json!({"address": address, "newest": null}));

    // Those of an earlier cluster of the name; this one has just begun.
    let old = save(&world, "etcd-0-20260301T120000Z.db");
    world.control(json!({"ages": {&old: 300}}));
    let outcome = world.run(["status"]).expect_code(0);
    assert_eq!(line(&outcome, "saved"), format!("saved 12 days ago etcd's newest snapshot: {old}"));
    world.control(json!({"ages": {&old: 300, control_plane: 4}}));
    world.run(["status"]).expect_code(3).expect_stdout("! the newest etcd snapshot is 12 days old");

    // The newest counts, whatever its name.
    let newest = save(&world, "etcd-20260302T120000Z.db");
    world.control(json!({"ages": {&old: 300, &newest: 2.01, control_plane: 400}}));
    let outcome = world.run(["status"]).expect_code(0);
    assert_eq!(line(&outcome, "saved"), format!("saved 2 hours ago etcd's newest snapshot: {newest}"));
    world.control(json!({"ages": {&old: 300, &newest: 3.51, control_plane: 400}}));
    world.run(["status"]).expect_code(3).expect_stdout("! the newest etcd snapshot is 3 hours old");
    assert_eq!(document(&world, 3)["snapshot"]["newest"]["ageMinutes"], 210);

    let (aws, bucket) = (world.aws(), world.bucket());
    let listed = aws.send("s3", &aws.region, "GET", &format!("/{bucket}?list-type=2"), "").text();
    for key in listed.split("<Key>").skip(1).map(|rest| rest.split('<').next().unwrap()) {
        aws.send("s3", &aws.region, "DELETE", &format!("/{bucket}/{key}"), "");
    }
    assert_eq!(aws.send("s3", &aws.region, "DELETE", &format!("/{bucket}"), "").status(), 204);
    world.run(["status"]).expect_code(3).expect_stdout("! there is no etcd snapshot");
}

#[test]
fn an_old_image_is_a_warning_and_one_that_is_gone_a_problem() {
    let world = whole("minimal");
    let id =
        world.workspace.read("infra.lock").split_once("id: ").unwrap().1.lines().next().unwrap().to_owned();
    let place = format!("s3://{}/clusters", world.bucket());
    let validate = || world.run(["validate", "--online", "--s3-uri", &place]);
    world.control(json!({"ages": {IMAGE: 24 * 180}}));
    assert!(!world.run(["status"]).expect_code(0).stdout.contains("\n? "));

    world.control(json!({"ages": {IMAGE: 24 * 200}}));
    let old = format!("the image {id} ({IMAGE}) is 200 days old, and Flatcar deletes it about 20");
    let outcome = world.run(["status"]).expect_code(0).expect_stdout("minimal: healthy");
    outcome.expect_stdout(&format!("\n? {old}")).expect_stdout("; run `infra up --upgrade-os`");
    validate().expect_code(0).expect_stderr(&old);
    world.up([]).expect_code(0).expect_stderr(&old).expect_stderr("no stack had to change");
    let warned = document(&world, 0);
    assert_eq!((&warned["healthy"], warned["warnings"].as_array().unwrap().len()), (&json!(true), 1));
    assert_eq!(warned["images"][0]["ageDays"], 200);

    world.control(json!({"ages": {IMAGE: 24 * 300}}));
    world
        .run(["status"])
        .expect_code(0)
        .expect_stdout("Flatcar may delete it any day, as it does after 9 months");

    world.control(json!({"gone_images": [id]}));
    let outcome = world.run(["status"]).expect_code(3);
    assert_eq!(line(&outcome, "image"), format!("image gone {id}"));
    outcome.expect_stdout(&format!(
        "\n! the image {id} is gone: no machine of minimal-control-plane, minimal-pool-cpu can be started or replaced; \
         run `infra up --upgrade-os`"
    ));
    let gone = document(&world, 3);
    assert_eq!((&gone["images"][0]["state"], &gone["images"][0]["ageDays"]), (&json!("gone"), &Value::Null));
}

#[test]
fn a_copy_of_an_image_stays_until_its_owner_deletes_it() {
    let world = World::of_golden("minimal");
    let account = world.workspace.account().to_owned();
    world.workspace.edit(|text| format!("{text}os: {{imageOwner: \"{account}\"}}\n"));
    let facts = [
        ("Name", IMAGE),
        ("Architecture", "x86_64"),
        ("VirtualizationType", "hvm"),
        ("RootDeviceName", "/dev/xvda"),
    ];
    world.made("RegisterImage", &facts, "imageId");
    world.control(json!({"ages": {IMAGE: 24 * 900}}));
    let outcome = world.up([]).expect_code(0);
    assert!(!outcome.stderr.contains("days old"), "{}", outcome.stderr);
    let outcome = world.run(["status"]).expect_code(0);
    assert_eq!(line(&outcome, "image"), format!("image 900 days {IMAGE}"));
    assert!(!outcome.stdout.contains("\n? "), "{}", outcome.stdout);
}

#[test]
fn what_may_not_be_read_is_said_and_the_rest_is_shown() {
    let world = whole("minimal");
    world.control(json!({"fail_launch": {"EtcdMember0": NO_CAPACITY}}));
    lose_member(&world, "etcd-0");
    for operation in ["s3:ListObjectsV2", "ec2:DescribeImages", "autoscaling:DescribeScalingActivities"] {
        world.proxy.fault(operation, Fault::AccessDenied, Times::Always);
    }
    world
        .run(["status"])
        .expect_code(3)
        .expect_stdout("! etcd: 0 of 1 members are in service")
        .expect_stdout("? the failed launches of etcd members could not be read: the caller may not autoscaling:DescribeScalingActivities")
        .expect_stdout("? the age of the image could not be read: the caller may not ec2:DescribeImages")
        .expect_stdout("? the age of the newest etcd snapshot could not be read: the caller may not s3:ListBucket");
    let document = document(&world, 3);
    assert_eq!((&document["images"], &document["snapshot"]), (&json!([]), &Value::Null));
}
