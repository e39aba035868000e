//! What a person at a terminal sees, and what programs get in its place.
//!
//! In: text and documents of commands. Out: lines on stdout and stderr, and live views. What others wrote is cleaned here.

pub(super) mod closed_pipe;
pub(super) mod foreign_text;
pub(super) mod prefixed_lines;
pub(super) mod printer;
pub(super) mod raw_terminal;
pub(super) mod screen;
pub(super) mod styled_text;
