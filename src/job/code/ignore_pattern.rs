//! One line of a `.gitignore`, with the meaning that git gives it.

/// A pattern for paths relative to the directory of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IgnorePattern {
    /// Whether it includes again what an earlier pattern left out.
    pub(super) is_negated: bool,
    is_for_directories: bool,
    /// Whether it is about the whole path; otherwise about its last part alone.
    is_anchored: bool,
    text: Vec<u8>,
}

impl IgnorePattern {
    /// Reads a line; none if it is empty, a comment, or can match nothing.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.starts_with('#') {
            return None;
        }
        let line = without_trailing_spaces(line);
        let (is_negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (is_for_directories, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        let is_anchored = line.contains('/');
        let text = line.strip_prefix('/').unwrap_or(line);
        if text.is_empty() {
            return None;
        }
        Some(Self { is_negated, is_for_directories, is_anchored, text: text.as_bytes().to_vec() })
    }

    /// Whether a path, relative to the directory of the file, is meant.
    pub(super) fn matches(&self, path: &str, is_directory: bool) -> bool {
        if self.is_for_directories && !is_directory {
            return false;
        }
        let about = if self.is_anchored { path } else { path.rsplit('/').next().unwrap_or(path) };
        matches_at(&self.text, about.as_bytes(), true)
    }
}

/// Spaces at the end do not count, unless a backslash is before them.
fn without_trailing_spaces(line: &str) -> &str {
    let kept = line.trim_end_matches(' ');
    let backslashes = kept.bytes().rev().take_while(|byte| *byte == b'\\').count();
    match line.len() - kept.len() {
        1.. if backslashes % 2 == 1 => &line[..=kept.len()],
        _ => kept,
    }
}

/// Whether a pattern matches all of a text. `at_start`: whether what is before the pattern is nothing or a slash, so that `**` may be
/// several directories.
fn matches_at(pattern: &[u8], text: &[u8], at_start: bool) -> bool {
    match pattern {
        [] => text.is_empty(),
        // Everything in a directory, whatever its depth, but not the directory itself.
        [b'*', b'*'] if at_start => !text.is_empty(),
        [b'*', b'*', b'/', rest @ ..] if at_start => {
            matches_at(rest, text, true)
                || positions_of_slashes(text).any(|at| matches_at(rest, &text[at + 1..], true))
        }
        [b'*', ..] => {
            let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
            let end = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
            (0..=end).any(|at| matches_at(&pattern[stars..], &text[at..], false))
        }
        [b'?', rest @ ..] => {
            text.split_first().is_some_and(|(byte, more)| *byte != b'/' && matches_at(rest, more, false))
        }
        [b'[', rest @ ..] => {
            let Some((byte, more)) = text.split_first().filter(|(byte, _)| **byte != b'/') else {
                return false;
            };
            // A class without an end matches nothing.
            matches_class(rest, *byte).is_some_and(|(is_in, rest)| is_in && matches_at(rest, more, false))
        }
        [b'\\', wanted, rest @ ..] | [wanted, rest @ ..] if !(*wanted == b'\\' && pattern.len() == 1) => text
            .split_first()
            .is_some_and(|(byte, more)| byte == wanted && matches_at(rest, more, *byte == b'/')),
        // A backslash at the end escapes nothing.
        _ => false,
    }
}

fn positions_of_slashes(text: &[u8]) -> impl Iterator<Item = usize> {
    text.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at)
}

/// Whether a byte is in a class, whose text begins after the bracket; and what follows the class. None if it has no end.
fn matches_class(class: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (is_negated, mut rest) = match class {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut is_in = false;
    let mut is_first = true;
    loop {
        match rest {
            [b']', more @ ..] if !is_first => return Some((is_in != is_negated, more)),
            [b'[', b':', more @ ..] => {
                let end = more.windows(2).position(|two| two == b":]")?;
                is_in |= is_of_kind(&more[..end], byte)?;
                rest = &more[end + 2..];
            }
            _ => {
                let (low, more) = class_member(rest)?;
                let (high, more) = match more {
                    [b'-', after @ ..] if !after.starts_with(b"]") => class_member(after)?,
                    _ => (low, more),
                };
                is_in |= (low..=high).contains(&byte);
                rest = more;
            }
        }
        is_first = false;
    }
}

fn class_member(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => Some((*byte, rest)),
        [] => None,
    }
}

/// The classes of POSIX that have a name.
fn is_of_kind(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::IgnorePattern;

    fn matches(pattern: &str, path: &str, is_directory: bool) -> bool {
        IgnorePattern::parse(pattern).is_some_and(|pattern| pattern.matches(path, is_directory))
    }

    #[test]
    fn lines_without_a_pattern_are_left_out() {
        for line in ["", "# a comment", "   ", "/", "!", "\r"] {
            assert_eq!(IgnorePattern::parse(line), None, "{line:?}");
        }
    }

    // What git itself says of these and many more is compared in tests/cli/code.rs.
    #[test]
    fn a_pattern_means_what_git_means() {
        for (pattern, path) in [
            ("*.pt", "deep/model.pt"),
            ("/model.pt", "model.pt"),
            ("a/*.py", "a/b.py"),
            ("**/logs", "x/y/logs"),
            ("logs/**", "logs/a/b"),
            ("a/**/b", "a/b"),
            ("a/**/b", "a/x/y/b"),
            ("[a-c]?.txt", "b1.txt"),
            ("[!a].txt", "b.txt"),
            ("[[:digit:]]*", "1a"),
            (r"\#x", "#x"),
            (r"\!x", "!x"),
            ("x\\ ", "x "),
            ("x ", "x"),
            ("a**b", "axxb"),
        ] {
            assert!(matches(pattern, path, false), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/model.pt", "deep/model.pt"),
            ("a/*.py", "a/b/c.py"),
            ("logs/**", "logs"),
            ("build/", "build"),
            ("a?b", "a/b"),
            ("[a-c", "a"),
            ("x\\", "x"),
            ("a**b", "a/b"),
        ] {
            assert!(!matches(pattern, path, false), "{pattern} {path}");
        }
        assert!(matches("build/", "x/build", true));
    }
}
