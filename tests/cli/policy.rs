//! `infra policy`: what it says about the boundary. `tests/aws` judges what the policies allow.

use serde_json::{Map, Value};

use crate::support::{MINIMAL, Workspace};

const URI: &str = "s3://bucket/prefix";
const BOUNDARY: &str = "permissionsBoundaryArn: arn:aws:iam::111122223333:policy/team/machines\n";

#[test]
fn the_boundary_is_listed_and_a_cluster_without_one_is_warned_about() {
    let workspace = Workspace::with_cluster();
    let run = workspace.infra(["policy", "--s3-uri", URI]).expect_code(0);
    assert!(run.stdout.starts_with("infra-paddle-boundary "), "{}", run.stdout);
    assert!(run.stderr.contains("--policy-name infra-paddle-boundary"), "{}", run.stderr);
    assert!(run.stderr.contains("warning: cluster.yaml has no permissionsBoundaryArn"), "{}", run.stderr);
    workspace.write("cluster.yaml", format!("{MINIMAL}{BOUNDARY}"));
    let run = workspace.infra(["policy", "--s3-uri", URI]).expect_code(0);
    assert!(run.stdout.starts_with("machines "), "{}", run.stdout);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
}

#[test]
fn policies_of_pools_must_be_in_the_boundary_too() {
    let workspace = Workspace::new();
    let pool = "pools: [{name: gpu, instanceType: g5.xlarge, \
                managedPolicyArns: ['arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess']}]\n";
    workspace.write("cluster.yaml", format!("{MINIMAL}{BOUNDARY}{pool}"));
    let run = workspace.infra(["policy", "--s3-uri", URI]).expect_code(0);
    assert!(run.stderr.contains("pools with managedPolicyArns: gpu;"), "{}", run.stderr);
}

#[test]
fn programs_get_the_boundary_by_its_name() {
    let workspace = Workspace::with_cluster();
    let all = workspace.infra(["policy", "--s3-uri", URI, "--output", "json"]).expect_code(0).stdout;
    let all: Map<String, Value> = serde_json::from_str(&all).unwrap();
    let one = workspace.infra(["policy", "infra-paddle-boundary", "--s3-uri", URI]).expect_code(0).stdout;
    assert_eq!(all["infra-paddle-boundary"], serde_json::from_str::<Value>(&one).unwrap());
}
