//! Keeps the memory of the process, in which keys are, from being written to disk or read by the user's other programs.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Forbids core dumps of this process. The limit holds for programs that it starts too; the hard limit stays, so that they can raise it.
pub(super) fn forbid_core_dumps() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let limited = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
    // A program that receives core dumps (systemd-coredump, apport) is started whatever the limit is.
    let closed = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(closed) {
        tracing::warn!(%error, "core dumps cannot be turned off: a crash may write keys to disk");
    }
}
