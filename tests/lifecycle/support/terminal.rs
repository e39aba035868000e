//! Programs at a terminal of their own, which a test types at, resizes and sends signals through.

use std::process::Command;

use serde_json::json;

const PROGRAM: &str = include_str!("terminal.py");
/// What is said of a terminal that a program left as it found it.
pub const AS_BEFORE: &str = "the terminal is as before\n";

/// A command whose orders are those of [`typed`], [`resized`] and [`signalled`], one a line.
pub fn at_terminal<'a>(words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", PROGRAM]).args(words);
    command
}

/// The order to type something.
pub fn typed(bytes: &[u8]) -> String {
    let text: String = bytes.iter().copied().map(char::from).collect();
    format!("{}\n", json!({"type": text}))
}

/// The order to give the terminal another size.
pub fn resized(columns: u64, rows: u64) -> String {
    format!("{}\n", json!({"resize": [columns, rows]}))
}

/// The order to send the program a signal, as `TERM`.
pub fn signalled(name: &str) -> String {
    format!("{}\n", json!({"signal": name}))
}
