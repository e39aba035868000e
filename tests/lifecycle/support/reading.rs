//! Which calls change nothing.

/// Whether an operation only reads.
pub fn is_reading(operation: &str) -> bool {
    let action = operation.rsplit(':').next().unwrap_or_default();
    ["Describe", "Get", "List", "Head"].iter().any(|verb| action.starts_with(verb))
}
