//! The only code that prints: data on stdout, everything else on stderr, colour only where a person looks. What others wrote is
//! cleaned here, whoever prints it.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::cli::document::Document;
use crate::cli::terminal::foreign_text::{TextCleaner, clean_foreign_text, clean_line, escape_json};
use crate::cli::terminal::prefixed_lines::PrefixedLines;
use crate::cli::terminal::screen::{Ending, LiveBlock, Size, Stream as ScreenStream};
use crate::cli::terminal::styled_text::StyledText;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

/// How results are printed: the values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Output {
    #[value(help = None)]
    Text,
    #[value(help = None)]
    Json,
    /// Only `infra plan` prints it; every other command refuses it before it does anything.
    #[value(help = None)]
    Markdown,
    /// As markdown, only from `infra plan`.
    #[value(help = None)]
    Html,
}

/// Prints. `NO_COLOR`, `CLICOLOR` and a stream that is no terminal switch colour off.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Printer {
    stdout: ColorChoice,
    stderr: ColorChoice,
    /// Whether a terminal shows what is on stdout, whatever its colours.
    at_terminal: bool,
    /// Lines that are drawn again, below what is printed meanwhile.
    block: LiveBlock,
}

impl Printer {
    pub(in crate::cli) fn new() -> Self {
        Self {
            stdout: AutoStream::choice(&io::stdout()),
            stderr: AutoStream::choice(&io::stderr()),
            at_terminal: io::stdout().is_terminal(),
            block: LiveBlock::default(),
        }
    }

    /// Begins to draw lines again and again, below everything that is printed from now on.
    pub(in crate::cli) fn begin_block(
        &self,
        stream: ScreenStream,
        content: impl Fn(Size) -> Vec<StyledText> + Send + 'static,
    ) {
        let choice = match stream {
            ScreenStream::Stdout => self.stdout,
            ScreenStream::Stderr => self.stderr,
        };
        self.block.begin(stream, choice != ColorChoice::Never, Box::new(content));
    }

    /// Draws what has changed in those lines.
    pub(in crate::cli) fn draw_block(&self) {
        self.block.draw();
    }

    /// Stops drawing. Must be called before anything is asked.
    pub(in crate::cli) fn end_block(&self, ending: Ending) {
        self.block.end(ending);
    }

    /// A result for a person. A reader that has closed the pipe is no error.
    pub(in crate::cli) fn data(&self, text: impl Into<StyledText>) -> anyhow::Result<()> {
        let text = text.into();
        self.block.print_above(|| {
            let mut stream = AutoStream::new(io::stdout().lock(), self.stdout);
            ignore_closed_pipe(writeln!(stream, "{}", text.as_terminal_text()).and_then(|()| stream.flush()))
        })
    }

    /// A file for a program, with its own line ends: unchanged in a pipe, cleaned at a terminal.
    pub(in crate::cli) fn file(&self, text: &str) -> anyhow::Result<()> {
        if self.at_terminal {
            to_stdout(clean_foreign_text(text).as_bytes())
        } else {
            to_stdout(text.as_bytes())
        }
    }

    /// A log that others wrote: unchanged in a pipe, cleaned at a terminal.
    pub(in crate::cli) fn log(&self) -> LogPrinter {
        LogPrinter { form: LogForm::of(self.at_terminal), stream: Stream::Stdout }
    }

    /// One of several logs that others wrote: whole lines behind a name, which is as wide as the others.
    pub(in crate::cli) fn prefixed_log(&self, name: &str, width: usize) -> LogPrinter {
        let form = LogForm::Prefixed(PrefixedLines::new(name, width, self.at_terminal));
        LogPrinter { form, stream: Stream::Stdout }
    }

    /// A result as one JSON document of ours.
    pub(in crate::cli) fn json(&self, document: &impl Document) -> anyhow::Result<()> {
        self.foreign_json(document)
    }

    /// A result as JSON in an external format: IAM's, Kubernetes', JSON Schema.
    pub(in crate::cli) fn foreign_json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        self.json_text(&serde_json::to_string_pretty(value)?)
    }

    /// JSON that was written already.
    pub(in crate::cli) fn json_text(&self, text: &str) -> anyhow::Result<()> {
        self.data(escape_json(text))
    }

    /// Something worth knowing.
    pub(in crate::cli) fn note(&self, text: impl Into<StyledText>) {
        self.to_stderr(&text.into());
    }

    /// A warning.
    pub(in crate::cli) fn warning(&self, text: impl Into<StyledText>) {
        self.to_stderr(&StyledText::styled(WARNING, "warning:").then(" ").then(text));
    }

    /// What failed.
    pub(in crate::cli) fn error(&self, text: impl Into<StyledText>) {
        self.to_stderr(&StyledText::styled(ERROR, "error:").then(" ").then(text));
    }

    /// What to do next.
    pub(in crate::cli) fn help(&self, text: impl Into<StyledText>) {
        self.to_stderr(&StyledText::styled(HELP, "help:").then(" ").then(text));
    }

    /// A question; the answer is typed behind it.
    pub(in crate::cli) fn question(&self, text: impl Into<StyledText>) {
        let mut stream = AutoStream::new(io::stderr().lock(), self.stderr);
        // A user who closed stderr does not want to be asked.
        let _ = write!(stream, "{} ", text.into().as_terminal_text()).and_then(|()| stream.flush());
    }

    fn to_stderr(&self, text: &StyledText) {
        self.block.print_above(|| {
            let mut stream = AutoStream::new(io::stderr().lock(), self.stderr);
            // There is no other place to report this to.
            let _ = writeln!(stream, "{}", text.as_terminal_text());
        });
    }
}

/// Prints a log piece by piece.
#[derive(Debug)]
pub(in crate::cli) struct LogPrinter {
    form: LogForm,
    stream: Stream,
}

#[derive(Debug)]
enum LogForm {
    Unchanged,
    Cleaned(TextCleaner),
    Prefixed(PrefixedLines),
}

impl LogForm {
    fn of(at_terminal: bool) -> Self {
        if at_terminal { Self::Cleaned(TextCleaner::default()) } else { Self::Unchanged }
    }
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Stdout => to_stdout(bytes),
            Self::Stderr => ignore_closed_pipe(io::stderr().write_all(bytes)),
        }
    }
}

impl LogPrinter {
    /// As [`Printer::log`], for what others wrote to stderr.
    pub(in crate::cli) fn of_stderr() -> Self {
        Self { form: LogForm::of(io::stderr().is_terminal()), stream: Stream::Stderr }
    }

    /// What a program draws at a terminal that was given to it.
    pub(in crate::cli) fn of_terminal() -> Self {
        Self { form: LogForm::Unchanged, stream: Stream::Stdout }
    }

    /// The next bytes.
    pub(in crate::cli) fn print(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match &mut self.form {
            LogForm::Unchanged => self.stream.write(bytes),
            LogForm::Cleaned(cleaner) => self.stream.write(cleaner.clean(bytes).as_bytes()),
            LogForm::Prefixed(lines) => self.stream.write(&lines.add(bytes)),
        }
    }

    /// What is left when the log ends or breaks off.
    pub(in crate::cli) fn finish(&mut self) -> anyhow::Result<()> {
        match &mut self.form {
            LogForm::Unchanged => Ok(()),
            LogForm::Cleaned(cleaner) => self.stream.write(cleaner.finish().as_bytes()),
            LogForm::Prefixed(lines) => self.stream.write(&lines.finish()),
        }
    }
}

fn to_stdout(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stream = io::stdout().lock();
    ignore_closed_pipe(stream.write_all(bytes).and_then(|()| stream.flush()))
}

fn ignore_closed_pipe(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Lines of cells as left-aligned columns.
pub(in crate::cli) fn align_columns<const N: usize>(lines: &[[String; N]]) -> String {
    let lines: Vec<[String; N]> =
        lines.iter().map(|line| line.each_ref().map(|cell| clean_line(cell))).collect();
    let mut widths = [0; N];
    for line in &lines {
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
