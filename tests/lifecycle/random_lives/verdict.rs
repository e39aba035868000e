//! Which exit codes a disturbed command may end with, and what it must say.

use super::story::Trouble;
use crate::matrix::failures::Failure;
use crate::support::outcome::Outcome;
use crate::support::permissions::permission_for;

/// The ends that a command may have.
pub struct Ends<'a> {
    codes: Vec<i32>,
    denied: Option<&'a [String]>,
}

impl<'a> Ends<'a> {
    /// The ends of a command of which these calls failed. Success is always allowed: it is checked afterwards.
    pub fn of(trouble: &Trouble, faulted: &'a [String]) -> Self {
        let mut codes = vec![0];
        let mut denied = None;
        if !faulted.is_empty() {
            for fault in &trouble.calls {
                match fault.failure {
                    Failure::Killed => codes.push(128 + 9),
                    Failure::Expired => codes.push(4),
                    Failure::Denied => {
                        codes.push(1);
                        denied = Some(faulted);
                    }
                    Failure::Throttled
                    | Failure::InternalError
                    | Failure::Silent
                    | Failure::Lost
                    | Failure::Reset => {}
                }
            }
        }
        if trouble.stacks.is_some() {
            // Failed and rolled back, stuck, or left behind by a destroy.
            codes.extend([6, 1, 7]);
            denied = None;
        }
        Self { codes, denied }
    }

    pub fn allow(&mut self, code: i32) {
        self.codes.push(code);
    }

    pub fn judge(&self, outcome: &Outcome) -> Result<(), String> {
        judge(outcome, &self.codes)?;
        let named = |operations: &[String]| {
            operations.iter().any(|operation| outcome.stderr.contains(permission_for(operation)))
        };
        if outcome.code == 1 && self.denied.is_some_and(|operations| !named(operations)) {
            return Err(format!("the missing permission is not named:\n{}", outcome.stderr));
        }
        Ok(())
    }
}

/// Whether a command has ended with one of these codes, in order, and has said why.
pub fn judge(outcome: &Outcome, codes: &[i32]) -> Result<(), String> {
    let says = if outcome.stderr.contains("panicked at") {
        "panicked"
    } else if ![0, 3, 137].contains(&outcome.code) && !outcome.stderr.contains("error: ") {
        "ended without an error"
    } else if !codes.contains(&outcome.code) {
        "ended otherwise than it may"
    } else {
        return Ok(());
    };
    Err(format!("{says}: {}, allowed {codes:?}:\n{}", outcome.code, outcome.stderr))
}
