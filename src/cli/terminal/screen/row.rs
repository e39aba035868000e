//! One line of a live display: a mark, a name, what is done to it, a bar, a count, the time, and what is waited for.
//!
//! What does not fit into the columns of the terminal is left out, the least important first. Marks and bars can be distinguished without
//! colours.

use anstyle::{AnsiColor, Style};

use super::width::{cut_end, cut_middle, pad_to_width, width_of};
use crate::cli::terminal::foreign_text::clean_line;
use crate::cli::terminal::styled_text::StyledText;

const PLAIN: Style = Style::new();
/// Columns between two cells.
const GAP: &str = "  ";
/// From these widths on there are cells for the time, the bar and the work.
const WITH_TIME: usize = 36;
const WITH_BAR: usize = 50;
const WITH_WORK: usize = 78;
/// The least room in which the beginning of what is waited for says something.
const LEAST_DETAIL: usize = 6;
const DONE: char = '━';
const TO_DO: char = '─';

/// How far something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) enum Mark {
    /// It has not begun.
    #[default]
    Waiting,
    /// It is worked on.
    Running,
    /// It is done.
    Done,
    /// There was nothing to do.
    Unchanged,
    /// It failed.
    Failed,
    /// It is left out.
    Skipped,
}

impl Mark {
    fn symbol(self) -> &'static str {
        match self {
            Self::Waiting => "·",
            Self::Running => "▸",
            Self::Done => "✓",
            Self::Unchanged => "=",
            Self::Failed => "✗",
            Self::Skipped => "-",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Waiting | Self::Skipped => Style::new().dimmed(),
            Self::Running => AnsiColor::Cyan.on_default().bold(),
            Self::Done | Self::Unchanged => AnsiColor::Green.on_default(),
            Self::Failed => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// How much is done, of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Share {
    pub(in crate::cli) done: u64,
    pub(in crate::cli) all: u64,
}

/// One line. What is empty takes no room.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Row {
    pub(in crate::cli) mark: Mark,
    pub(in crate::cli) indent: usize,
    pub(in crate::cli) name: String,
    /// What is done to it, while it is.
    pub(in crate::cli) work: String,
    pub(in crate::cli) share: Option<Share>,
    pub(in crate::cli) count: String,
    pub(in crate::cli) elapsed: String,
    /// What is waited for, or how it ended; cut where the line ends.
    pub(in crate::cli) detail: String,
    /// What is said only if all of it fits.
    pub(in crate::cli) aside: String,
}

/// Rows as lines with the same columns, each at most `width` wide; names take at most `widest_name`.
pub(in crate::cli) fn lay_out(rows: &[Row], width: usize, widest_name: usize) -> Vec<StyledText> {
    let widest = |cell: fn(&Row) -> &str| rows.iter().map(|row| width_of(cell(row))).max().unwrap_or(0);
    let columns = Columns {
        name: rows.iter().map(|row| width_of(&clean_line(&row.name))).max().unwrap_or(0).min(widest_name),
        work: if width < WITH_WORK { 0 } else { widest(|row| &row.work) },
        bar: if rows.iter().any(|row| row.share.is_some()) { bar_width(width) } else { 0 },
        count: widest(|row| &row.count),
        elapsed: widest(|row| &row.elapsed),
    };
    rows.iter().map(|row| columns.line(row, width)).collect()
}

fn bar_width(width: usize) -> usize {
    match width {
        0..WITH_BAR => 0,
        WITH_BAR..WITH_WORK => 6,
        WITH_WORK..120 => 12,
        _ => 24,
    }
}

/// How wide the cells are.
struct Columns {
    name: usize,
    work: usize,
    bar: usize,
    count: usize,
    elapsed: usize,
}

impl Columns {
    fn line(&self, row: &Row, width: usize) -> StyledText {
        let mut line = Line { text: StyledText::default(), room: width };
        line.push(PLAIN, &" ".repeat(row.indent));
        line.push(row.mark.style(), row.mark.symbol());
        line.push(PLAIN, " ");
        line.push(PLAIN, &pad_to_width(&cut_middle(&clean_line(&row.name), self.name), self.name));
        if row.mark == Mark::Running {
            if self.work > 0 {
                line.cell(PLAIN, &pad_to_width(&row.work, self.work));
            }
            self.push_bar(row.share, &mut line);
            if self.count > 0 {
                line.cell(PLAIN, &format!("{:>1$}", row.count, self.count));
            }
            if self.elapsed > 0 && width >= WITH_TIME {
                line.cell(Style::new().dimmed(), &format!("{:>1$}", row.elapsed, self.elapsed));
            }
        } else if !row.elapsed.is_empty() {
            line.cell(Style::new().dimmed(), &row.elapsed);
        }
        let detail = clean_line(&row.detail);
        if !detail.is_empty() && (line.room_for_cell() >= LEAST_DETAIL || line.fits(&detail)) {
            line.cell(if row.mark == Mark::Failed { row.mark.style() } else { PLAIN }, &detail);
        }
        if !row.aside.is_empty() && line.fits(&row.aside) {
            line.cell(Style::new().dimmed(), &row.aside);
        }
        line.text
    }

    fn push_bar(&self, share: Option<Share>, line: &mut Line) {
        if self.bar == 0 {
            return;
        }
        let done = share.map_or(0, |share| filled_bar_width(share, self.bar));
        line.cell(AnsiColor::Cyan.on_default(), &DONE.to_string().repeat(done));
        let rest = if share.is_some() { TO_DO } else { ' ' };
        line.push(Style::new().dimmed(), &rest.to_string().repeat(self.bar - done));
    }
}

/// How many columns of a bar are done: all of them only if everything is.
fn filled_bar_width(share: Share, width: usize) -> usize {
    let columns = u128::from(share.done) * (width as u128) / u128::from(share.all.max(1));
    usize::try_from(columns).map_or(width, |columns| columns.min(width))
}

/// A line that never gets wider than the room it was given.
struct Line {
    text: StyledText,
    room: usize,
}

impl Line {
    fn push(&mut self, style: Style, text: &str) {
        let shown = cut_end(text, self.room);
        self.room -= width_of(&shown);
        let text = std::mem::take(&mut self.text);
        self.text = text.then(if style == PLAIN || shown.is_empty() {
            StyledText::from(shown)
        } else {
            StyledText::styled(style, shown)
        });
    }

    fn cell(&mut self, style: Style, text: &str) {
        self.push(PLAIN, &GAP[..GAP.len().min(self.room)]);
        self.push(style, text);
    }

    fn room_for_cell(&self) -> usize {
        self.room.saturating_sub(GAP.len())
    }

    fn fits(&self, text: &str) -> bool {
        width_of(text) <= self.room_for_cell()
    }
}

#[cfg(test)]
mod tests {
    use super::super::width::width_of;
    use super::{Mark, Row, Share, filled_bar_width, lay_out};

    fn rows() -> Vec<Row> {
        vec![
            Row {
                mark: Mark::Done,
                name: "paddle-network".to_owned(),
                detail: "created in 1m52s".to_owned(),
                ..Row::default()
            },
            Row {
                mark: Mark::Running,
                name: "paddle-control-plane".to_owned(),
                work: "create".to_owned(),
                share: Some(Share { done: 21, all: 34 }),
                count: "21/34".to_owned(),
                elapsed: "2m04s".to_owned(),
                detail: "ApiLoadBalancer".to_owned(),
                aside: "usually 2–3 min".to_owned(),
                ..Row::default()
            },
            Row {
                name: "paddle-pool-gpu".to_owned(),
                detail: "after control-plane".to_owned(),
                ..Row::default()
            },
        ]
    }

    fn drawn(width: usize) -> Vec<String> {
        lay_out(&rows(), width, width / 3).iter().map(|line| line.bare().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_wide_terminal_shows_everything() {
        assert_eq!(
            drawn(199),
            [
                "✓ paddle-network        created in 1m52s",
                "▸ paddle-control-plane  create  ━━━━━━━━━━━━━━──────────  21/34  2m04s  ApiLoadBalancer  usually 2–3 min",
                "· paddle-pool-gpu       after control-plane",
            ]
        );
    }

    #[test]
    fn eighty_columns_have_a_shorter_bar_and_no_aside_that_does_not_fit() {
        assert_eq!(
            drawn(79),
            [
                "✓ paddle-network        created in 1m52s",
                "▸ paddle-control-plane  create  ━━━━━━━─────  21/34  2m04s  ApiLoadBalancer",
                "· paddle-pool-gpu       after control-plane",
            ]
        );
    }

    #[test]
    fn sixty_columns_cut_names_in_the_middle() {
        assert_eq!(
            drawn(59),
            [
                "✓ paddle-network       created in 1m52s",
                "▸ paddle-co…rol-plane  ━━━───  21/34  2m04s  ApiLoadBalanc…",
                "· paddle-pool-gpu      after control-plane",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_its_terminal() {
        let mut all = rows();
        all.push(Row {
            mark: Mark::Failed,
            indent: 2,
            name: "日本語-パドル".to_owned(),
            detail: "日本語 ".repeat(40),
            ..Row::default()
        });
        for width in 0..130 {
            for line in lay_out(&all, width, width / 3) {
                assert!(width_of(&line.bare()) <= width, "{width}: {}", line.bare());
            }
        }
        assert!(drawn(0).iter().all(String::is_empty));
    }

    #[test]
    fn foreign_names_cannot_control_the_terminal() {
        let row = Row { name: "a\u{1b}[2J\nb".to_owned(), detail: "c\rd".to_owned(), ..Row::default() };
        assert_eq!(lay_out(&[row], 40, 20)[0].bare(), "· a�[2J b  c d");
    }

    #[test]
    fn a_bar_is_full_only_at_the_end() {
        let columns = |done, all| filled_bar_width(Share { done, all }, 8);
        assert_eq!(
            [columns(0, 0), columns(0, 9), columns(8, 9), columns(9, 9), columns(12, 9)],
            [0, 0, 7, 8, 8]
        );
        assert_eq!(columns(u64::MAX, u64::MAX), 8);
    }
}
