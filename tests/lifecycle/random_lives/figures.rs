//! What was tried in random lives, counted.

use std::collections::BTreeMap;
use std::fmt;

use super::story::Trouble;
use crate::support::outcome::Outcome;

#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub acts: usize,
    commands: usize,
    codes: BTreeMap<i32, usize>,
    troubles: usize,
    double_troubles: usize,
    faulted_calls: usize,
}

impl Figures {
    pub fn command(&mut self, outcome: &Outcome) {
        self.commands += 1;
        *self.codes.entry(outcome.code).or_default() += 1;
    }

    /// Counts a disturbed command and those of its calls that failed.
    pub fn trouble(&mut self, trouble: &Trouble, faulted_calls: usize) {
        self.troubles += usize::from(trouble.count() > 0);
        self.double_troubles += usize::from(trouble.count() > 1);
        self.faulted_calls += faulted_calls;
    }

    pub fn add(&mut self, other: &Self) {
        self.acts += other.acts;
        self.commands += other.commands;
        self.troubles += other.troubles;
        self.double_troubles += other.double_troubles;
        self.faulted_calls += other.faulted_calls;
        for (code, count) in &other.codes {
            *self.codes.entry(*code).or_default() += count;
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acts, commands, codes, troubles, double_troubles, faulted_calls } = self;
        let codes: Vec<String> = codes.iter().map(|(code, count)| format!("{code}: {count}")).collect();
        write!(
            f,
            "{acts} acts, {commands} commands, {troubles} of them disturbed ({double_troubles} twice), {faulted_calls} calls faulted; \
             exit codes {}",
            codes.join(", ")
        )
    }
}
