//! Settings that may not change while a cluster exists: refused with the next step, before any call that changes something.

use crate::support::reading::is_reading;
use crate::support::world::World;

/// A change of cluster.yaml and the refusal.
struct Case {
    from: &'static str,
    to: &'static str,
    refused: &'static str,
    help: &'static str,
}

fn case(from: &'static str, to: &'static str, refused: &'static str, help: &'static str) -> Case {
    Case { from, to, refused, help }
}

/// Tries each change on one living cluster: since all are refused, it stays as it was.
#[track_caller]
fn refuse_all(world: &World, cases: &[Case]) {
    let before = world.workspace.read("cluster.yaml");
    for case in cases {
        world.workspace.edit(|text| text.replacen(case.from, case.to, 1));
        world.proxy.clear();
        let outcome = world.up(["--yes", "--prune", "--skip-preflight"]).expect_code(1);
        outcome.expect_stderr(case.refused).expect_stderr(case.help);
        let changed: Vec<String> =
            world.proxy.operations().into_iter().filter(|name| !is_reading(name)).collect();
        assert_eq!(changed, [""; 0], "{} was refused, and yet", case.to);
        world.run(["plan"]).expect_code(1).expect_stderr(case.refused);
        std::fs::write(world.workspace.path("cluster.yaml"), &before).unwrap();
    }
    world.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_stdout("No changes");
}

#[test]
fn settings_that_are_fixed_at_creation_cannot_be_changed() {
    let world = World::of_golden("paddle-tutorial");
    world.workspace.edit(|text| {
        format!("{text}network: {{vpcCIDR: 10.0.0.0/16}}\nkubernetes: {{podCIDR: 10.2.0.0/16}}\n")
    });
    world.up([]).expect_code(0);
    let text = world.workspace.read("cluster.yaml");
    assert!(text.contains("externalDNSName: ") && text.contains("availabilityZones: ["), "{text}");
    refuse_all(
        &world,
        &[
            case(
                "externalDNSName: ",
                "externalDNSName: other.",
                "externalDNSName cannot change",
                "api.additionalNames",
            ),
            case(
                "availabilityZones: [us-west-2a",
                "availabilityZones: [us-west-2b, us-west-2a",
                "availabilityZones cannot change",
                "put '",
            ),
            case(
                "vpcCIDR: 10.0.0.0/16",
                "vpcCIDR: 10.1.0.0/16",
                "network.vpcCIDR cannot change from '10.0.0.0/16' to '10.1.0.0/16'",
                "second cluster",
            ),
            case(
                "vpcCIDR: 10.0.0.0/16",
                "vpcCIDR: 10.0.0.0/16, topology: private",
                "network.topology cannot change from 'public' to 'private'",
                "second cluster",
            ),
            case(
                "podCIDR: 10.2.0.0/16",
                "podCIDR: 10.8.0.0/16",
                "kubernetes.podCIDR cannot change",
                "put '10.2.0.0/16' back",
            ),
            case(
                "podCIDR: 10.2.0.0/16",
                "serviceCIDR: 10.7.0.0/24",
                "kubernetes.serviceCIDR cannot change",
                "put '10.3.0.0/24' back",
            ),
            case(
                "podCIDR: 10.2.0.0/16",
                "serviceAccountKey: rsa",
                "kubernetes.serviceAccountKey cannot change",
                "put 'ecdsa' back",
            ),
            case(
                "podCIDR: 10.2.0.0/16",
                "version: v1.35.7",
                "Kubernetes cannot go back from v1.36.3 to v1.35.7",
                "put v1.36.3 back",
            ),
            case(":key/", ":key/0", "kmsKeyArn cannot change", "an empty one"),
        ],
    );
}

#[test]
fn a_change_of_the_number_of_etcd_members_is_refused() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    // Certificates of three members, or it would be about those.
    world.workspace.edit(|text| text.replace("etcd: {count: 1}", "etcd: {count: 3}"));
    world.workspace.infra(["render", "credentials"]).run().expect_code(0);
    world.workspace.edit(|text| text.replace("etcd: {count: 3}", "etcd: {count: 1}"));
    refuse_all(
        &world,
        &[case(
            "etcd: {count: 1}",
            "etcd: {count: 3}",
            "etcd.count cannot change from '1' to '3'",
            "restore it from a snapshot",
        )],
    );
}

#[test]
fn a_change_between_a_created_and_an_adopted_network_is_refused() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    refuse_all(
        &world,
        &[case(
            "etcd: {count: 1}",
            "etcd: {count: 1}\nnetwork: {vpcCIDR: 10.0.0.0/16, existing: {vpcId: vpc-0123456789abcdef0, subnets: [{id: subnet-0123456789abcdef0, \
             availabilityZone: us-west-2a, public: true}]}}",
            "network.topology cannot change from 'public' to 'the adopted vpc-0123456789abcdef0'",
            "put 'public' back",
        )],
    );
}

#[test]
fn a_change_between_a_created_and_an_adopted_file_system_is_refused() {
    let world = World::of_golden("ha-gpu-efs");
    world.up([]).expect_code(0);
    let adopted = "storage: {efs: {fileSystemId: fs-0123456789abcdef0}}";
    refuse_all(
        &world,
        &[
            case(
                "storage: {efs: {}}",
                adopted,
                "cluster.yaml asks for fs-0123456789abcdef0",
                "data moves by copying it",
            ),
            case("storage: {efs: {}}\n", "", "is no longer in cluster.yaml", "put `storage: {efs: {}}` back"),
        ],
    );

    let guest = World::of_golden("adopted");
    guest.up([]).expect_code(0);
    let storage = guest
        .workspace
        .read("cluster.yaml")
        .lines()
        .find(|line| line.starts_with("storage:"))
        .unwrap()
        .to_owned();
    let storage: &'static str = Box::leak(storage.into_boxed_str());
    refuse_all(
        &guest,
        &[case(
            storage,
            "storage: {efs: {mountPath: /srv/shared-data}}",
            "cluster.yaml asks for a new file system",
            "fileSystemId: fs-",
        )],
    );
}

#[test]
fn protected_types_are_replaced_only_by_name() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    refuse_all(
        &world,
        &[
            case(
                "etcd: {count: 1}",
                "etcd: {count: 1}\nencryptDisksWithKmsKey: true",
                "this would replace the volume EtcdVolume0 of minimal-control-plane",
                "`--allow-replace EtcdVolume0`",
            ),
            case(
                "etcd: {count: 1}",
                "etcd: {count: 1}\napi: {public: false}",
                "this would remove the load balancer PublicLoadBalancer of minimal-control-plane",
                "`--allow-replace PublicLoadBalancer`",
            ),
        ],
    );
    // Named one by one, it is replaced.
    world.workspace.edit(|text| {
        text.replace(
            "etcd: {count: 1}",
            "etcd: {count: 1}\napi: {public: false, allowedCIDRs: [10.0.0.0/16]}",
        )
    });
    let outcome = world.up(["--yes", "--allow-replace", "PublicLoadBalancer"]).expect_code(1);
    outcome
        .expect_stderr("security group PublicLoadBalancerGroup")
        .expect_stderr("--allow-replace PublicLoadBalancerGroup");
    world
        .up(["--yes", "--allow-replace", "PublicLoadBalancer", "--allow-replace", "PublicLoadBalancerGroup"])
        .expect_code(0);
    assert_eq!(world.aws().stack_status("minimal-control-plane").as_deref(), Some("UPDATE_COMPLETE"));
    // The stack policy that was lifted for this is set again.
    let policy = world.aws().post(
        "cloudformation",
        "us-west-2",
        &[("Action", "GetStackPolicy"), ("Version", "2010-05-15"), ("StackName", "minimal-control-plane")],
    );
    assert!(policy.contains("Update:Replace") && policy.contains("Deny"), "{policy}");
}

#[test]
fn another_name_or_region_is_another_cluster_and_the_lock_knows() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    refuse_by_lock(
        &world,
        "clusterName: minimal",
        "clusterName: maximal",
        "infra.lock belongs to clusterName 'minimal'",
    );
    refuse_by_lock(&world, "us-west-2", "us-east-1", "infra.lock belongs to region 'us-west-2'");
}

#[track_caller]
fn refuse_by_lock(world: &World, from: &str, to: &str, refused: &str) {
    let before = world.workspace.read("cluster.yaml");
    world.workspace.edit(|text| text.replace(from, to));
    world.proxy.clear();
    world
        .up(["--yes"])
        .expect_code(1)
        .expect_stderr(refused)
        .expect_stderr("cannot change while the cluster lives");
    assert!(world.proxy.operations().iter().all(|name| is_reading(name)));
    std::fs::write(world.workspace.path("cluster.yaml"), before).unwrap();
}
