//! Messages that others wrote: one line each, so that none can look like a line of ours.

/// A message in one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn line_ends_become_spaces() {
        assert_eq!(one_line("no image\n\r\n\terror:  all is lost\n"), "no image error: all is lost");
    }
}
