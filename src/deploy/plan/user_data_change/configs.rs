//! Two machines' Ignition configs into the files and units that differ, without a word of what holds keys.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use similar::TextDiff;
use zeroize::Zeroizing;

use super::file_change::{FileChange, TextChange};

/// What changes from one machine to another, sorted by path; each is given by its configs in the order Ignition merges them.
pub(crate) fn compare_configs(old: &[Value], new: &[Value]) -> Vec<FileChange> {
    let (old, new) = (merge_configs(old), merge_configs(new));
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changes = paths.into_iter().filter_map(|path| {
        let change = match (old.get(path), new.get(path)) {
            (None, _) => TextChange::Added,
            (_, None) => TextChange::Removed,
            (Some(old), Some(new)) => compare_entries(path, old, new)?,
        };
        Some(FileChange { path: path.clone(), change })
    });
    changes.collect()
}

/// A file, directory, unit or drop-in, or a section of the config that is none of these.
#[derive(Default)]
struct Entry {
    content: Option<Zeroizing<Vec<u8>>>,
    /// What may be shown beside the content.
    attributes: BTreeMap<String, String>,
    /// What may hold anything.
    hidden: Vec<(String, Value)>,
}

type Entries = BTreeMap<String, Entry>;

fn merge_configs(configs: &[Value]) -> Entries {
    let mut all = Entries::new();
    for (section, value) in configs.iter().filter_map(Value::as_object).flatten() {
        match section.as_str() {
            "storage" => add_storage(&mut all, value),
            "systemd" => list_items(&value["units"]).for_each(|unit| add_unit(&mut all, unit)),
            _ => all.entry(section.clone()).or_default().add(value),
        }
    }
    all
}

fn add_storage(all: &mut Entries, storage: &Value) {
    for (kind, nodes) in storage.as_object().into_iter().flatten() {
        let end = match kind.as_str() {
            "files" => "",
            "directories" => "/",
            _ => {
                let entry = all.entry(format!("storage.{kind}")).or_default();
                entry.hidden.push((kind.clone(), nodes.clone()));
                continue;
            }
        };
        for node in list_items(nodes) {
            all.entry(format!("{}{end}", text_of(&node["path"]))).or_default().add(node);
        }
    }
}

fn add_unit(all: &mut Entries, unit: &Value) {
    let name = text_of(&unit["name"]);
    if unit.as_object().is_some_and(|keys| keys.keys().any(|key| key != "name" && key != "dropins")) {
        all.entry(name.clone()).or_default().add(unit);
    }
    for drop_in in list_items(&unit["dropins"]) {
        all.entry(format!("{name}.d/{}", text_of(&drop_in["name"]))).or_default().add(drop_in);
    }
}

impl Entry {
    /// Takes over what a later config says.
    fn add(&mut self, node: &Value) {
        for (key, value) in node.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("path" | "name" | "dropins", _) | (_, Value::Null) => {}
                ("mode", Value::Number(mode)) => {
                    let mode = format!("{:04o}", mode.as_u64().unwrap_or_default());
                    self.attributes.insert(key.clone(), mode);
                }
                ("user" | "group", owner) => {
                    let name = if owner["id"].is_null() { &owner["name"] } else { &owner["id"] };
                    self.attributes.insert(key.clone(), text_of(name));
                }
                ("enabled" | "mask" | "overwrite" | "version", value) => {
                    self.attributes.insert(key.clone(), text_of(value));
                }
                ("contents", Value::String(text)) => {
                    self.content = Some(Zeroizing::new(text.clone().into_bytes()));
                }
                ("contents", resource) => self.add_resource(resource),
                (_, value) => self.hidden.push((key.clone(), value.clone())),
            }
        }
    }

    fn add_resource(&mut self, resource: &Value) {
        let others = resource.as_object().into_iter().flatten();
        let others = others
            .filter(|(key, value)| !matches!(key.as_str(), "source" | "verification") && !value.is_null());
        self.hidden.extend(others.map(|(key, value)| (key.clone(), value.clone())));
        let Some(source) = resource["source"].as_str() else { return };
        let content = match source.strip_prefix("data:") {
            Some(data) => decode_contents(data),
            // It may be a signature or a password.
            None if source.contains(['?', '@']) => None,
            None => {
                let hash = resource["verification"]["hash"].as_str().unwrap_or("none");
                Some(Zeroizing::new(format!("source {source}\nhash {hash}\n").into_bytes()))
            }
        };
        if content.is_none() {
            self.hidden.push(("source".to_owned(), resource["source"].clone()));
        }
        self.content = content;
    }

    fn is_secret(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let text = Zeroizing::new(String::from_utf8_lossy(self.bytes()).into_owned());
        // The last two digits are the permissions of the group and of all others.
        self.attributes.get("mode").is_some_and(|mode| mode.ends_with("00"))
            || name.ends_with("-key.pem")
            || std::path::Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("key"))
            || name.contains("encryption")
            || text.contains("PRIVATE KEY")
            || text.contains("client-key-data")
    }

    fn bytes(&self) -> &[u8] {
        self.content.as_ref().map_or(&[][..], |content| content.as_slice())
    }

    /// The content, if a terminal can show it.
    fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(self.bytes()).ok()?;
        (!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t')).then_some(text)
    }
}

fn compare_entries(path: &str, old: &Entry, new: &Entry) -> Option<TextChange> {
    let same_content = old.bytes() == new.bytes();
    if old.hidden != new.hidden || !same_content && (old.is_secret(path) || new.is_secret(path)) {
        return Some(TextChange::Masked);
    }
    let mut lines = compare_attributes(&old.attributes, &new.attributes);
    if !same_content {
        let (Some(old), Some(new)) = (old.text(), new.text()) else { return Some(TextChange::Binary) };
        lines.extend(diff_lines(old, new));
    }
    (!lines.is_empty()).then_some(TextChange::Lines(lines))
}

fn compare_attributes(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    let value = |side: &BTreeMap<String, String>, name| {
        side.get(name).map_or_else(|| "default".to_owned(), Clone::clone)
    };
    changed.map(|name| format!("{name} {} -> {}", value(old, name), value(new, name))).collect()
}

fn diff_lines(old: &str, new: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(2) {
        if !lines.is_empty() {
            lines.push(" …".to_owned());
        }
        let changes = group.iter().flat_map(|operation| diff.iter_changes(operation));
        lines.extend(
            changes.map(|change| format!("{}{}", change.tag(), change.value().trim_end_matches('\n'))),
        );
    }
    lines
}

/// The content of a data URL after its scheme.
fn decode_contents(data: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (kind, payload) = data.split_once(',')?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(payload.len()));
    let mut rest = payload.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    if kind.ends_with(";base64") { STANDARD.decode(&*bytes).ok().map(Zeroizing::new) } else { Some(bytes) }
}

fn list_items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::super::file_change::{FileChange, TextChange};
    use super::compare_configs;

    const SECRET: &str = "c2VjcmV0";

    fn file(path: &str, mode: u32, text: &str) -> Value {
        let source = format!("data:;base64,{}", STANDARD.encode(text));
        json!({"path": path, "mode": mode, "overwrite": true, "contents": {"source": source}})
    }

    fn files(list: &[Value]) -> Value {
        json!({"ignition": {"version": "3.3.0"}, "storage": {"files": list}})
    }

    fn compare(old: Value, new: Value) -> Vec<FileChange> {
        compare_configs(&[old], &[new])
    }

    fn lines(path: &str, lines: &[&str]) -> FileChange {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        FileChange { path: path.to_owned(), change: TextChange::Lines(lines) }
    }

    #[test]
    fn files_are_compared_line_by_line_and_named_in_order() {
        let old = files(&[
            file("/z", 0o644, "1\n2\n3\n4\n5\n"),
            file("/gone", 0o644, "x"),
            file("/same", 0o600, "x"),
        ]);
        let new = files(&[
            file("/same", 0o600, "x"),
            file("/z", 0o644, "1\n2\n3\nfour\n5\n"),
            file("/new", 0o600, "x"),
        ]);
        let expected = [
            FileChange { path: "/gone".to_owned(), change: TextChange::Removed },
            FileChange { path: "/new".to_owned(), change: TextChange::Added },
            lines("/z", &[" 2", " 3", "-4", "+four", " 5"]),
        ];
        assert_eq!(compare(old, new), expected);
    }

    #[test]
    fn percent_signs_downloads_and_bytes_are_understood() {
        let at = |path: &str, source: &str| json!({"path": path, "contents": {"source": source}});
        let old = files(&[
            at("/a", "data:,A=1%0AB=%25%0A"),
            at("/b", "https://x/1"),
            at("/c", "data:,%00"),
            at("/d", "https://x?s=1"),
        ]);
        let new = files(&[
            at("/a", "data:,A=2%0AB=%25%0A"),
            at("/b", "https://x/2"),
            at("/c", "data:,%01"),
            at("/d", "https://x?s=2"),
        ]);
        let expected = [
            lines("/a", &["-A=1", "+A=2", " B=%"]),
            lines("/b", &["-source https://x/1", "+source https://x/2", " hash none"]),
            FileChange { path: "/c".to_owned(), change: TextChange::Binary },
            FileChange { path: "/d".to_owned(), change: TextChange::Masked },
        ];
        assert_eq!(compare(old, new), expected);
    }

    #[test]
    fn the_content_of_files_with_keys_is_never_shown() -> Result<(), serde_json::Error> {
        let with = |end: &str| {
            let text = format!("first\n{SECRET}{end}\n");
            let mut config = files(&[
                file("/etc/private", 0o600, &text),
                file("/etc/script", 0o700, &text),
                file("/etc/a-key.pem", 0o644, &text),
                file("/etc/a.key", 0o644, &text),
                file("/etc/secrets-encryption.yaml", 0o644, &text),
                file("/etc/pem", 0o644, &format!("-----BEGIN EC PRIVATE KEY-----\n{text}")),
                file("/etc/kubeconfig", 0o644, &format!("client-key-data: {text}")),
                json!({"path": "/etc/broken", "contents": {"source": format!("data:;base64,{SECRET}!{end}")}}),
            ]);
            config["passwd"] = json!({"users": [{"name": "core", "passwordHash": format!("{SECRET}{end}")}]});
            config
        };
        let changes = compare(with("1"), with("2"));
        assert_eq!(changes.len(), 9);
        assert!(changes.iter().all(|change| change.change == TextChange::Masked), "{changes:?}");
        let written = serde_json::to_string(&changes)?;
        assert!(!written.contains(SECRET), "{written}");
        // One side that holds keys is enough.
        let opened = compare(files(&[file("/k", 0o600, SECRET)]), files(&[file("/k", 0o644, "nothing")]));
        assert_eq!(opened[0].change, TextChange::Masked);
        Ok(())
    }

    #[test]
    fn another_mode_or_owner_is_shown_without_the_content() {
        let mut new = file("/a", 0o600, SECRET);
        new["user"] = json!({"id": 232});
        let found = compare(files(&[file("/a", 0o644, SECRET)]), files(&[new]));
        assert_eq!(found, [lines("/a", &["mode 0644 -> 0600", "user default -> 232"])]);
    }

    #[test]
    fn units_and_their_drop_ins_are_compared() {
        let units = |enabled: bool, text: &str| {
            json!({"systemd": {"units": [
                {"name": "a.service", "enabled": enabled, "contents": format!("[Unit]\n{text}\n")},
                {"name": "b.service", "dropins": [{"name": "10-infra.conf", "contents": text}]},
            ]}})
        };
        let expected = [
            lines("a.service", &["enabled true -> false", " [Unit]", "-A=1", "+A=2"]),
            lines("b.service.d/10-infra.conf", &["-A=1", "+A=2"]),
        ];
        assert_eq!(compare(units(true, "A=1"), units(false, "A=2")), expected);
    }

    #[test]
    fn a_later_config_overrides_an_earlier_one() {
        let base = files(&[file("/a", 0o644, "base\n")]);
        let snippet = files(&[file("/a", 0o644, "ours\n")]);
        let found = compare_configs(std::slice::from_ref(&base), &[base.clone(), snippet]);
        assert_eq!(found, [lines("/a", &["-base", "+ours"])]);
    }
}
