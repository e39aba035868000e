//! How many columns a text takes on a terminal, and texts that are cut to a number of columns.

use unicode_width::UnicodeWidthChar;

const CUT: char = '…';

/// How many columns a text takes. Characters are counted one by one, as most terminals do.
pub(super) fn width_of(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(character: char) -> usize {
    character.width().unwrap_or_default()
}

/// The text, or as much of its beginning as fits.
pub(in crate::cli) fn cut_end(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mut cut = beginning_that_fits(text.chars(), room);
    cut.push(CUT);
    cut
}

/// The text, or as much of its beginning and its end as fits: names differ at their ends.
pub(super) fn cut_middle(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let end: String = beginning_that_fits(text.chars().rev(), room.div_ceil(2)).chars().rev().collect();
    let mut cut = beginning_that_fits(text.chars(), room - width_of(&end));
    cut.push(CUT);
    cut + &end
}

/// The text with spaces behind it, as wide as asked for.
pub(super) fn pad_to_width(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(width_of(text))))
}

fn beginning_that_fits(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    let fits = |character: &char| {
        used += columns_of(*character);
        used <= room
    };
    characters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::{cut_end, cut_middle, pad_to_width, width_of};

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!(width_of("ab"), 2);
        assert_eq!(width_of("日本"), 4);
        assert_eq!(width_of("e\u{301}"), 1);
        assert_eq!(width_of("\u{1b}"), 0);
        assert_eq!(pad_to_width("日本", 6), "日本  ");
        assert_eq!(pad_to_width("long", 2), "long");
    }

    #[test]
    fn a_text_is_cut_to_its_columns() {
        assert_eq!(cut_end("network", 7), "network");
        assert_eq!(cut_end("network", 4), "net…");
        assert_eq!(cut_end("日本語", 4), "日…");
        assert_eq!(cut_end("network", 1), "…");
        assert_eq!(cut_end("network", 0), "");
    }

    #[test]
    fn a_name_keeps_its_beginning_and_its_end() {
        assert_eq!(cut_middle("paddle-control-plane", 20), "paddle-control-plane");
        assert_eq!(cut_middle("paddle-control-plane", 11), "paddl…plane");
        assert_eq!(cut_middle("paddle-pool-a", 4), "p…-a");
        assert_eq!(cut_middle("日本語日本語", 7), "日本…語");
        assert_eq!(cut_middle("ab", 1), "…");
        assert_eq!(cut_middle("ab", 0), "");
        for width in 0..30 {
            assert!(width_of(&cut_middle("日本-control-plane-語", width)) <= width);
        }
    }
}
