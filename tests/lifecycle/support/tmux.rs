//! Commands at a terminal of tmux, which nobody here wrote: it says what a person would see, at any size, also after it was resized.

use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use super::directory::Directory;

/// Only what hangs ever needs as long.
const TIME_LIMIT: Duration = Duration::from_secs(240);
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// What a shell prints when the command has ended, before its exit code.
const ENDED: &str = "ended with ";

/// A terminal, which is gone after the test.
pub struct Tmux {
    directory: Directory,
}

impl Tmux {
    /// Runs a line of bash, with nothing of the caller's environment but PATH and what is given.
    pub fn run<'a>(
        columns: usize,
        rows: usize,
        line: &str,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self::start(columns, rows, &format!("{line}; echo {ENDED}$?; exec sleep 1000"), variables)
    }

    /// A shell with job control, to type at.
    pub fn shell<'a>(
        columns: usize,
        rows: usize,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self::start(columns, rows, "PS1='$ ' exec bash --norc --noprofile -i", variables)
    }

    fn start<'a>(
        columns: usize,
        rows: usize,
        line: &str,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let terminal = Self { directory: Directory::new() };
        let mut command = terminal.command(["-f", "/dev/null", "new-session", "-d"]);
        command.args(["-x", &columns.to_string(), "-y", &rows.to_string()]).args(["bash", "-c", line]);
        command.envs(variables);
        let output = command.output().expect("tmux; scripts/prepare-tests installs it");
        assert!(output.status.success(), "{output:?}");
        terminal
    }

    fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").args(words).env_clear().env("TMUX_TMPDIR", self.directory.root());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.directory.root());
        command
    }

    fn ask<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> String {
        let Output { status, stdout, stderr } = self.command(words).output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    /// Everything that is seen, and what has left the screen at its upper end.
    pub fn screen(&self) -> String {
        self.ask(["capture-pane", "-p", "-S", "-"]).trim_end().to_owned()
    }

    /// The same with codes for colours.
    pub fn screen_with_colors(&self) -> String {
        self.ask(["capture-pane", "-p", "-e", "-S", "-"]).trim_end().to_owned()
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: usize, rows: usize) {
        self.ask(["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Types keys, by tmux' names for them.
    pub fn press<'a>(&self, keys: impl IntoIterator<Item = &'a str>) {
        self.ask(["send-keys"].into_iter().chain(keys));
    }

    /// Whether the cursor can be seen.
    pub fn shows_cursor(&self) -> bool {
        self.ask(["display-message", "-p", "#{cursor_flag}"]).trim() == "1"
    }

    /// Returns as soon as the screen says so.
    #[track_caller]
    pub fn wait_for(&self, part: &str) -> String {
        self.wait_until(part, |screen| screen.contains(part))
    }

    /// Returns as soon as the screen is as it should be.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + TIME_LIMIT;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "the screen never showed '{what}':\n{screen}");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The screen once nothing but times has changed on it for two seconds.
    #[track_caller]
    pub fn wait_until_calm(&self, part: &str) -> String {
        let mut last = String::new();
        let mut same = 0;
        self.wait_for(part);
        let end = Instant::now() + TIME_LIMIT;
        while same < 14 {
            let screen = without_times(&self.screen());
            same = if screen == last { same + 1 } else { 0 };
            last = screen;
            assert!(Instant::now() < end, "the screen never was calm:\n{last}");
            thread::sleep(LOOK_EVERY);
        }
        last
    }

    /// The exit code of the line, and the screen at its end.
    #[track_caller]
    pub fn wait_for_end(&self) -> (i32, String) {
        let screen = self.wait_for(ENDED);
        let (seen, code) = screen.rsplit_once(ENDED).unwrap();
        (code.trim().parse().unwrap(), seen.trim_end().to_owned())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(["kill-server"]).output();
    }
}

/// A screen with the word TIME for each duration, which is another one in each run.
pub fn without_times(screen: &str) -> String {
    let lines = screen.lines().map(|line| {
        let words = line.split(' ').map(|word| {
            let is_time = word.ends_with(['h', 'm', 's'])
                && word.starts_with(|first: char| first.is_ascii_digit())
                && word
                    .chars()
                    .all(|character| character.is_ascii_digit() || matches!(character, 'h' | 'm' | 's'));
            if is_time { "TIME" } else { word }
        });
        // Times are as wide as the longest.
        let line = words.collect::<Vec<_>>().join(" ");
        let mut line = line.trim_end().to_owned();
        while line.contains("   TIME") {
            line = line.replace("   TIME", "  TIME");
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}
