//! The ways in which a call fails, and how a run may end after each.

use super::life::Call;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::outcome::Outcome;
use crate::support::permissions::permission_for;

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// AWS has done what was asked; the run is killed before it hears of it.
    Killed,
    /// Five times in a row.
    Throttled,
    /// 500.
    InternalError,
    /// AWS has done what was asked and says nothing, until the client gives up.
    Silent,
    /// AWS has done what was asked; the connection ends instead of an answer.
    Lost,
    /// The connection is reset, and AWS has not heard of the call.
    Reset,
    Expired,
    Denied,
}

impl Failure {
    pub const ALL: [Self; 8] = [
        Self::Killed,
        Self::Throttled,
        Self::InternalError,
        Self::Silent,
        Self::Lost,
        Self::Reset,
        Self::Expired,
        Self::Denied,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Killed => "kill",
            Self::Throttled => "throttled",
            Self::InternalError => "500",
            Self::Silent => "silent",
            Self::Lost => "lost",
            Self::Reset => "reset",
            Self::Expired => "expired",
            Self::Denied => "denied",
        }
    }

    /// Lives at the same time, on each stand-in: some mostly sleep.
    pub fn lives_at_once(self) -> usize {
        if matches!(self, Self::Throttled | Self::Silent) { 16 } else { 8 }
    }

    /// How the proxy brings it about.
    pub fn fault(self, number: usize) -> (Fault, Times) {
        let fault = match self {
            Self::Killed | Self::Silent => Fault::SilentAfterForwarding,
            Self::Throttled => return (Fault::Throttled, Times::From(number, 5)),
            Self::InternalError => Fault::InternalError,
            Self::Lost => Fault::CutAfterForwarding,
            Self::Reset => Fault::ResetBeforeForwarding,
            Self::Expired => Fault::ExpiredToken,
            Self::Denied => Fault::AccessDenied,
        };
        (fault, Times::Nth(number))
    }

    /// Whether a run that this happened to has ended as it should.
    pub fn allows(self, call: &Call, outcome: &Outcome) -> Result<(), String> {
        let permission = permission_for(&call.operation);
        let names_it = outcome.stderr.contains(permission);
        let fits = match self {
            // As a shell reports the signal.
            Self::Killed => outcome.code == 128 + 9,
            Self::Throttled | Self::InternalError | Self::Silent | Self::Lost | Self::Reset => {
                outcome.code == 0
            }
            Self::Expired => outcome.code == 4 && names_it && outcome.stderr.contains("renew them"),
            // What only preflight reads is a warning; a bucket is read again before it is called foreign.
            Self::Denied if outcome.code == 0 => {
                call.operation == "s3:HeadBucket"
                    || outcome
                        .stderr
                        .contains(&format!("could not be checked: the caller may not {permission}"))
            }
            Self::Denied => outcome.code == 1 && names_it,
        };
        if fits { Ok(()) } else { Err(format!("ended with {}:\n{}", outcome.code, outcome.stderr)) }
    }
}
