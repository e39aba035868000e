//! A JSON text that is put into a YAML template, which reads it as what it is: JSON is YAML too.

use serde::Serialize;
use serde_json::Value;

/// One value, written as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Json(String);

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}
