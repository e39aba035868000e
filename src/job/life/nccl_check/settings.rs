//! What a check does, and what it says meanwhile.

use std::time::Duration;

use super::report::Backend;
use crate::kube::Contact;

/// What an NCCL check measures, and with what.
#[derive(Clone, Debug)]
pub(crate) struct NcclCheckSettings {
    /// The pool.
    pub(crate) pool: String,
    /// The fewest machines that the pool should have, where that is known.
    pub(crate) expected_machines: Option<u32>,
    /// The library.
    pub(crate) backend: Backend,
    /// The bytes of an all-reduce.
    pub(crate) bytes: u64,
    /// The image.
    pub(crate) image: String,
    /// The program that measures.
    pub(crate) program: String,
    /// How long the check may take.
    pub(crate) limit: Duration,
}

/// What a check does, for whoever waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NcclCheckProgress {
    /// Pods are started on this many machines.
    Starting(usize),
    /// Something is waited for.
    Waiting(String),
    /// A round of pairs, or all machines together.
    Round {
        /// The number of the round.
        round: u32,
        /// How many there are.
        of: u32,
    },
    /// The API does not answer, or answers again.
    Contact(Contact),
}
