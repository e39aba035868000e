//! A user at a terminal: questions before something is lost, and lines that are drawn again.

use crate::support::world::World;

#[test]
fn destroy_asks_before_it_deletes_a_cluster() {
    let world = World::of_golden("minimal");
    let place = format!("s3://{}/clusters", world.bucket());
    let seen = world.at_terminal(&["up", "--s3-uri", &place], "xterm", "").expect_code(0);
    seen.expect_stdout(" minimal-network ")
        .expect_stdout("created in ")
        .expect_stdout("the cluster is ready");
    let before = world.census();

    let declined = world.at_terminal(&["destroy"], "dumb", "n\n").expect_code(1);
    declined
        .expect_stdout("minimal will be deleted. Continue? [y/N]")
        .expect_stdout("declined; nothing was changed");
    let wrong = world.at_terminal(&["destroy", "--delete-data"], "dumb", "yes\n").expect_code(1);
    wrong
        .expect_stdout("Type the cluster's name to continue:")
        .expect_stdout("declined; nothing was changed");
    assert_eq!(world.census(), before);
    world.at_terminal(&["destroy"], "dumb", "y\n").expect_code(0).expect_stdout("minimal is deleted");
}

#[test]
fn a_pool_that_is_no_longer_in_cluster_yaml_is_deleted_after_a_yes() {
    const OTHER: &str = "pools:\n- {name: spare, instanceType: m5.large, count: 1}\n";
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| text.replace("pools:\n", OTHER));
    world.up([]).expect_code(0);
    world.workspace.edit(|text| text.replace(OTHER, "pools:\n"));
    let question = "pool spare is no longer in cluster.yaml; without a yes it is kept. Delete it? [y/N]";
    world
        .at_terminal(&["up"], "dumb", "n\n")
        .expect_code(0)
        .expect_stdout(question)
        .expect_stdout("`--prune` deletes them");
    assert!(world.aws().stack_status("minimal-pool-spare").is_some());
    world.at_terminal(&["up"], "dumb", "y\n").expect_code(0);
    assert_eq!(world.aws().stack_status("minimal-pool-spare"), None);
}

#[test]
fn up_asks_before_it_replaces_resources() {
    let world = World::of_golden("minimal");
    world.up([]).expect_code(0);
    // The rule of a range is another rule for another range.
    world.workspace.edit(|text| format!("{text}sshAllowedCIDRs: [192.0.2.0/24]\n"));
    world.at_terminal(&["up"], "dumb", "").expect_code(0);
    world.workspace.edit(|text| text.replace("192.0.2.0/24", "198.51.100.0/24"));
    let declined = world.at_terminal(&["up"], "dumb", "n\n").expect_code(1);
    declined.expect_stdout(" will be replaced or deleted. Continue? [y/N]");
    world.up([]).expect_code(1).expect_stderr("`--yes` answers yes");
    world.at_terminal(&["up"], "dumb", "y\n").expect_code(0);
    world.run(["plan", "--detailed-exitcode"]).expect_code(0);
}
