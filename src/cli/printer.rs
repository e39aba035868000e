//! The only code that prints: data on stdout, everything else on stderr, colour only where a person looks.

use std::fmt::Display;
use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::document::Document;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

/// How results are printed: the values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    #[value(help = None)]
    Text,
    #[value(help = None)]
    Json,
    /// Only `infra plan` prints it; every other command refuses it before it does anything.
    #[value(help = None)]
    Markdown,
}

/// Prints. `NO_COLOR`, `CLICOLOR` and a stream that is no terminal switch colour off.
#[derive(Clone, Debug)]
pub(super) struct Printer {
    stdout: ColorChoice,
    stderr: ColorChoice,
}

impl Printer {
    pub(super) fn new() -> Self {
        Self { stdout: AutoStream::choice(&io::stdout()), stderr: AutoStream::choice(&io::stderr()) }
    }

    /// A result, for a person or a pipe. A reader that has gone away is no error.
    pub(super) fn data(&self, text: impl Display) -> anyhow::Result<()> {
        let mut stream = AutoStream::new(io::stdout().lock(), self.stdout);
        ignore_closed_pipe(writeln!(stream, "{text}").and_then(|()| stream.flush()))
    }

    /// A result that brings its own line ends.
    pub(super) fn raw(&self, text: &str) -> anyhow::Result<()> {
        let mut stream = AutoStream::new(io::stdout().lock(), self.stdout);
        ignore_closed_pipe(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()))
    }

    /// A result whose bytes, including colours, are printed unchanged.
    pub(super) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
        let mut stream = io::stdout().lock();
        ignore_closed_pipe(stream.write_all(bytes).and_then(|()| stream.flush()))
    }

    /// A result as one JSON document of ours.
    pub(super) fn json(&self, document: &impl Document) -> anyhow::Result<()> {
        self.foreign_json(document)
    }

    /// A result as JSON in an external format: IAM's, Kubernetes', JSON Schema.
    pub(super) fn foreign_json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        self.data(serde_json::to_string_pretty(value)?)
    }

    /// Something worth knowing.
    pub(super) fn note(&self, text: impl Display) {
        self.to_stderr(format_args!("{text}"));
    }

    /// A warning.
    pub(super) fn warning(&self, text: impl Display) {
        self.to_stderr(format_args!("{WARNING}warning:{WARNING:#} {text}"));
    }

    /// What failed.
    pub(super) fn error(&self, text: impl Display) {
        self.to_stderr(format_args!("{ERROR}error:{ERROR:#} {text}"));
    }

    /// What to do next.
    pub(super) fn help(&self, text: impl Display) {
        self.to_stderr(format_args!("{HELP}help:{HELP:#} {text}"));
    }

    /// A question; the answer is typed behind it.
    pub(super) fn question(&self, text: impl Display) {
        let mut stream = AutoStream::new(io::stderr().lock(), self.stderr);
        // Whoever closed stderr does not want to be asked.
        let _ = write!(stream, "{text} ").and_then(|()| stream.flush());
    }

    fn to_stderr(&self, text: std::fmt::Arguments<'_>) {
        // There is no other place to complain to.
        let _ = writeln!(AutoStream::new(io::stderr().lock(), self.stderr), "{text}");
    }
}

fn ignore_closed_pipe(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Lines of cells as left-aligned columns.
pub(super) fn columns<const N: usize>(lines: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let format_line = |line: &[String; N]| {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    lines.iter().map(format_line).collect::<Vec<_>>().join("\n")
}
