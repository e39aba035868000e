//! `docs/reference/` on machine-readable output: events, documents and exit codes, created from `infra schema` and `infra --help`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::reference::{NOTE, expect_page, kind, resolve};
use crate::support::Workspace;

fn schema(shape: &str) -> Value {
    serde_json::from_str(&Workspace::new().infra(["schema", shape]).expect_code(0).stdout).unwrap()
}

/// Each shape that the help text lists, and what it says of it.
pub fn shapes() -> Vec<(String, String)> {
    let help = Workspace::new().infra(["schema", "--help"]).expect_code(0).stdout;
    let lines = help.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    let shapes: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    assert!(shapes.len() > 10, "{help}");
    shapes.into_iter().map(|(name, text)| (name.to_owned(), text.trim().to_owned())).collect()
}

/// Writes the fields of objects as tables, those inside of others below.
struct Page<'a> {
    text: String,
    root: &'a Value,
    /// What precedes a path in a heading.
    prefix: String,
    /// Where each definition was described.
    seen: BTreeMap<String, String>,
}

impl Page<'_> {
    fn of<'a>(root: &'a Value, prefix: &str) -> Page<'a> {
        Page { text: String::new(), root, prefix: prefix.to_owned(), seen: BTreeMap::new() }
    }

    /// The table of an object without the `known` fields, and below it those of the objects in it.
    fn object(&mut self, path: &str, object: &Value, known: &[&str]) {
        let mut inner = Vec::new();
        let required: Vec<&str> =
            object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        self.text.push_str("\n| field | is | means |\n|---|---|---|\n");
        let fields = object["properties"].as_object().unwrap().iter();
        for (name, field) in fields.filter(|(name, _)| !known.contains(&name.as_str())) {
            let full = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let (mut is, below) = self.kind_of(field, &full);
            if is_nullable(field) {
                is.push_str(" or null");
            }
            if !required.contains(&name.as_str()) {
                is.push_str(", may be left out");
            }
            let means = self.meaning(field);
            let _ = writeln!(self.text, "| `{name}` | {is} | {means} |");
            inner.extend(below.map(|schema| (full, schema)));
        }
        for (path, schema) in inner {
            let _ = write!(self.text, "\n### {}{path}\n", self.prefix);
            self.any(&path, &schema);
        }
    }

    fn any(&mut self, path: &str, schema: &Value) {
        match schema["oneOf"].as_array() {
            Some(choices) => self.choices(choices),
            None => self.object(path, schema, &[]),
        }
    }

    /// Objects that one word distinguishes, one line each.
    fn choices(&mut self, choices: &[Value]) {
        let (tag, _) = tag_of(&choices[0]);
        let _ = write!(self.text, "\n| `{tag}` | means | has also |\n|---|---|---|\n");
        for choice in choices {
            let (tag, word) = tag_of(choice);
            let fields = choice["properties"].as_object().unwrap().iter().filter(|(name, _)| **name != tag);
            let fields: Vec<String> = fields.map(|(name, field)| self.short_field(name, field)).collect();
            let means = choice["description"].as_str().unwrap();
            let _ = writeln!(self.text, "| `{word}` | {means} | {} |", fields.join("; "));
        }
    }

    /// A field of a choice in a few words, with those of its own.
    fn short_field(&self, name: &str, field: &Value) -> String {
        let field = resolve(field, self.root);
        match field["properties"].as_object() {
            Some(inner) => {
                let inner =
                    inner.iter().map(|(key, inner)| self.short_field(&format!("{name}.{key}"), inner));
                inner.collect::<Vec<_>>().join("; ")
            }
            None => format!("`{name}`: {}", kind(&field, self.root)),
        }
    }

    /// What a field is, and the object that must be described below, if it holds one that is not described yet.
    fn kind_of(&mut self, field: &Value, path: &str) -> (String, Option<Value>) {
        let resolved = resolve(field, self.root);
        let is_list = resolved["items"].is_object();
        let inner = if is_list { resolve(&resolved["items"], self.root) } else { resolved.clone() };
        if words(&inner).is_some() {
            return (if is_list { "list of words" } else { "word" }.to_owned(), None);
        }
        if !inner["properties"].is_object() && !inner["oneOf"].is_array() {
            return (kind(&resolved, self.root), None);
        }
        let list = if is_list { "list of sections" } else { "section" };
        let name = inner.to_string();
        if let Some(place) = self.seen.get(&name) {
            return (format!("{list} as `{place}`"), None);
        }
        self.seen.insert(name, path.to_owned());
        (list.to_owned(), Some(inner))
    }

    /// What a field means, with every word that it can be.
    fn meaning(&self, field: &Value) -> String {
        let resolved = resolve(field, self.root);
        let described = field["description"].as_str().or(resolved["description"].as_str());
        let described = described.unwrap_or_else(|| panic!("{field} has no description"));
        let words = words(&resolved).unwrap_or_default();
        let each = words.iter().map(|(word, means)| format!("`{word}`: {}", means.trim_end_matches('.')));
        let each: Vec<String> = each.collect();
        if each.is_empty() { described.to_owned() } else { format!("{described} {}.", each.join("; ")) }
    }
}

/// The words that a field can be, each with its meaning.
fn words(schema: &Value) -> Option<Vec<(&str, &str)>> {
    let choices = schema["oneOf"].as_array()?;
    choices.iter().map(|choice| Some((choice["const"].as_str()?, choice["description"].as_str()?))).collect()
}

/// The field with only one possible word, and that.
fn tag_of(choice: &Value) -> (String, String) {
    let fields = choice["properties"].as_object().unwrap();
    let (name, word) =
        fields.iter().find_map(|(name, field)| Some((name, field["const"].as_str()?))).unwrap();
    (name.clone(), word.to_owned())
}

fn is_nullable(field: &Value) -> bool {
    let has_null = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(|one| one == "null"));
    let choices = field["anyOf"].as_array().into_iter().flatten();
    has_null(&field["type"]) || choices.into_iter().any(|choice| choice["type"] == "null")
}

#[test]
fn events_are_described_as_they_are_written() {
    let schema = schema("events");
    let types = schema["oneOf"].as_array().unwrap();
    let mut text = format!(
        "{NOTE}\n\n# Events\n\n{} [Output for programs](../output.md) has the promise, the order and an example of each; `infra schema events` the schema.\n",
        schema["description"].as_str().unwrap()
    );
    let time = types[0]["properties"]["time"]["description"].as_str().unwrap();
    let _ = write!(
        text,
        "\n| field | is | means |\n|---|---|---|\n| `time` | text | {time} |\n| `type` | word | What happened. |\n"
    );
    text.push_str("\n| type | says |\n|---|---|\n");
    for event in types {
        let (_, name) = tag_of(event);
        let _ = writeln!(text, "| [`{name}`](#{name}) | {} |", event["description"].as_str().unwrap());
    }
    let mut page = Page::of(&schema, "");
    for event in types {
        assert_eq!(event["properties"]["time"]["description"], time);
        let (_, name) = tag_of(event);
        let _ = write!(page.text, "\n## {name}\n\n{}\n", event["description"].as_str().unwrap());
        page.object(&name, event, &["time", "type"]);
    }
    let text = text + &page.text;
    for part in
        ["\n## stack-failed\n", "\n### destroyed.stuck.resources\n", "`attach`: Another process began"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    expect_page("events.md", &text);
}

#[test]
fn documents_are_described_as_they_are_printed() {
    let mut text = format!(
        "{NOTE}\n\n# Documents\n\nWhat commands print with `--output json`, besides [events](events.md). [Output for programs](../output.md) says what \
         can be relied on.\n"
    );
    for (shape, printed_by) in shapes() {
        if ["cluster", "events"].contains(&shape.as_str()) {
            continue;
        }
        let schema = schema(&shape);
        let _ =
            write!(text, "\n## {shape}\n\nPrinted by {printed_by}; `infra schema {shape}` has the schema.\n");
        let mut page = Page::of(&schema, &format!("{shape}: "));
        let is_list = schema["type"] == "array";
        let all = if is_list { &schema["items"] } else { &schema };
        let one_of = all["anyOf"].as_array();
        for one in one_of.into_iter().flatten().chain(one_of.is_none().then_some(all)) {
            let one = match one["$ref"].as_str() {
                Some(_) => schema.pointer(&one["$ref"].as_str().unwrap()[1..]).unwrap(),
                None => one,
            };
            let each = if is_list { "A list. Each item: " } else { "" };
            let _ = write!(page.text, "\n{each}{}\n", one["description"].as_str().unwrap());
            // Lines that a word distinguishes have a table each.
            for line in one["oneOf"].as_array().into_iter().flatten() {
                let (_, name) = tag_of(line);
                let _ =
                    write!(page.text, "\n### {shape}: {name}\n\n{}\n", line["description"].as_str().unwrap());
                page.object(&name, line, &["type"]);
            }
            if one["oneOf"].is_null() {
                page.object("", one, &[]);
            }
        }
        text.push_str(&page.text);
    }
    for part in [
        "\n## status\n",
        "\n### plan: stacks.resources.userData.change\n",
        "| `masked` | The file may hold keys",
        "\n## gpu-check\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    expect_page("documents.md", &text);
}

#[test]
fn exit_codes_are_those_of_the_help_text() {
    let help = Workspace::new().infra(["--help"]).expect_code(0).stdout;
    let list = help.split("Exit codes:\n").nth(1).unwrap();
    let mut text = format!("{NOTE}\n\n# Exit codes\n\n| code | means |\n|---|---|\n");
    for line in list.lines() {
        let (code, meaning) =
            line.trim_start().split_once("  ").unwrap_or_else(|| panic!("'{line}' is wrapped"));
        let _ = writeln!(text, "| {code} | {meaning} |");
    }
    text.push_str("\nEvery page of `infra man` repeats this list; [documents.md](documents.md) says which of them a command that prints a document ends with.\n");
    assert!(text.contains("| 0 | done") && text.contains("| 130 | interrupted |"), "{text}");
    expect_page("exit-codes.md", &text);
}
