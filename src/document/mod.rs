//! Reads a YAML document that a person wrote into typed values that know their positions.
//!
//! In: text, and a type that describes its shape. Out: the value, or every problem at once, each with line, column and
//! help. It knows nothing about clusters or jobs, and it is the only code that names the YAML library.

mod fault;
mod load;
mod node;
mod position;
mod problem;
mod read;
mod structure;
mod suggestion;
mod yaml;

pub(crate) use fault::Fault;
pub(crate) use load::{LoadError, Loaded, load, validate};
pub(crate) use position::{At, Position};
pub(crate) use problem::{Problem, Problems, Severity};
pub(crate) use read::{ReadError, read_text};
pub(crate) use suggestion::nearest_word;
pub(crate) use yaml::{parse_embedded_table, parse_untyped, parse_yaml, write_yaml};
