//! The keys of a job file with a digest of each value, so that two runs can be compared without keeping what may be secret.

use std::collections::BTreeMap;

use serde_json::Value;

use super::file::JobFile;
use crate::hexadecimal::hexadecimal;

/// How many bytes of a digest are kept: enough to see a difference.
const KEPT: usize = 6;

/// The digest of each key that has a value, defaults included; keys of sections as `env.LR`.
pub(super) fn keys_of(file: &JobFile) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    add_keys("", &serde_json::json!(file), &mut keys);
    keys
}

fn add_keys(path: &str, value: &Value, keys: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, field) in fields {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                add_keys(&below, field, keys);
            }
        }
        value => {
            let text = value.to_string();
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
            keys.insert(path.to_owned(), hexadecimal(digest.as_ref().get(..KEPT).unwrap_or_default()));
        }
    }
}
