//! Files between this machine and a claim: a short-lived pod mounts the claim, and everything goes through the API server's exec.
//!
//! In: paths here and on the claim, and the API server. Out: files that are the same on both sides, by their content; only what differs
//! is moved, and what was moved before a break is not moved again. The program at the other end is `templates/jobs/move_files.py`.

mod attempts;
mod channel;
mod entry;
mod error;
mod fetch;
mod get;
mod hash;
mod link;
mod local_tree;
mod object_set;
mod parts;
mod pattern;
mod pod;
mod progress;
mod put;
mod remote_path;
mod size_words;
mod tree_digest;
mod trees;
mod window;

pub(crate) use attempts::with_channel;
pub(crate) use channel::Channel;
pub(crate) use entry::{EntryKind, RemoteEntry};
pub(crate) use error::DataError;
pub(crate) use fetch::{FetchRequest, FetchView, LINK_LIFE, LinkSigner, fetch};
pub(crate) use get::{GetRequest, get};
pub(crate) use local_tree::{LocalTree, Selection};
pub(crate) use object_set::{ListedObject, MOST_OBJECTS, ObjectSet, too_many};
pub(crate) use parts::{PARTS_DIRECTORY, SOURCE_FILE};
pub(crate) use pattern::Pattern;
pub(crate) use pod::{FilesPod, FilesTarget};
pub(crate) use progress::{LeftOut, Moved, Progress};
pub(crate) use put::put;
pub(crate) use remote_path::RemotePath;
pub(crate) use size_words::bytes_in_words;
