//! How far a transfer is: a bar on a terminal, now and then a line elsewhere.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::printer::{Output, Printer};
use crate::cli::session::Session;
use crate::job::data::Progress;
use crate::plural::count_of;

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
const BAR: &str = "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {msg}";
const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// Shows how far a transfer is.
pub(in crate::cli) struct TransferView {
    bar: Option<ProgressBar>,
    printer: Printer,
    last_line: Mutex<Instant>,
}

impl TransferView {
    pub(in crate::cli) fn new(session: &Session) -> Self {
        let has_bar = session.output == Output::Text && io::stderr().is_terminal();
        let bar = has_bar.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The style is a constant, so that it is understood.
            bar.set_style(ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, printer: session.printer.clone(), last_line: Mutex::new(Instant::now()) }
    }

    /// Shows how far it is.
    pub(in crate::cli) fn show(&self, progress: Progress) {
        let files = format!("{}/{} files", progress.done_files, progress.files);
        if let Some(bar) = &self.bar {
            bar.set_length(progress.bytes);
            bar.set_position(progress.done_bytes);
            bar.set_message(files);
            return;
        }
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= LINE_EVERY {
            *last = Instant::now();
            let (done, all) = (bytes_in_words(progress.done_bytes), bytes_in_words(progress.bytes));
            self.printer.note(format_args!("  {done} of {all}, {files}"));
        }
    }

    /// Takes the bar off the terminal.
    pub(in crate::cli) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A size as people say it.
pub(in crate::cli) fn bytes_in_words(bytes: u64) -> String {
    for (unit, name) in UNITS {
        if bytes >= unit {
            let tenths = bytes / (unit / 10).max(1);
            return match tenths % 10 {
                0 => format!("{} {name}", tenths / 10),
                part => format!("{}.{part} {name}", tenths / 10),
            };
        }
    }
    count_of(bytes, "byte")
}

#[cfg(test)]
mod tests {
    use super::bytes_in_words;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1 << 10, "1 KiB"),
            (1536, "1.5 KiB"),
            (12_000_000, "11.4 MiB"),
            (2 << 30, "2 GiB"),
        ] {
            assert_eq!(bytes_in_words(bytes), words);
        }
    }
}
