//! The nearest correct spelling of a word that was written wrongly.

/// The candidate that `word` was most likely meant to be, if one is near enough to be worth saying.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_swapped_letters_and_wrong_case() {
        let keys = ["instanceType", "instanceTypes", "count"];
        assert_eq!(nearest("instnaceType", keys), Some("instanceType"));
        assert_eq!(nearest("InstanceTypes", keys), Some("instanceTypes"));
    }

    #[test]
    fn says_nothing_about_a_word_that_is_like_none() {
        assert_eq!(nearest("bananas", ["count", "spot"]), None);
    }
}
