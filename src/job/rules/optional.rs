//! Values that a job file may leave out.

/// An optional value: an invalid one fails the job, after everything else was checked too.
pub(super) fn require_valid<T>(written: Option<Option<T>>) -> Option<Option<T>> {
    match written {
        None => Some(None),
        Some(value) => value.map(Some),
    }
}
