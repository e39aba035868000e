//! Measures how fast the free machines of a pool all-reduce with one another, and names those that are slow.
//!
//! In: the pool, an image with PyTorch, and the API server. Out: a report. A pod on each machine does what one more pod orders, whose log
//! is read; what is slow is decided here.

mod check;
mod compilation;
mod measurements;
mod members;
mod pods;
mod pool;
mod report;
mod rounds;
mod settings;
mod verdict;
mod watch;

pub(crate) use check::NcclCheck;
pub(crate) use pool::choose_pool;
pub(crate) use report::{Backend, MachineBandwidth, NcclCheckReport, gigabytes_in_words};
pub(crate) use settings::{NcclCheckProgress, NcclCheckSettings};
