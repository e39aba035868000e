//! Machine-readable output against the schemas that the program prints: real output, and the examples of docs/output.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::reference_output::shapes;
use crate::schema_judge::{broken, expect_exact, expect_fit, expect_refused, schema};
use crate::support::{MINIMAL, Outcome, Workspace};

/// The lines of the first block of docs/output.md.
fn examples() -> Vec<String> {
    block(1)
}

fn block(number: usize) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/output.md");
    let text = fs::read_to_string(path).unwrap();
    let block = text.split("```json\n").nth(number).unwrap().split("```").next().unwrap();
    block.lines().map(str::to_owned).collect()
}

/// The type of an event, and the fields that its line has.
fn kind_and_fields(line: &str) -> (String, BTreeSet<String>) {
    let event: Value = serde_json::from_str(line).unwrap();
    let fields = event.as_object().unwrap().keys().cloned().collect();
    (event["type"].as_str().unwrap().to_owned(), fields)
}

#[test]
fn the_examples_are_events_and_there_is_one_of_each() {
    let examples = examples();
    expect_fit("events", &examples);
    let shown: BTreeSet<String> = examples.iter().map(|line| kind_and_fields(line).0).collect();
    let schema = schema("events");
    let types = schema["oneOf"].as_array().unwrap().iter();
    let types: BTreeSet<String> =
        types.map(|event| event["properties"]["type"]["const"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, types);
    assert_eq!(examples.len(), types.len());
}

#[test]
fn the_examples_of_transfers_are_lines_of_transfers() {
    let examples = block(2);
    expect_exact(&BTreeMap::from([("transfer", examples.clone())]), &[]);
    let shown: BTreeSet<String> = examples.iter().map(|line| kind_and_fields(line).0).collect();
    let types = ["transfer-began", "transfer-progress", "transferred"];
    assert_eq!(shown, types.map(str::to_owned).into());
}

#[test]
fn a_line_with_a_wrong_field_is_no_event() {
    let schema = schema("events");
    let mut lines = vec![r#"{"time":"2026-03-01T12:03:05Z","type":"nothing"}"#.to_owned()];
    for example in examples() {
        let (kind, fields) = kind_and_fields(&example);
        let mut types = schema["oneOf"].as_array().unwrap().iter();
        let described = types.find(|event| event["properties"]["type"]["const"] == kind.as_str()).unwrap();
        let required: Vec<&str> =
            described["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let optional: Vec<&str> =
            fields.iter().map(String::as_str).filter(|field| !required.contains(field)).collect();
        lines.extend(broken(&example, &optional));
        // An unknown word, also where there are several.
        for word in ["create", "created", "refused", "capacity"] {
            let other = example.replace(&format!(":\"{word}\""), ":\"another\"");
            lines.extend((other != example).then_some(other));
        }
        lines.push(example.replace("2026-03-01T12:03:05Z", "today"));
    }
    assert!(lines.len() > 200, "{}", lines.len());
    expect_refused("events", &lines);
}

#[test]
fn every_field_of_every_shape_is_described_and_closed() {
    fn walk(place: &str, schema: &Value) {
        if let Some(fields) = schema["properties"].as_object() {
            assert_eq!(schema["additionalProperties"], false, "{place} is open");
            for (name, field) in fields {
                // What belongs to a kind of change is described with the kind.
                let is_told =
                    field["description"].is_string() || field["const"].is_string() || name == "detail";
                assert!(is_told, "{place}.{name} is not described");
            }
        }
        for keyword in ["properties", "$defs"] {
            let named = schema[keyword].as_object().into_iter().flatten();
            named.for_each(|(name, inner)| walk(&format!("{place}.{name}"), inner));
        }
        let choices = [&schema["oneOf"], &schema["anyOf"]].into_iter().filter_map(Value::as_array).flatten();
        choices
            .chain(schema["items"].is_object().then_some(&schema["items"]))
            .for_each(|inner| walk(place, inner));
    }
    for (shape, _) in shapes().into_iter().filter(|(shape, _)| shape != "cluster") {
        walk(&shape, &schema(&shape));
    }
}

#[test]
fn documents_that_need_no_account_fit_their_schemas() {
    let workspace = Workspace::with_cluster();
    let mut documents: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut print = |shape, arguments: &[&str], code| {
        let mut command = workspace.command([]);
        let run = Outcome::of(command.args(arguments).args(["--output", "json"])).expect_code(code);
        documents.entry(shape).or_default().push(run.stdout);
    };
    print("render", &["render", "credentials", "--generate-ca"], 0);
    print("render", &["render", "stack"], 0);
    print("render", &["render", "--renew"], 0);
    print("certificates", &["certificates"], 0);
    fs::remove_file(workspace.credential("admin.pem")).unwrap();
    print("certificates", &["certificates"], 3);
    print("cost", &["cost"], 0);
    print("validate", &["validate"], 0);
    workspace.write("cluster.yaml", format!("{MINIMAL}bananas: 1\n"));
    print("validate", &["validate"], 2);
    fs::remove_file(workspace.path("cluster.yaml")).unwrap();
    workspace.infra(["job", "init", "--framework", "pytorch"]).expect_code(0);
    print("job-lint", &["job", "lint"], 0);
    workspace.write("job.yaml", workspace.read("job.yaml") + "bananas: 1\n");
    print("job-lint", &["job", "lint"], 2);
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: A_B}\nspec: {completions: many}\n";
    workspace.write("objects.yaml", job);
    print("job-lint", &["job", "lint", "objects.yaml"], 2);
    expect_exact(&documents, &["credentials", "assets", "notice", "account"]);
}
