//! Lines that a terminal shows and that are drawn again: what `up`, `destroy`, `job submit`, `data put` and `status --watch` share.
//!
//! In: rows, and the size of the terminal. Out: codes for the terminal. Nothing of the terminal is changed that would have to be restored:
//! the cursor stays visible, keys are echoed, and a command that is killed leaves its lines as they are.

mod block;
mod choice;
mod frame;
mod row;
mod terminal;
mod width;

pub(in crate::cli) use block::{Ending, LiveBlock};
pub(in crate::cli) use choice::ProgressChoice;
pub(in crate::cli) use row::{Mark, Row, Share, lay_out};
pub(in crate::cli) use terminal::{Size, Stream};
pub(in crate::cli) use width::cut_end;
