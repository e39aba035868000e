//! How much of a pod's log was printed, and which part to ask for when its connection broke.
//!
//! In: what happens to the connection. Out: the part of the log that is left. It reads nothing itself.

use std::time::Instant;

use crate::job::life::{ReplicaPhase, ReplicaReport};
use crate::kube::LogPart;

/// How often in a row the rest of a log is asked for that broke off, when its pod has ended: its machine may be gone.
const MOST_BREAKS: u32 = 5;
/// The rest is asked for from a little before the last line that came: the next one may have been printed in the same moment.
const OVERLAP_SECONDS: u64 = 2;

/// How much of a followed log was printed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogProgress {
    /// Only this many of the last lines are wanted.
    tail: Option<u32>,
    /// How often it broke off since something came.
    breaks: u32,
    /// When the last of it came; a connection that breaks is noticed later than that.
    last: Option<Instant>,
}

impl LogProgress {
    pub(super) fn new(tail: Option<u32>) -> Self {
        Self { tail, ..Self::default() }
    }

    /// A part of the log came.
    pub(super) fn receive(&mut self) {
        self.breaks = 0;
        self.last = Some(Instant::now());
    }

    /// The connection broke.
    pub(super) fn break_off(&mut self) {
        self.breaks += 1;
    }

    /// The log came to its end.
    pub(super) fn end(&mut self) {
        self.breaks = 0;
    }

    /// Whether more may come of a log whose connection has ended.
    pub(super) fn is_unfinished(&self, replica: &ReplicaReport) -> bool {
        replica.phase == ReplicaPhase::Running || (1..=MOST_BREAKS).contains(&self.breaks)
    }

    /// What is left of the log: all of it if nothing came yet.
    pub(super) fn rest(&self, follow: bool) -> LogPart {
        let since_seconds = self.last.map(|last| last.elapsed().as_secs() + OVERLAP_SECONDS);
        LogPart { follow, tail: self.tail.filter(|_| since_seconds.is_none()), since_seconds }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rest_begins_where_the_last_line_came_however_often_it_broke_since() {
        let mut progress = LogProgress::new(Some(5));
        progress.receive();
        progress.last = Instant::now().checked_sub(Duration::from_mins(1));
        for _ in 0..3 {
            progress.break_off();
            let rest = progress.rest(true);
            assert_eq!((rest.tail, rest.since_seconds), (None, Some(62)));
        }
    }

    #[test]
    fn a_log_of_which_nothing_came_is_asked_for_from_the_beginning() {
        let mut progress = LogProgress::new(Some(5));
        progress.break_off();
        let rest = progress.rest(true);
        assert_eq!((rest.tail, rest.since_seconds), (Some(5), None));
    }
}
