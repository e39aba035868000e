//! How far a transfer is, and what it came to.

/// How far a transfer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// All files that were asked for.
    pub files: u64,
    /// The size of all of them.
    pub bytes: u64,
    /// Files that are the same on both sides by now.
    pub done_files: u64,
    /// Bytes that are the same on both sides by now.
    pub done_bytes: u64,
}

/// What was not moved, because it would mean something else on the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Links that lead out of the directory, with their targets.
    pub outside_links: Vec<String>,
    /// Pipes, devices, and names that are no text.
    pub special_files: Vec<String>,
    /// Files that were deleted while the transfer ran.
    pub gone: Vec<String>,
}

/// What a transfer came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "some of the files were moved, and the others were there")]
pub(crate) struct Moved {
    /// All files that were asked for.
    pub files: u64,
    /// The size of all of them.
    pub bytes: u64,
    /// The files that were moved.
    pub moved_files: u64,
    /// The bytes of files that went over the network.
    pub moved_bytes: u64,
    /// What was left out.
    pub left_out: LeftOut,
}
