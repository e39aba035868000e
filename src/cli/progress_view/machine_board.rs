//! Machines on their way into the cluster, by role: how many are launched, booted, joined and Ready.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::wording::duration_in_words;
use crate::blueprint::Role;
use crate::cli::terminal::screen::{Mark, Row};
use crate::deploy::{MachineState, PlannedMachines};

/// The machines that were seen.
#[derive(Debug, Default)]
pub(super) struct MachineBoard {
    planned: BTreeMap<Kind, usize>,
    seen: BTreeMap<Kind, Arrivals>,
}

/// What machines are for; members of etcd are one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Etcd,
    Controller,
    Pool(String),
}

impl Kind {
    fn of(role: &Role) -> Self {
        match role {
            Role::EtcdMember(_) => Self::Etcd,
            Role::Controller => Self::Controller,
            Role::Pool(pool) => Self::Pool(pool.to_string()),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Etcd => "etcd".to_owned(),
            Self::Controller => "controllers".to_owned(),
            Self::Pool(pool) => format!("pool {pool}"),
        }
    }

    /// Members of etcd are no nodes.
    fn states(&self) -> &'static [MachineState] {
        use MachineState::{Booted, Joined, Launched, Ready};
        match self {
            Self::Etcd => &[Launched, Booted],
            Self::Controller | Self::Pool(_) => &[Launched, Booted, Joined, Ready],
        }
    }
}

#[derive(Debug)]
struct Arrivals {
    began: Instant,
    /// How long it took until all that were seen had arrived.
    took: Option<Duration>,
    machines: BTreeMap<String, MachineState>,
}

impl MachineBoard {
    /// How many machines there will be.
    pub(super) fn plan(&mut self, machines: &[PlannedMachines]) {
        for PlannedMachines { role, count } in machines {
            *self.planned.entry(Kind::of(role)).or_default() += *count as usize;
        }
    }

    /// A machine is further.
    pub(super) fn advance(&mut self, role: &Role, machine: &str, state: MachineState) {
        let kind = Kind::of(role);
        let last = kind.states().last().copied();
        let arrivals = self.seen.entry(kind).or_insert_with(|| Arrivals {
            began: Instant::now(),
            took: None,
            machines: BTreeMap::new(),
        });
        arrivals.machines.insert(machine.to_owned(), state);
        let is_there = |state: &MachineState| last.is_some_and(|last| *state >= last);
        arrivals.took = arrivals.machines.values().all(is_there).then(|| arrivals.began.elapsed());
    }

    /// A row for each kind of which a machine was seen.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.seen.iter().map(|(kind, arrivals)| self.row(kind, arrivals)).collect()
    }

    fn row(&self, kind: &Kind, arrivals: &Arrivals) -> Row {
        let planned = self.planned.get(kind).copied().unwrap_or_default();
        let reached = |state: MachineState| arrivals.machines.values().filter(|is| **is >= state).count();
        let count = |state: &MachineState| {
            let word = if *state == MachineState::Ready { "Ready" } else { state.name() };
            // Of machines that are replaced, fewer are launched than there are.
            if *state == MachineState::Launched && planned >= arrivals.machines.len() {
                format!("{word} {}/{planned}", reached(*state))
            } else {
                format!("{word} {}", reached(*state))
            }
        };
        let counts = kind.states().iter().filter(|state| reached(**state) > 0);
        let detail: Vec<String> = counts.map(count).collect();
        Row {
            mark: if arrivals.took.is_some() { Mark::Done } else { Mark::Running },
            indent: 2,
            name: kind.name(),
            detail: detail.join(", "),
            aside: duration_in_words(arrivals.took.unwrap_or_else(|| arrivals.began.elapsed())),
            ..Row::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MachineBoard;
    use crate::blueprint::Role;
    use crate::cli::terminal::screen::Mark;
    use crate::deploy::MachineState::{Booted, Joined, Launched, Ready};
    use crate::deploy::PlannedMachines;

    fn details(board: &MachineBoard) -> Vec<(String, String, Mark)> {
        board.rows().into_iter().map(|row| (row.name, row.detail, row.mark)).collect()
    }

    #[test]
    fn machines_are_counted_by_how_far_they_are() -> Result<(), crate::document::Fault> {
        let mut board = MachineBoard::default();
        let planned = |role: Role, count| PlannedMachines { role, count };
        let pool = Role::Pool("gpu".parse()?);
        board.plan(&[
            planned(Role::EtcdMember(0), 1),
            planned(Role::EtcdMember(1), 1),
            planned(pool.clone(), 3),
        ]);
        assert!(board.rows().is_empty(), "machines come as they come");
        board.advance(&Role::EtcdMember(0), "i-0", Launched);
        assert_eq!(details(&board)[0].1, "launched 1/2", "a count of zero is not mentioned");
        board.advance(&Role::EtcdMember(0), "i-0", Booted);
        board.advance(&Role::EtcdMember(1), "i-1", Launched);
        board.advance(&pool, "i-2", Joined);
        board.advance(&pool, "i-3", Launched);
        board.advance(&pool, "i-2", Ready);
        let row = |name: &str, detail: &str, mark| (name.to_owned(), detail.to_owned(), mark);
        assert_eq!(
            details(&board),
            [
                row("etcd", "launched 2/2, booted 1", Mark::Running),
                row("pool gpu", "launched 2/3, booted 1, joined 1, Ready 1", Mark::Running)
            ]
        );
        board.advance(&Role::EtcdMember(1), "i-1", Booted);
        assert_eq!(details(&board)[0], row("etcd", "launched 2/2, booted 2", Mark::Done));
        Ok(())
    }

    #[test]
    fn a_role_without_a_plan_is_counted_alone() {
        let mut board = MachineBoard::default();
        board.advance(&Role::Controller, "i-1", Ready);
        assert_eq!(details(&board)[0].1, "launched 1, booted 1, joined 1, Ready 1");
    }
}
