//! A private key's text: never printed, and wiped when it is no longer needed.

use std::fmt;

use zeroize::Zeroizing;

/// A secret. It has no `Display`, its `Debug` says nothing, and its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes a secret over; no other copy should remain.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself, for writing it to where it belongs.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretText(…)")
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(self.0.as_bytes(), other.0.as_bytes()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::SecretText;

    #[test]
    fn debug_output_hides_the_secret() {
        assert_eq!(format!("{:?}", SecretText::new("hunter2".to_owned())), "SecretText(…)");
    }
}
