//! The document of a Secret with its data, which is overwritten in memory when it was sent.
//!
//! It is written by hand: a JSON value would keep copies of the data that nothing overwrites.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::credentials::SecretText;

/// A key of a Secret and its value.
pub(crate) type SecretEntry<'a> = (&'a str, &'a SecretText);

/// A document, which must have fields, with data added to it.
pub(super) fn with_data(document: &Value, data: &[SecretEntry<'_>]) -> SecretText {
    let head = document.to_string();
    let head = head.strip_suffix('}').unwrap_or(&head);
    let entries: Vec<(String, Zeroizing<String>)> = data
        .iter()
        .map(|(key, value)| (Value::from(*key).to_string(), Zeroizing::new(STANDARD.encode(value.expose()))))
        .collect();
    // All of it at once: a text that grows leaves copies behind.
    let length: usize = entries.iter().map(|(key, value)| key.len() + value.len() + 4).sum();
    let mut text = String::with_capacity(head.len() + length + 16);
    text.push_str(head);
    text.push_str(",\"data\":{");
    for (number, (key, value)) in entries.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(key);
        text.push_str(":\"");
        text.push_str(value);
        text.push('"');
    }
    text.push_str("}}");
    SecretText::new(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::with_data;
    use crate::credentials::SecretText;

    #[test]
    fn the_document_is_json_with_encoded_data() -> Result<(), serde_json::Error> {
        let (one, two) = (SecretText::new("a\"b".to_owned()), SecretText::new(String::new()));
        let text = with_data(&json!({"kind": "Secret"}), &[("A", &one), (".b", &two)]);
        let read: Value = serde_json::from_str(text.expose())?;
        assert_eq!(read, json!({"kind": "Secret", "data": {"A": "YSJi", ".b": ""}}));
        Ok(())
    }
}
