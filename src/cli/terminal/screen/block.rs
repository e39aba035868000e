//! The lines at the end of a terminal that are drawn again and again, and what is printed above them meanwhile.
//!
//! A thread of its own draws when a second has passed, the window has another size, or the command runs again after Ctrl-Z and `fg`.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anstream::adapter::strip_str;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::frame::ScreenFrame;
use super::terminal::{Size, Stream, continuation_signal};
use crate::cli::terminal::styled_text::StyledText;

/// Often enough that no second of an elapsed time is left out.
const TICK: Duration = Duration::from_millis(250);

/// The lines for a terminal of some size; called whenever it is drawn.
pub(in crate::cli) type Content = Box<dyn Fn(Size) -> Vec<StyledText> + Send>;

/// What becomes of the lines at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Ending {
    /// All of them stay, however many there are.
    Stay,
    /// They are removed.
    Vanish,
}

/// Lines that are drawn again. Clones are the same lines.
#[derive(Clone, Default)]
pub(in crate::cli) struct LiveBlock(Arc<Mutex<Option<Drawing>>>);

struct Drawing {
    stream: Stream,
    has_colors: bool,
    content: Content,
    frame: ScreenFrame,
    /// Ends the thread when it is dropped.
    _thread: watch::Sender<()>,
}

impl LiveBlock {
    /// Begins to draw. Content of an earlier one is replaced.
    pub(in crate::cli) fn begin(&self, stream: Stream, has_colors: bool, content: Content) {
        let (sender, ended) = watch::channel(());
        let mut drawing =
            Drawing { stream, has_colors, content, frame: ScreenFrame::default(), _thread: sender };
        drawing.draw();
        *self.drawing() = Some(drawing);
        let block = self.clone();
        // Without a thread, lines are drawn only when something happens.
        let _ = thread::Builder::new().spawn(move || block.keep_drawing(ended));
    }

    /// Draws what has changed.
    pub(in crate::cli) fn draw(&self) {
        if let Some(drawing) = &mut *self.drawing() {
            drawing.draw();
        }
    }

    /// Prints something that stays, above the lines.
    pub(in crate::cli) fn print_above<T>(&self, print: impl FnOnce() -> T) -> T {
        let mut drawing = self.drawing();
        if let Some(drawing) = &mut *drawing {
            drawing.erase();
        }
        let printed = print();
        if let Some(drawing) = &mut *drawing {
            drawing.draw();
        }
        printed
    }

    /// Stops drawing.
    pub(in crate::cli) fn end(&self, ending: Ending) {
        if let Some(mut drawing) = self.drawing().take() {
            match ending {
                Ending::Stay => drawing.draw_whole(),
                Ending::Vanish => drawing.erase(),
            }
        }
    }

    fn drawing(&self) -> MutexGuard<'_, Option<Drawing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_drawing(&self, mut ended: watch::Receiver<()>) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let (Ok(mut resized), Ok(mut continued)) =
                (signal(SignalKind::window_change()), signal(continuation_signal()))
            else {
                return;
            };
            let mut tick = tokio::time::interval(TICK);
            loop {
                tokio::select! {
                    _ = ended.changed() => return,
                    _ = continued.recv() => {
                        if let Some(drawing) = &mut *self.drawing() {
                            drawing.frame.forget();
                        }
                    }
                    _ = resized.recv() => {}
                    _ = tick.tick() => {}
                }
                if ended.has_changed().is_err() {
                    return;
                }
                self.draw();
            }
        });
    }
}

impl Drawing {
    fn draw(&mut self) {
        let size = self.stream.size();
        let mut lines = self.lines(size);
        // One row is the cursor's.
        lines.truncate(size.rows.saturating_sub(1).max(1));
        self.replace(lines, size);
    }

    fn draw_whole(&mut self) {
        let size = self.stream.size();
        let lines = self.lines(Size { rows: usize::MAX, ..size });
        self.replace(lines, size);
    }

    fn lines(&self, size: Size) -> Vec<String> {
        let as_drawn = |line: &StyledText| {
            let text = line.as_terminal_text();
            if self.has_colors { text.to_owned() } else { strip_str(text).to_string() }
        };
        (self.content)(size).iter().map(as_drawn).collect()
    }

    fn replace(&mut self, lines: Vec<String>, size: Size) {
        if !self.stream.is_ours() {
            return self.frame.forget();
        }
        let codes = self.frame.replace(lines, size);
        self.write(&codes);
    }

    fn erase(&mut self) {
        if !self.stream.is_ours() {
            return self.frame.forget();
        }
        let codes = self.frame.erase(self.stream.size());
        self.write(&codes);
    }

    fn write(&self, codes: &str) {
        if !codes.is_empty() {
            self.stream.write(codes);
        }
    }
}

impl fmt::Debug for LiveBlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LiveBlock")
    }
}
