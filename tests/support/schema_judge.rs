//! Output of the program against what `infra schema` says of it, judged by check-jsonschema.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::test_tool::test_tool;

/// The schema that the program prints.
pub fn schema(shape: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_infra")).args(["schema", shape]).output().unwrap();
    assert!(output.status.success(), "infra schema {shape}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The texts that do not fit a schema, by their numbers, each with the complaint about it.
#[track_caller]
pub fn refused(shape: &str, texts: &[String]) -> BTreeMap<usize, String> {
    assert!(!texts.is_empty(), "nothing to judge by the schema of {shape}");
    let judge = test_tool("venv/bin/check-jsonschema");
    let directory = tempfile::tempdir().unwrap();
    let path = |name: String| directory.path().join(name);
    fs::write(path("schema.json".to_owned()), schema(shape).to_string()).unwrap();
    let mut command = Command::new(judge);
    command.args(["--output-format", "json", "--schemafile"]).arg(path("schema.json".to_owned()));
    for (number, text) in texts.iter().enumerate() {
        let file = path(format!("{number}.json"));
        fs::write(&file, text).unwrap();
        command.arg(file);
    }
    let output = command.output().unwrap();
    let verdict: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("check-jsonschema: {output:?}"));
    let list = |key: &str| verdict[key].as_array().cloned().unwrap_or_default();
    let number = |complaint: &Value| {
        let file = Path::new(complaint["filename"].as_str().unwrap());
        file.file_stem().unwrap().to_str().unwrap().parse().unwrap()
    };
    let complaints = list("errors").into_iter().chain(list("parse_errors"));
    let refused: BTreeMap<usize, String> =
        complaints.map(|complaint| (number(&complaint), complaint.to_string())).collect();
    assert_eq!(output.status.success(), refused.is_empty(), "{output:?}");
    refused
}

/// Every text fits.
#[track_caller]
pub fn expect_fit(shape: &str, texts: &[String]) {
    let refused = refused(shape, texts);
    let shown: Vec<String> =
        refused.iter().map(|(number, complaint)| format!("{}\n  {complaint}", texts[*number])).collect();
    assert!(refused.is_empty(), "{} do not fit the schema of {shape}:\n{}", refused.len(), shown.join("\n"));
}

/// None of the texts fits.
#[track_caller]
pub fn expect_refused(shape: &str, texts: &[String]) {
    let refused = refused(shape, texts);
    let fitting = (0..texts.len()).filter(|number| !refused.contains_key(number));
    let fitting: Vec<&String> = fitting.map(|number| &texts[number]).collect();
    assert!(fitting.is_empty(), "the schema of {shape} takes {fitting:#?}");
}

/// Every document of a shape fits, and no longer does when one of its own fields is wrong. One run of the judge for all: it starts slowly.
#[track_caller]
pub fn expect_exact(documents: &BTreeMap<&str, Vec<String>>, may_be_missing: &[&str]) {
    for (shape, good) in documents {
        let objects = good.iter().filter(|text| text.starts_with('{'));
        let bad: Vec<String> = objects.flat_map(|text| broken(text, may_be_missing)).collect();
        let texts = [good.as_slice(), &bad].concat();
        let refused = refused(shape, &texts);
        for (number, text) in texts.iter().enumerate() {
            match (number < good.len(), refused.get(&number)) {
                (true, Some(complaint)) => panic!("{text} does not fit the schema of {shape}: {complaint}"),
                (false, None) => panic!("the schema of {shape} takes {text}"),
                _ => {}
            }
        }
    }
}

/// A document in every way in which one of its own fields can be wrong: missing, by another name, of another kind; and one too many. Those
/// that `may_be_missing` are not left out.
pub fn broken(text: &str, may_be_missing: &[&str]) -> Vec<String> {
    let document: Value = serde_json::from_str(text).unwrap();
    let fields = document.as_object().unwrap();
    let with = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut fields = fields.clone();
        change(&mut fields);
        Value::Object(fields).to_string()
    };
    let mut all = vec![with(&|fields| drop(fields.insert("surplus".to_owned(), Value::Null)))];
    for (name, value) in fields {
        if !may_be_missing.contains(&name.as_str()) {
            all.push(with(&|fields| drop(fields.shift_remove(name))));
        }
        all.push(with(&|fields| {
            let value = fields.shift_remove(name).unwrap();
            fields.insert(format!("{name}2"), value);
        }));
        let other =
            if value.is_array() { Value::Bool(true) } else { Value::Array(vec![Value::Array(Vec::new())]) };
        all.push(with(&|fields| drop(fields.insert(name.clone(), other.clone()))));
    }
    all
}
