//! Documents with keys in them: their texts are overwritten when they are dropped.

use ignition_config::v3_3::{Config, File};
use serde_json::Value;
use zeroize::Zeroize;

/// A JSON document with keys in it.
#[derive(Debug)]
pub struct SecretDocument(pub Value);

impl Drop for SecretDocument {
    fn drop(&mut self) {
        wipe_text(&mut self.0);
    }
}

/// An Ignition config with keys in it.
#[derive(Debug)]
pub struct SecretConfig(pub Config);

impl Drop for SecretConfig {
    fn drop(&mut self) {
        let files = self.0.storage.as_mut().and_then(|storage| storage.files.as_mut());
        files.into_iter().flatten().for_each(wipe_contents);
    }
}

/// Overwrites what a file holds.
fn wipe_contents(file: &mut File) {
    if let Some(source) = file.contents.as_mut().and_then(|contents| contents.source.as_mut()) {
        source.zeroize();
    }
}

fn wipe_text(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe_text),
        Value::Object(entries) => entries.values_mut().for_each(wipe_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
