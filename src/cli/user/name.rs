//! The name of a user, as an argument.

use crate::document::Fault;
use crate::people::UserName;

/// Reads the name of a user.
pub(super) fn parse_user(text: &str) -> Result<UserName, String> {
    text.parse().map_err(|fault: Fault| fault.to_string())
}
