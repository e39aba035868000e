//! What a destroy keeps, and how that is adopted or deleted later: files, snapshots of disks, grants.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::element;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

/// The ids of the account's snapshots.
fn snapshots(world: &World) -> BTreeSet<String> {
    let answer = world.ec2("DescribeSnapshots", &[("Owner.1", "self")]);
    answer.split("<snapshotId>").skip(1).map(|part| part.split('<').next().unwrap().to_owned()).collect()
}

/// A foreign volume, and a snapshot of it.
fn foreign_snapshot(world: &World) -> String {
    let volume = [("AvailabilityZone", "us-west-2a"), ("Size", "8"), ("VolumeType", "gp3")];
    let volume = world.made("CreateVolume", &volume, "volumeId");
    world.made("CreateSnapshot", &[("VolumeId", &volume)], "snapshotId")
}

#[test]
fn snapshots_of_etcd_disks_are_deleted_by_name_and_foreign_ones_are_kept() {
    let world = World::of_golden("minimal");
    let theirs = foreign_snapshot(&world);
    world.up([]).expect_code(0);
    // Another user took a snapshot of etcd's disk while the cluster existed.
    let members = [("Filter.1.Name", "tag:Name"), ("Filter.1.Value.1", "minimal-etcd-0")];
    let disk = element(&world.ec2("DescribeVolumes", &members), "volumeId").unwrap().to_owned();
    let earlier = world.made("CreateSnapshot", &[("VolumeId", &disk)], "snapshotId");
    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    let stays = plan.stdout.split_once("To be kept:").unwrap().1;
    assert!(
        stays.contains(&earlier) && stays.contains("kept as a snapshot") && stays.contains(&disk),
        "{}",
        plan.stdout
    );
    world.run(["destroy", "--yes"]).expect_code(0);
    let kept = snapshots(&world);
    assert_eq!(kept.len(), 3);
    assert!(kept.contains(&theirs) && kept.contains(&earlier));

    let plan = world.run(["destroy", "--plan-only"]).expect_code(0);
    for id in &kept {
        assert_eq!(plan.stdout.contains(id), *id != theirs, "{id} in {}", plan.stdout);
    }
    world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(0);
    assert_eq!(snapshots(&world), BTreeSet::from([theirs]));
}

#[test]
fn the_grant_for_disks_is_deleted_and_foreign_grants_are_kept() {
    let world = World::of_golden("private");
    let key = world.workspace.setting("kmsKeyArn");
    let kms = |operation: &str, body: serde_json::Value| {
        let mut body = body;
        body["KeyId"] = json!(key);
        world.json_call("kms", "TrentService", operation, &body)
    };
    let names = || -> Vec<String> {
        let grants = kms("ListGrants", json!({}));
        let grants = grants["Grants"].as_array().unwrap_or_else(|| panic!("{grants}")).clone();
        let mut names: Vec<String> =
            grants.iter().map(|grant| grant["Name"].as_str().unwrap_or_default().to_owned()).collect();
        names.sort();
        names
    };
    let theirs = json!({
        "GranteePrincipal": "arn:aws:iam::111122223333:role/backup", "Operations": ["Decrypt"], "Name": "infra-vault2-disks",
    });
    kms("CreateGrant", theirs);
    // A cluster of the same name in another account that shares the key.
    let namesake = json!({
        "GranteePrincipal": "arn:aws:iam::444455556666:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
        "Operations": ["Decrypt"], "Name": "infra-vault-disks",
    });
    kms("CreateGrant", namesake);
    assert_eq!(names(), ["infra-vault-disks", "infra-vault2-disks"]);
    world.up([]).expect_code(0).expect_stderr("granted Auto Scaling the use of");
    assert_eq!(names(), ["infra-vault-disks", "infra-vault-disks", "infra-vault2-disks"]);
    world.run(["destroy", "--plan-only"]).expect_code(0).expect_stdout("grant of the KMS key");
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("revoked the grant");
    assert_eq!(names(), ["infra-vault-disks", "infra-vault2-disks"]);
}

/// The line for cluster.yaml that a destroy has printed.
#[track_caller]
fn printed_line(stderr: &str) -> String {
    let line = stderr.split('`').find(|part| part.starts_with("storage: "));
    line.unwrap_or_else(|| panic!("no line in:\n{stderr}")).to_owned()
}

#[test]
fn the_printed_line_adopts_the_kept_files() {
    let world = World::of_golden("paddle-tutorial");
    let name = world.cluster();
    world.up([]).expect_code(0);
    let systems = world.file_systems();
    let outcome = world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("uses them again");
    assert_eq!((world.file_systems(), world.mount_targets(&systems[0]).len()), (systems.clone(), 0));

    let line = printed_line(&outcome.stderr);
    world.workspace.edit(|text| {
        let old = text.lines().find(|line| line.starts_with("storage:")).unwrap();
        text.replace(old, &line)
    });
    let outcome = world.up([]).expect_code(0);
    assert!(!outcome.stderr.contains("file system of an earlier cluster"), "{}", outcome.stderr);
    assert_eq!(world.file_systems(), systems, "the same one");
    assert!(!world.mount_targets(&systems[0]).is_empty());
    assert!(world.workspace.read("cluster.yaml").contains("mountPath: /efs"), "where programs look for it");

    // It existed before this cluster: nothing deletes it now.
    let plan = world.run(["destroy", "--plan-only", "--delete-data"]).expect_code(0);
    assert!(plan.stdout.split_once("To be kept:").unwrap().1.contains(&systems[0]), "{}", plan.stdout);
    let outcome = world.run(["destroy", "--delete-data", "--confirm", &name]).expect_code(0);
    assert_eq!(printed_line(&outcome.stderr), line);
    assert_eq!((world.file_systems(), world.mount_targets(&systems[0]).len()), (systems.clone(), 0));
    world.run(["destroy", "--delete-data", "--confirm", &name]).expect_code(0);
    assert_eq!(world.file_systems(), systems, "also when only cluster.yaml knows");
}

#[test]
fn files_of_earlier_clusters_of_the_same_name_are_kept() {
    let world = World::of_golden("paddle-tutorial");
    for life in 1..=2 {
        world.up([]).expect_code(0);
        let outcome = world.run(["destroy", "--yes"]).expect_code(0);
        assert_eq!(world.file_systems().len(), life);
        for id in world.file_systems() {
            assert!(outcome.stderr.contains(&format!("files are kept in {id}")), "{}", outcome.stderr);
        }
    }
    world.run(["destroy", "--delete-data", "--confirm", &world.cluster()]).expect_code(0);
    assert_eq!(world.file_systems(), [""; 0]);
    assert_eq!(snapshots(&world).len(), 0);
}

#[test]
fn a_snapshot_that_is_uploaded_meanwhile_is_deleted() {
    let world = World::alone("minimal");
    world.up([]).expect_code(0);
    world.control(json!({"hold": ["minimal-pool-cpu"]}));
    let mut running = world.infra(["destroy", "--delete-data", "--confirm", "minimal"]).spawn();
    running.wait_for_stderr("deleting pools");
    let key = format!("/{}/clusters/minimal/snapshots/late.db", world.bucket());
    assert_eq!(world.aws().send("s3", "us-west-2", "PUT", &key, "x").status(), 200);
    world.control(json!({}));
    running.wait().expect_code(0).expect_stderr("deleted 1 etcd snapshots from s3://");
    assert_eq!(world.census()["objects"], 0);
}

#[test]
fn snapshots_that_are_kept_are_named() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    let key = format!("/{}/clusters/minimal/snapshots/1.db", world.bucket());
    assert_eq!(world.aws().send("s3", "us-west-2", "PUT", &key, "x").status(), 200);
    world.control(json!({"fail_delete": {"PrivateZone": "it is busy"}}));
    let outcome = world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(7);
    let left =
        format!("left over: etcd snapshots s3://{}/clusters/minimal/snapshots/: 1 object", world.bucket());
    outcome.expect_stderr(&left).expect_stderr("run `infra destroy --delete-data` again");
    world.control(json!({}));
    world.run(["destroy", "--delete-data", "--confirm", "minimal"]).expect_code(0);
    assert_eq!(world.census()["objects"], 0);
}

#[test]
fn a_disk_snapshot_that_cannot_be_deleted_blocks_nothing_else() {
    let world = World::of_golden("paddle-tutorial");
    let name = world.cluster();
    world.up([]).expect_code(0);
    world.proxy.fault("ec2:DeleteSnapshot", Fault::InternalError, Times::Always);
    let outcome = world.run(["destroy", "--delete-data", "--confirm", &name]).expect_code(7);
    let kept = snapshots(&world).into_iter().next().unwrap();
    let outcome = outcome
        .expect_stderr("deleted file system")
        .expect_stderr(&format!("error: left over: disk snapshot {kept}: "))
        .expect_stderr(&format!("  aws ec2 delete-snapshot --snapshot-id {kept} --region us-west-2"));
    assert_eq!(outcome.stderr.matches("error: left over: ").count(), 1, "{}", outcome.stderr);
    assert_eq!(world.file_systems(), [""; 0]);
    world.proxy.heal();
    world.run(["destroy", "--delete-data", "--confirm", &name]).expect_code(0);
    assert_eq!(snapshots(&world).len(), 0);
}

#[test]
fn backups_of_files_are_kept_and_named() {
    let world = World::of_golden("paddle-tutorial");
    let name = world.cluster();
    let arn = format!("arn:aws:backup:us-west-2:{}:recovery-point:1EB3B5E7-9EB0", world.workspace.account());
    world.control(json!({"recovery_points": {&arn: &name}}));
    world.up([]).expect_code(0);
    let command = format!(
        "aws backup delete-recovery-point --backup-vault-name aws/efs/automatic-backup-vault --recovery-point-arn {arn}"
    );
    let outcome = world.run(["destroy", "--yes"]).expect_code(0).expect_stdout(&command);
    outcome.expect_stderr(&format!("AWS Backup keeps {arn}"));
    let outcome = world.run(["destroy", "--delete-data", "--confirm", &name]).expect_code(0);
    let stays = outcome.stdout.split_once("To be kept:").unwrap().1;
    assert!(stays.contains(&command), "{}", outcome.stdout);
    outcome.expect_stderr(&command);
}
