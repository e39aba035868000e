//! Text with colours of ours. Everything that it is built from is cleaned, so that it holds no other code for a terminal.

use std::fmt::Display;

use anstyle::Style;

use crate::cli::terminal::foreign_text::clean_foreign_text;

/// A text with styles. It is no `Display`, so that it cannot be taken for a text of others.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct StyledText(String);

impl StyledText {
    /// A text in a style.
    pub(in crate::cli) fn styled(style: Style, text: impl Display) -> Self {
        Self(format!("{style}{}{style:#}", clean_foreign_text(&text.to_string())))
    }

    /// The text with another behind it.
    pub(in crate::cli) fn then(mut self, more: impl Into<Self>) -> Self {
        self.0.push_str(&more.into().0);
        self
    }

    /// Lines as one text.
    pub(in crate::cli) fn lines(lines: impl IntoIterator<Item = Self>) -> Self {
        Self(lines.into_iter().map(|line| line.0).collect::<Vec<_>>().join("\n"))
    }

    /// The text with its codes for a terminal.
    pub(in crate::cli) fn as_terminal_text(&self) -> &str {
        &self.0
    }

    /// The text alone.
    #[cfg(test)]
    pub(in crate::cli) fn bare(&self) -> String {
        anstream::adapter::strip_str(&self.0).to_string()
    }
}

/// Any text, without a style.
impl<T: Display> From<T> for StyledText {
    fn from(text: T) -> Self {
        Self(clean_foreign_text(&text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::StyledText;

    #[test]
    fn styled_text_has_only_the_styles_of_infra() {
        let bold = Style::new().bold();
        let text = StyledText::styled(bold, "a\u{1b}[2J").then(": ").then("\u{1b}]0;x\u{7}b");
        assert_eq!(text.as_terminal_text(), "\u{1b}[1ma�[2J\u{1b}[0m: �]0;x�b");
        assert_eq!(StyledText::lines([text, "c".into()]).bare(), "a�[2J: �]0;x�b\nc");
    }
}
