//! Parts of cluster.yaml that may be absent.

/// Builds what may be absent: `None` is a failed build, `Some(None)` an absent part.
pub(super) fn parse_optional<F, T>(
    part: Option<&F>,
    build: impl FnOnce(&F) -> Option<T>,
) -> Option<Option<T>> {
    match part {
        Some(part) => build(part).map(Some),
        None => Some(None),
    }
}
