//! The end of every tried call in every failure, as a table and as totals.

use std::collections::{BTreeMap, BTreeSet};

use super::failures::Failure;
use super::life::{Call, Ending, Step};

/// One disturbed call, and what came of it.
pub struct Case {
    pub step: Step,
    /// The position of the call among those of an undisturbed step.
    pub place: usize,
    pub call: Call,
    pub failure: Failure,
    pub ending: Result<Ending, String>,
}

impl Case {
    fn cell(&self) -> String {
        match &self.ending {
            Ok(Ending::NotReached) => "-".to_owned(),
            Ok(Ending::GotOver) => "0".to_owned(),
            Ok(Ending::Again(code)) => format!("{code}, 0"),
            Err(_) => "FAILED".to_owned(),
        }
    }

    /// What went wrong, if anything did. A change that was to be disturbed must have been.
    pub fn failure(&self) -> Option<String> {
        let name = format!(
            "{} {} #{}, {}",
            self.step.name(),
            self.call.operation,
            self.call.number,
            self.failure.name()
        );
        match &self.ending {
            Err(what) => Some(format!("{name}: {what}")),
            Ok(Ending::NotReached) if !self.call.is_reading() => Some(format!("{name}: it never came")),
            Ok(_) => None,
        }
    }
}

/// A row for each call, a column for each failure: exit codes of the disturbed run and, if there had to be one, of the next.
pub fn table(cases: &[Case]) -> String {
    let failures = failures_of(cases);
    let mut rows: BTreeMap<(Step, usize), (String, BTreeMap<Failure, String>)> = BTreeMap::new();
    for case in cases {
        let name = format!("{} #{}", case.call.operation, case.call.number);
        let row = rows.entry((case.step, case.place)).or_insert_with(|| (name, BTreeMap::new()));
        row.1.insert(case.failure, case.cell());
    }
    let heads: Vec<String> = failures.iter().map(|failure| format!("{:>9}", failure.name())).collect();
    let mut text = format!("{:21}  {:52}{}\n", "command", "call", heads.concat());
    for ((step, _), (name, cells)) in rows {
        let cells: Vec<String> = failures
            .iter()
            .map(|failure| format!("{:>9}", cells.get(failure).map_or("", String::as_str)))
            .collect();
        text += &format!("{:21}  {name:52}{}\n", step.name(), cells.concat());
    }
    text + &totals(cases)
}

fn failures_of(cases: &[Case]) -> BTreeSet<Failure> {
    cases.iter().map(|case| case.failure).collect()
}

/// A line for each failure.
pub fn totals(cases: &[Case]) -> String {
    let mut text = String::new();
    for failure in failures_of(cases) {
        let mine: Vec<&Case> = cases.iter().filter(|case| case.failure == failure).collect();
        let count =
            |is: fn(&Result<Ending, String>) -> bool| mine.iter().filter(|case| is(&case.ending)).count();
        text += &format!(
            "{:>9}: {} calls; {} got over, {} done by the next run, {} never came, {} failed\n",
            failure.name(),
            mine.len(),
            count(|ending| matches!(ending, Ok(Ending::GotOver))),
            count(|ending| matches!(ending, Ok(Ending::Again(_)))),
            count(|ending| matches!(ending, Ok(Ending::NotReached))),
            count(Result::is_err),
        );
    }
    text
}
