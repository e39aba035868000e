//! What was probably meant by something that was written wrongly.

/// The candidate that `word` was most likely meant to be, if one is near enough to be worth saying.
pub(crate) fn nearest_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The YAML list of a text's words; nothing if quotes in it leave open where a word ends.
pub(super) fn list_of_words(text: &str) -> Option<String> {
    if text.trim().is_empty() || text.contains(['\'', '"', '`', '\\']) {
        return None;
    }
    let separators = |c: char| c.is_whitespace() || c == ',';
    let words = text.split(separators).filter(|word| !word.is_empty());
    let words: Vec<String> =
        words.map(|word| if is_plain(word) { word.to_owned() } else { format!("\"{word}\"") }).collect();
    Some(format!("[{}]", words.join(", ")))
}

/// Whether YAML reads a word as text without quotes.
fn is_plain(word: &str) -> bool {
    let is_reserved =
        matches!(word.to_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    let starts_well = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    !is_reserved && starts_well && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=@+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::{list_of_words, nearest_word};

    #[test]
    fn words_that_yaml_would_not_read_as_text_are_quoted() {
        let list = |text| list_of_words(text).unwrap_or_default();
        assert_eq!(list("python train.py"), "[python, train.py]");
        assert_eq!(list("us-west-2a, us-west-2b"), "[us-west-2a, us-west-2b]");
        assert_eq!(list("train --steps 10 -- a:b"), r#"[train, --steps, "10", "--", "a:b"]"#);
        assert_eq!(list_of_words("sh -c 'a b'"), None);
    }

    #[test]
    fn finds_swapped_letters_and_wrong_case() {
        let keys = ["instanceType", "instanceTypes", "count"];
        assert_eq!(nearest_word("instnaceType", keys), Some("instanceType"));
        assert_eq!(nearest_word("InstanceTypes", keys), Some("instanceTypes"));
    }

    #[test]
    fn a_word_unlike_all_others_has_no_suggestion() {
        assert_eq!(nearest_word("bananas", ["count", "spot"]), None);
    }
}
