//! Who is calling.

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallerIdentity {
    /// The account's number.
    pub account: String,
    /// The user or role.
    pub arn: String,
}
