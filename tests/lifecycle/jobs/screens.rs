//! Jobs and transfers at a terminal: they look like `infra up`.

use std::fs;

use super::moving_files::bytes;
use super::{JobWorld, TRAIN};
use crate::support::job_cluster::controller::Fate;
use crate::support::release_server::ReleaseServer;
use crate::support::tmux::{Tmux, without_times};

fn run(world: &JobWorld, columns: usize, words: &str) -> Tmux {
    let root = world.workspace.root().display();
    let line = format!("{} -C {root} {words}", env!("CARGO_BIN_EXE_infra"));
    let (api, server) = (world.cluster.address(), ReleaseServer::shared().url());
    let variables =
        [("INFRA_API_SERVER", api.as_str()), ("INFRA_RELEASE_SERVER", &server), ("INFRA_TEST_TEMPO", "0.05")];
    Tmux::run(columns, 40, &line, variables)
}

fn all_wait(_: &str, _: u32, _: usize) -> Fate {
    Fate::Wait
}

#[test]
fn a_job_has_a_row_for_each_role_while_it_is_followed() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(all_wait);
    let terminal = run(&world, 80, "job submit");
    let screen = without_times(&terminal.wait_for("▸ worker"));
    assert!(screen.lines().any(|line| line.starts_with("▸ train  TIME  ")), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("  ▸ worker  ") && line.contains("/2  ")), "{screen}");
    world.cluster.finish("worker", 1, 0);
    world.cluster.finish("worker", 0, 0);
    let (code, screen) = terminal.wait_for_end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("default/train: complete, 2 of 2 done"), "{screen}");
    assert!(!screen.contains('▸'), "the table has all of it:\n{screen}");
}

#[test]
fn a_job_that_is_left_alone_stays_on_the_screen() {
    let world = JobWorld::new(TRAIN);
    world.cluster.decide(all_wait);
    let terminal = run(&world, 60, "job submit");
    terminal.wait_for("▸ worker");
    terminal.press(["C-c"]);
    let (code, screen) = terminal.wait_for_end();
    assert_eq!(code, 5, "{screen}");
    assert_eq!(screen.matches("▸ worker").count(), 1, "{screen}");
}

#[test]
fn a_transfer_is_a_row_and_its_summary_stays() {
    let world = JobWorld::new(TRAIN);
    fs::create_dir(world.workspace.path("corpus")).unwrap();
    for number in 0..200 {
        fs::write(world.workspace.path(&format!("corpus/part-{number}")), bytes(200_000)).unwrap();
    }
    let corpus = world.workspace.path("corpus").display().to_string();
    let terminal = run(&world, 80, &format!("data put {corpus} datasets"));
    let screen = terminal.wait_for("▸ files  put  ");
    assert!(screen.contains("/200 files"), "{screen}");
    let (code, screen) = terminal.wait_for_end();
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains('▸'), "{screen}");
    assert!(screen.contains("200 files, 38.1 MiB; in datasets"), "{screen}");
}
