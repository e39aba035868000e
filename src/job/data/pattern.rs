//! Which files are wanted, by their names.

/// A name with wildcards: `*` is any part of a name, `**` of a path, `?` one character. Without a slash it is about the last part of a
/// path, with one about all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: Vec<char>,
    is_path: bool,
}

impl Pattern {
    /// Reads a pattern.
    #[must_use]
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.trim_start_matches("./").chars().collect(), is_path: text.contains('/') }
    }

    /// Whether a path is meant.
    #[must_use]
    pub(crate) fn matches(&self, path: &str) -> bool {
        let about = if self.is_path { path } else { path.rsplit('/').next().unwrap_or_default() };
        matches(&self.text, &about.chars().collect::<Vec<_>>())
    }
}

fn matches(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        (['*', '*', '/', rest @ ..], _) => {
            matches(rest, text) || (0..text.len()).any(|at| text[at] == '/' && matches(rest, &text[at + 1..]))
        }
        (['*', '*', rest @ ..], _) => (0..=text.len()).any(|at| matches(rest, &text[at..])),
        (['*', rest @ ..], _) => {
            let end = text.iter().position(|c| *c == '/').unwrap_or(text.len());
            (0..=end).any(|at| matches(rest, &text[at..]))
        }
        (['?', rest @ ..], [c, more @ ..]) if *c != '/' => matches(rest, more),
        ([wanted, rest @ ..], [c, more @ ..]) if wanted == c => matches(rest, more),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_pattern_is_about_a_name_or_about_a_path() {
        for (pattern, path, is_meant) in [
            ("*.pt", "model.pt", true),
            ("*.pt", "pass-1/model.pt", true),
            ("*.pt", "model.pth", false),
            ("pass-1/*", "pass-1/model.pt", true),
            ("pass-1/*", "pass-1/deep/model.pt", false),
            ("pass-1/**", "pass-1/deep/model.pt", true),
            ("**/model.pt", "model.pt", true),
            ("**/model.pt", "a/b/model.pt", true),
            ("**/model.pt", "a/my-model.pt", false),
            ("pass-?", "pass-1", true),
            ("pass-?", "pass-12", false),
            ("./log.txt", "log.txt", true),
            ("übersicht*", "pass-1/übersicht, final.txt", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(path), is_meant, "{pattern} {path}");
        }
    }
}
