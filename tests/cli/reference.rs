//! `docs/reference/`: pages that are written from what the program prints about itself, so that they cannot be wrong. `SNAPSHOTS=overwrite`
//! renews them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::support::Workspace;

pub const NOTE: &str = "<!-- Made from the program by tests/cli; SNAPSHOTS=overwrite cargo test --test cli reference renews it. -->";

#[track_caller]
pub fn expect_page(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(name);
    if std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/{name} is not what the program says; SNAPSHOTS=overwrite renews it"
    );
}

fn schema(arguments: &[&str]) -> Value {
    let workspace = Workspace::new();
    let run = match arguments {
        [one] => workspace.infra([*one]),
        [one, two] => workspace.infra([*one, *two]),
        _ => panic!("{arguments:?}"),
    };
    serde_json::from_str(&run.expect_code(0).stdout).unwrap()
}

/// Every key of a schema as a table, sections below their own headings.
fn page(title: &str, schema: &Value) -> String {
    let mut text = format!("{NOTE}\n\n# {title}\n\n{}\n", schema["description"].as_str().unwrap());
    let mut sections = vec![(String::new(), schema.clone())];
    let mut number = 0;
    while number < sections.len() {
        let (name, section) = sections[number].clone();
        number += 1;
        if !name.is_empty() {
            let _ = write!(text, "\n## {name}\n");
        }
        text.push_str("\n| key | is | default | means |\n|---|---|---|---|\n");
        let required: Vec<&str> =
            section["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, property) in section["properties"].as_object().unwrap() {
            let resolved = resolve(property, schema);
            let described =
                property["description"].as_str().or(resolved["description"].as_str()).unwrap_or_default();
            let default = match property.get("default") {
                _ if required.contains(&key.as_str()) => "required".to_owned(),
                None | Some(Value::Null) => "–".to_owned(),
                Some(Value::Object(_)) => "below".to_owned(),
                Some(value) => format!("`{value}`"),
            };
            let full = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            let _ = writeln!(text, "| `{key}` | {} | {default} | {described} |", kind(&resolved, schema));
            let inner =
                if resolved["items"].is_object() { resolve(&resolved["items"], schema) } else { resolved };
            if inner["properties"].is_object() {
                sections.push((full, inner));
            }
        }
    }
    text
}

/// A schema behind references and "or nothing".
pub fn resolve(schema: &Value, root: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.trim_start_matches("#/$defs/");
        return resolve(&root["$defs"][name], root);
    }
    let mut options = schema["anyOf"].as_array().into_iter().flatten();
    match options.rfind(|option| option["type"] != "null") {
        Some(option) => resolve(option, root),
        None => schema.clone(),
    }
}

pub fn kind(schema: &Value, root: &Value) -> String {
    let choices: Vec<&str> = schema["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .chain(schema["oneOf"].as_array().into_iter().flatten().map(|choice| &choice["const"]))
        .filter_map(Value::as_str)
        .collect();
    if !choices.is_empty() {
        return choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        other => other.as_str(),
    };
    match types {
        Some("array") => format!("list of {}", kind(&resolve(&schema["items"], root), root)),
        Some("object") if schema["properties"].is_object() => "section".to_owned(),
        Some("object") => "map".to_owned(),
        Some("string") => "text".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            _ => "number".to_owned(),
        },
        other => other.unwrap_or("anything").to_owned(),
    }
}

#[test]
fn the_cluster_file_is_described_as_it_is_read() {
    let text = page("cluster.yaml", &schema(&["schema"]));
    assert!(text.contains("| `clusterName` | text | required |"), "{text}");
    assert!(text.contains("\n## pools\n") && text.contains("\n## storage.efs\n"), "{text}");
    expect_page("cluster.md", &text);
}

#[test]
fn the_job_file_is_described_as_it_is_read() {
    let text = page("A job file", &schema(&["job", "schema"]));
    assert!(text.contains("| `framework` | `paddle-v0`, `paddle`, "), "{text}");
    expect_page("job.md", &text);
}

/// What an operator of the example of the README must be allowed.
#[test]
fn the_operators_rights_are_those_the_program_asks_for() {
    let workspace = Workspace::with_cluster();
    let run =
        workspace.infra(["policy", "--s3-uri", "s3://bucket/prefix", "--output", "json"]).expect_code(0);
    let policies: Map<String, Value> = serde_json::from_str(&run.stdout).unwrap();
    let mut text = format!(
        "{NOTE}\n\n# What an operator must be allowed\n\nFor a cluster called `paddle` in us-west-2; `infra policy --s3-uri s3://bucket/prefix --output json` prints yours. `infra-paddle-boundary` is the permissions boundary of the IAM roles of machines; all others are the operator's. Data of jobs in S3 needs more: s3:ListBucket, s3:GetObject and, for a KMS key, kms:Decrypt on the buckets of that data.\n"
    );
    for (name, policy) in &policies {
        let document = policy.get("document").unwrap_or(policy);
        let _ = write!(
            text,
            "\n## {name}\n\n```json\n{}\n```\n",
            serde_json::to_string_pretty(document).unwrap()
        );
    }
    expect_page("policy.md", &text);
}

/// Every command with its flags, as `--help` has them.
#[test]
fn commands_are_described_as_they_are_parsed() {
    let workspace = Workspace::new();
    let mut text = format!("{NOTE}\n\n# Commands\n");
    let list = workspace.infra(["--help"]).expect_code(0).stdout;
    let _ = write!(text, "\n```\n{}\n```\n", list.trim_end());
    for command in commands_of(&list) {
        let help = workspace.infra([command.as_str(), "--help"]).expect_code(0).stdout;
        let _ = write!(text, "\n## {command}\n\n```\n{}\n```\n", help.trim_end());
        if ["job", "render"].contains(&command.as_str()) {
            for inner in commands_of(&help) {
                let help =
                    workspace.infra([command.as_str(), inner.as_str(), "--help"]).expect_code(0).stdout;
                let _ = write!(text, "\n### {command} {inner}\n\n```\n{}\n```\n", help.trim_end());
            }
        }
    }
    expect_page("commands.md", &text);
}

#[test]
fn every_command_has_its_row() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md")).unwrap();
    let names: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `infra ")?.split(" |").next())
        .flat_map(|cell| cell.split("`, `"))
        .map(|name| name.trim_end_matches('`'))
        .collect();
    for command in commands_of(&Workspace::new().infra(["--help"]).expect_code(0).stdout) {
        let rows = names.iter().filter(|name| name.split(' ').next() == Some(&command)).count();
        let wanted = if command == "render" { 2 } else { 1 };
        assert_eq!(rows, wanted, "docs/commands.md and `{command}`: {names:?}");
    }
    let row = page.lines().find(|line| line.starts_with("| `infra job` ")).unwrap();
    for command in commands_of(&Workspace::new().infra(["job", "--help"]).expect_code(0).stdout) {
        assert!(row.contains(&format!("`{command}`")), "docs/commands.md lacks `infra job {command}`: {row}");
    }
}

/// The commands that a help text lists.
pub fn commands_of(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}
