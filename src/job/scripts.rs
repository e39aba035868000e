//! The programs that run in a job's pods: ours, or the team's own in their place.

use std::collections::BTreeMap;

/// Begins every launcher.
pub(super) const PRELUDE: &str = "jobs/prelude.sh";
/// A paddle-v0 trainer with its parameter server.
pub(super) const PADDLE_V0: &str = "jobs/paddle-v0.sh";
/// A node of `paddle.distributed.launch`.
pub(super) const PADDLE: &str = "jobs/paddle.sh";
/// A node of torchrun.
pub(super) const PYTORCH: &str = "jobs/pytorch.sh";
/// torchrun, as a module of the Python that the user named.
pub(super) const TORCHRUN: &str = "jobs/torchrun.py";
/// A program that needs nothing of its peers.
pub(super) const PROGRAM: &str = "jobs/program.sh";
/// A parameter server, which serves until it is terminated.
pub(super) const SERVER: &str = "jobs/server.sh";
/// A worker beside parameter servers.
pub(super) const WORKER: &str = "jobs/worker.sh";
/// Creates the directories of a run, and waits until data is imported.
pub(super) const PREPARE: &str = "jobs/prepare.sh";
/// Imports data.
pub(super) const IMPORT_DATA: &str = "jobs/import_data.py";
/// TensorBoard, until a day after its job.
pub(super) const TENSORBOARD: &str = "jobs/tensorboard.sh";
/// Downloads what an import needs.
pub(super) const DOWNLOAD: &str = "jobs/download.py";
/// Divides imported data among trainers.
pub(super) const DIVISION: &str = "jobs/division.py";
/// The program that reads and writes the claim for whoever is at the other end, in the order of its parts.
const FILE_MOVER: [&str; 5] = [
    "jobs/claim_files.py",
    "jobs/fetch_objects.py",
    "jobs/write_files.py",
    "jobs/read_files.py",
    "jobs/move_files.py",
];
/// Reads how the attempts of a run ended.
pub(super) const READ_ATTEMPTS: &str = "jobs/read_attempts.py";
/// Measures how fast machines all-reduce with one another.
const NCCL_CHECK: &str = "jobs/nccl_check.py";

/// What an import consists of.
pub(super) const IMPORT: [&str; 3] = [IMPORT_DATA, DOWNLOAD, DIVISION];

/// A shell or a command, where the processes of a job are.
const SHELL: &str = "jobs/shell.sh";

/// Every other script.
const OTHERS: [&str; 16] = [
    PRELUDE,
    PADDLE_V0,
    PADDLE,
    PYTORCH,
    TORCHRUN,
    PROGRAM,
    SERVER,
    WORKER,
    PREPARE,
    IMPORT_DATA,
    DOWNLOAD,
    DIVISION,
    TENSORBOARD,
    READ_ATTEMPTS,
    NCCL_CHECK,
    SHELL,
];

/// The texts of all scripts.
#[derive(Clone, Debug)]
pub(crate) struct Scripts(BTreeMap<&'static str, String>);

impl Scripts {
    /// Takes each script from wherever templates come from.
    pub(crate) fn new(text_of: impl Fn(&str) -> Option<String>) -> Self {
        let names = OTHERS.into_iter().chain(FILE_MOVER);
        Self(names.filter_map(|name| text_of(name).map(|text| (name, text))).collect())
    }

    /// The program that reads and writes the claim.
    #[must_use]
    pub(crate) fn file_mover(&self) -> String {
        FILE_MOVER.map(|part| self.text(part)).concat()
    }

    /// The program that reads how the attempts of a run ended.
    #[must_use]
    pub(crate) fn attempt_reader(&self) -> String {
        self.text(READ_ATTEMPTS)
    }

    /// The program that measures how fast machines all-reduce.
    #[must_use]
    pub(crate) fn nccl_check(&self) -> String {
        self.text(NCCL_CHECK)
    }

    /// The script that starts a shell, or the command that its arguments are.
    #[must_use]
    pub(crate) fn shell(&self) -> String {
        self.text(SHELL)
    }

    /// A script by itself.
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// A launcher with what all of them begin with.
    pub(super) fn launcher(&self, name: &str) -> String {
        format!("{}{}", self.text(PRELUDE), self.text(name))
    }
}
