//! The code that a run brings along: a directory of this machine, on the claim by its content.
//!
//! In: the directory that `code` names, and a channel to the claim. Out: a directory there whose name is the digest of what is in it, complete
//! from the moment that it exists. Another content is another directory, so that no running job sees a change.

mod ignore_pattern;
mod ignore_rules;
mod largest;
mod read;
mod tree;
mod upload;

pub(crate) use read::read_code;
pub(crate) use tree::CodeTree;
pub(crate) use upload::{Uploaded, upload};
