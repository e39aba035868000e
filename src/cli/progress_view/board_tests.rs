//! What a terminal shows of a run: at every width, with too few rows, and after a failure.

use super::board::ProgressBoard;
use crate::aws::StackStatus;
use crate::blueprint::Role;
use crate::cli::terminal::screen::Size;
use crate::deploy::{Event, MachineState, PlannedMachines, PlannedStack, StackOperation};

const TALL: usize = 40;

fn planned(stack: &str, after: &[&str], machines: Vec<PlannedMachines>) -> PlannedStack {
    let after = after.iter().map(|name| (*name).to_owned()).collect();
    PlannedStack { stack: stack.to_owned(), after, resources: Some(4), machines }
}

fn stacks() -> Event {
    Event::Stacks {
        stacks: vec![
            planned("paddle-network", &[], Vec::new()),
            planned(
                "paddle-control-plane",
                &["paddle-network"],
                vec![PlannedMachines { role: Role::Controller, count: 2 }],
            ),
        ],
    }
}

fn began(stack: &str, operation: StackOperation, resources: Option<usize>) -> Event {
    Event::StackBegan { stack: stack.to_owned(), operation, resources }
}

fn resource(stack: &str, resource: &str, kind: &str, status: &str) -> Event {
    Event::Resource {
        stack: stack.to_owned(),
        resource: resource.to_owned(),
        kind: kind.to_owned(),
        status: status.into(),
        reason: Some("limit".to_owned()),
    }
}

fn ended(stack: &str, status: &str, good: bool) -> Event {
    Event::StackEnded { stack: stack.to_owned(), status: StackStatus::from(status), good }
}

/// The lines that stay.
fn apply(board: &mut ProgressBoard, events: &[Event]) -> Vec<String> {
    events.iter().flat_map(|event| board.apply_event(event)).map(|line| line.bare()).collect()
}

fn drawn(board: &ProgressBoard, columns: usize, rows: usize) -> Vec<String> {
    board.lines(Size { columns, rows }).iter().map(|line| line.bare().trim_end().to_owned()).collect()
}

#[test]
fn all_stacks_are_there_from_the_beginning_and_stay() {
    let mut board = ProgressBoard::default();
    assert!(board.is_empty());
    let staying = apply(
        &mut board,
        &[
            Event::Stage { what: "uploading machine configurations" },
            Event::Stage { what: "bringing stacks up" },
            stacks(),
            began("paddle-network", StackOperation::Create, Some(2)),
            resource("paddle-network", "Vpc", "AWS::EC2::VPC", "CREATE_COMPLETE"),
            resource("paddle-network", "Nat", "AWS::EC2::NatGateway", "CREATE_IN_PROGRESS"),
        ],
    );
    assert!(staying.is_empty(), "{staying:?}");
    assert_eq!(
        drawn(&board, 100, TALL),
        [
            "✓ uploading machine configurations  0s",
            "▸ bringing stacks up                0s",
            "  ▸ paddle-network        create  ━━━━━━──────  1/2  0s  Nat  usually 1–3 min",
            "  · paddle-control-plane  after paddle-network",
        ]
    );
    apply(
        &mut board,
        &[
            ended("paddle-network", "CREATE_COMPLETE", true),
            began("paddle-control-plane", StackOperation::Create, None),
            Event::Machine {
                role: Role::Controller,
                machine: "i-1".to_owned(),
                state: MachineState::Launched,
                node: None,
            },
        ],
    );
    assert_eq!(
        drawn(&board, 100, TALL)[2..],
        [
            "  ✓ paddle-network        created in 0s",
            "  ▸ paddle-control-plane  create  ────────────  0/4  0s",
            "  ▸ controllers  launched 1/2  0s",
        ]
    );
}

#[test]
fn what_failed_stays_and_so_does_its_step() {
    let mut board = ProgressBoard::default();
    let staying = apply(
        &mut board,
        &[
            Event::Stage { what: "bringing stacks up" },
            stacks(),
            began("paddle-network", StackOperation::Create, Some(2)),
            resource("paddle-network", "Vpc", "AWS::EC2::VPC", "CREATE_FAILED"),
            Event::UndoBegan { stack: "paddle-network".to_owned(), operation: StackOperation::RollBack },
            ended("paddle-network", "ROLLBACK_COMPLETE", false),
            Event::StackSkipped {
                stack: "paddle-control-plane".to_owned(),
                because: "paddle-network".to_owned(),
            },
        ],
    );
    assert_eq!(staying, ["✗ paddle-network  Vpc CREATE_FAILED: limit"]);
    assert_eq!(
        drawn(&board, 80, TALL),
        [
            "✗ bringing stacks up  0s",
            "  ✗ paddle-network        ROLLBACK_COMPLETE after 0s",
            "  - paddle-control-plane  skipped, because paddle-network failed",
        ]
    );
}

#[test]
fn a_wait_is_shown_with_its_step_until_the_next() {
    let mut board = ProgressBoard::default();
    let waiting = |name: &str| Event::Waiting { waiting_for: vec![name.to_owned(), "b".to_owned()] };
    apply(&mut board, &[Event::Stage { what: "waiting for the API" }, waiting("a"), waiting("two\nlines")]);
    assert_eq!(drawn(&board, 80, TALL), ["▸ waiting for the API  0s  two lines, b"]);
    let staying = apply(&mut board, &[Event::Ready { endpoint: "https://a".to_owned() }]);
    assert_eq!(staying, ["the cluster is ready: https://a"]);
    assert_eq!(drawn(&board, 80, TALL), ["✓ waiting for the API  0s"]);
}

#[test]
fn stacks_that_nobody_announced_and_attached_ones_are_shown_too() {
    let mut board = ProgressBoard::default();
    apply(
        &mut board,
        &[
            began("a", StackOperation::Attach, None),
            ended("a", "UPDATE_COMPLETE", true),
            ended("b", "UPDATE_COMPLETE", true),
            Event::StackUnchanged { stack: "c".to_owned() },
            began("d", StackOperation::Delete, None),
        ],
    );
    assert_eq!(
        drawn(&board, 80, TALL),
        [
            "  ✓ a  UPDATE_COMPLETE after 0s",
            "  ✓ b  UPDATE_COMPLETE",
            "  = c  unchanged",
            "  ▸ d  delete  0  0s",
        ]
    );
}

#[test]
fn a_low_terminal_counts_what_it_cannot_name() {
    let mut board = ProgressBoard::default();
    let names: Vec<String> = (0..30).map(|number| format!("x-pool-{number}")).collect();
    let all = names.iter().map(|name| planned(name, &[], Vec::new())).collect();
    apply(&mut board, &[Event::Stage { what: "bringing stacks up" }, Event::Stacks { stacks: all }]);
    for name in &names[..10] {
        apply(&mut board, &[began(name, StackOperation::Create, None), ended(name, "CREATE_COMPLETE", true)]);
    }
    for name in &names[10..14] {
        apply(&mut board, &[began(name, StackOperation::Create, None)]);
    }
    assert_eq!(drawn(&board, 80, TALL).len(), 31);
    let low = drawn(&board, 80, 8);
    assert_eq!(low.len(), 7, "{low:#?}");
    let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((words(&low[1]), words(&low[6])), ("✓ 10 stacks done".into(), "· 16 stacks not begun".into()));
    assert!(low[2].contains("x-pool-10  create"), "{low:#?}");
    let lower = drawn(&board, 80, 6);
    assert_eq!(lower.len(), 5, "{lower:#?}");
    assert!(lower.iter().any(|line| line.contains("and 3 more")), "{lower:#?}");
}
