//! What has a cluster's name and is not the cluster's to delete: files that others use, objects that a team keeps below the same
//! prefix, stacks of clusters with longer names.

use serde_json::json;

use crate::support::wait_until;
use crate::support::world::World;

/// What `up` would call an object that a controller boots from.
fn boot_key() -> String {
    format!("minimal/controller/{}.ign", "0a".repeat(64))
}

#[track_caller]
fn put(world: &World, key: &str) {
    let aws = world.aws();
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{}/{key}", world.bucket()), "x");
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

/// Every key of the world's bucket, once for each of its versions and marks.
fn versions(world: &World) -> Vec<String> {
    let aws = world.aws();
    let listed = aws.send("s3", &aws.region, "GET", &format!("/{}?versions", world.bucket()), "").text();
    listed.split("<Key>").skip(1).map(|part| part.split('<').next().unwrap().to_owned()).collect()
}

/// A stack that another user creates.
fn make_stack(world: &World, action: &str, name: &str, resource: &serde_json::Value, more: &[(&str, &str)]) {
    let aws = world.aws();
    let template = json!({"Resources": {"Theirs": resource}}).to_string();
    let form = [
        ("Action", action),
        ("Version", "2010-05-15"),
        ("StackName", name),
        ("TemplateBody", template.as_str()),
    ];
    let answer = aws.post("cloudformation", &aws.region, &[form.as_slice(), more].concat());
    assert!(answer.contains("<StackId>"), "{answer}");
}

#[test]
fn files_that_another_cluster_mounts_are_kept() {
    let world = World::of_golden("paddle-tutorial");
    world.up([]).expect_code(0);
    world.run(["destroy", "--yes"]).expect_code(0);
    let kept = world.file_systems().remove(0);
    // Another cluster adopts what this one left.
    let vpc = world.make_vpc("10.77.0.0/16");
    let subnet = [("VpcId", vpc.as_str()), ("CidrBlock", "10.77.0.0/24"), ("AvailabilityZone", "us-west-2a")];
    let subnet = world.made("CreateSubnet", &subnet, "subnetId");
    let mount = world.make_mount_target(&kept, &subnet, &[]);
    world.up([]).expect_code(0);
    assert_eq!(world.file_systems().len(), 2);

    let name = world.cluster();
    for goes in [1, 0] {
        let plan = world.run(["destroy", "--delete-data", "--plan-only"]).expect_code(0);
        let (before, stays) = plan.stdout.split_once("To be kept:").unwrap();
        assert!(!before.contains(&kept) && stays.contains(&kept), "{}", plan.stdout);
        assert!(stays.contains(&format!("someone else mounts it in {subnet} of {vpc}")), "{}", plan.stdout);
        let outcome = world.run(["destroy", "--delete-data", "--confirm", &name]).expect_code(0);
        assert_eq!(outcome.stderr.matches("deleted file system").count(), goes, "{}", outcome.stderr);
        assert_eq!(world.file_systems(), [kept.as_str()]);
        assert_eq!(world.mount_targets(&kept), [mount.as_str()]);
    }
}

#[test]
fn an_adopted_file_system_is_kept_without_its_stack_and_cluster_yaml() {
    let world = World::of_golden("paddle-tutorial");
    let name = world.cluster();
    world.up([]).expect_code(0);
    world.run(["destroy", "--yes"]).expect_code(0);
    let systems = world.file_systems();
    world.workspace.edit(|text| {
        let old = text.lines().find(|line| line.starts_with("storage:")).unwrap();
        let adopts = format!("storage: {{efs: {{fileSystemId: {}, createMountTargets: true}}}}", systems[0]);
        text.replace(old, &adopts)
    });
    world.up([]).expect_code(0);
    world.control(json!({"fail_delete": {"PrivateZone": "it is busy"}}));
    let by_name =
        ["destroy", "--delete-data", "--confirm", &name, "--cluster-name", &name, "--region", "us-west-2"];
    world.run(by_name).expect_code(7).expect_stderr("it is busy");
    world.control(json!({}));
    for _ in 0..2 {
        // Neither the storage stack nor, with the name alone, cluster.yaml says so.
        let outcome = world.run(by_name).expect_code(0).expect_stdout("existed before the cluster");
        assert!(!outcome.stderr.contains("deleted file system"), "{}", outcome.stderr);
        assert_eq!(world.file_systems(), systems);
    }
}

#[test]
fn objects_of_the_team_below_the_prefix_of_the_cluster_are_kept() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let theirs = [
        "clusters/minimal/controller/notes.ign",
        "clusters/minimal/datasets/train/0001.bin",
        "clusters/minimal/stacks/old.json",
    ];
    for key in theirs {
        put(&world, key);
    }
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    let (goes, stays) = plan.stdout.split_once("To be kept:").unwrap();
    let address = format!("s3://{}/clusters/minimal/", world.bucket());
    let line = goes.lines().find(|line| line.contains("uploaded assets")).unwrap();
    assert!(line.contains(&format!("{address} ")), "{line}");
    let line = stays.lines().find(|line| line.contains("foreign objects")).unwrap();
    assert!(
        line.contains(&address) && line.contains("3 objects, for example controller/notes.ign"),
        "{line}"
    );
    world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(0);
    assert_eq!(versions(&world), theirs);
}

#[test]
fn objects_from_before_versioning_are_deleted_for_good() {
    let world = World::of_golden("minimal");
    put(&world, &format!("clusters/{}", boot_key()));
    put(&world, "clusters/minimal/snapshots/1.db");
    let aws = world.aws();
    let keep = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>Enabled</Status>\
                </VersioningConfiguration>";
    let answer = aws.send("s3", &aws.region, "PUT", &format!("/{}?versioning", world.bucket()), keep);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    world.up([]).expect_code(0);
    assert!(versions(&world).len() > 4);
    world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(0);
    assert_eq!(versions(&world), [""; 0], "neither versions nor marks");
}

#[test]
fn objects_are_deleted_at_the_s3_uri_of_the_stack_and_of_the_user() {
    let world = World::of_golden("minimal");
    let before = world.census();
    world.up([]).expect_code(0);
    put(&world, &format!("elsewhere/{}", boot_key()));
    let place = format!("s3://{}/elsewhere", world.bucket());
    let outcome = world.run(["destroy", "--yes", "--s3-uri", &place]).expect_code(0);
    for prefix in ["clusters", "elsewhere"] {
        let said = format!("uploaded assets from s3://{}/{prefix}/minimal/", world.bucket());
        assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    }
    assert_eq!(world.census(), before);
}

#[test]
fn stacks_of_a_cluster_with_a_longer_name_are_kept() {
    let world = World::of_golden("minimal");
    let topic = json!({"Type": "AWS::SNS::Topic"});
    let tag = [("Tags.member.1.Key", "infra:cluster"), ("Tags.member.1.Value", "minimal-pool")];
    make_stack(&world, "CreateStack", "minimal-pool-network", &topic, &tag);
    // That one is only planned yet.
    let planned = [("ChangeSetName", "first"), ("ChangeSetType", "CREATE")];
    make_stack(&world, "CreateChangeSet", "minimal-pool-storage", &topic, &planned);
    world.up([]).expect_code(0);
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    assert!(!plan.stdout.contains("minimal-pool-network"), "{}", plan.stdout);
    assert!(!plan.stdout.contains("minimal-pool-storage"), "{}", plan.stdout);
    world.run(["destroy", "--yes"]).expect_code(0);
    let left: Vec<String> = world.stacks().into_keys().collect();
    assert_eq!(left, ["minimal-pool-network", "minimal-pool-storage"]);

    // A pool of that name would need the stack.
    world.workspace.edit(|text| text.replace("name: cpu", "name: network"));
    let outcome = world.up([]).expect_code(1);
    outcome.expect_stderr("there is a stack 'minimal-pool-network' that infra did not create");
}

#[test]
fn disks_of_a_deleted_foreign_stack_keep_their_snapshots() {
    let world = World::of_golden("minimal");
    let volume =
        json!({"Type": "AWS::EC2::Volume", "Properties": {"AvailabilityZone": "us-west-2a", "Size": 8}});
    make_stack(&world, "CreateStack", "minimal-control-plane", &volume, &[]);
    let aws = world.aws();
    wait_until("the stack is created", || {
        aws.stack_status("minimal-control-plane").as_deref() == Some("CREATE_COMPLETE")
    });
    let volumes = world.ec2("DescribeVolumes", &[]);
    let volume = crate::support::element(&volumes, "volumeId").unwrap().to_owned();
    world.ec2("CreateSnapshot", &[("VolumeId", &volume)]);
    let form = [("Action", "DeleteStack"), ("Version", "2010-05-15"), ("StackName", "minimal-control-plane")];
    aws.post("cloudformation", &aws.region, &form);
    assert_eq!(world.snapshots(), 1);
    world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(0);
    assert_eq!(world.snapshots(), 1);
}
