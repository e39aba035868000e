//! A change that is refused while a cluster lives.

/// A change that is refused, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What is refused, and why.
    pub what: String,
    /// What to do instead.
    pub instead: String,
}

impl Refusal {
    pub(crate) fn new(what: impl Into<String>, instead: impl Into<String>) -> Self {
        Self { what: what.into(), instead: instead.into() }
    }
}
