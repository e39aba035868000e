//! Mistakes in an Ignition config that validators accept and that stop a boot: Ignition's own checks end at the syntax.

use std::collections::BTreeMap;

use ignition_config::Config;
use serde_json::Value;

use super::finding::{AssetCheck, Finding};
use crate::render::{SecretConfig, SecretDocument};

/// Where Ignition may not write, or where Flatcar has nothing writable.
const CLOSED: [&str; 6] = ["/dev", "/proc", "/run", "/sys", "/tmp", "/usr"];

/// Files that machines get from elsewhere: CloudFormation's values, and what units create at boot.
const FILES_FROM_ELSEWHERE: [&str; 2] = ["/etc/infra/stack.env", "/run/"];

/// The newest version that every live channel of Flatcar reads.
const VERSIONS: [&str; 4] = ["3.0.0", "3.1.0", "3.2.0", "3.3.0"];

/// Checks one Ignition config.
#[must_use]
pub fn check_ignition(asset: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut check = AssetCheck::new(asset);
    let document = match serde_json::from_slice(bytes) {
        Ok(document) => SecretDocument(document),
        Err(error) => {
            check.note("the document", format!("it is not JSON: {error}"));
            return check.findings;
        }
    };
    let document = &document.0;
    let version = document["ignition"]["version"].as_str().unwrap_or_default();
    if !VERSIONS.contains(&version) {
        check.note("ignition.version", format!("'{version}' is not one of {}", VERSIONS.join(", ")));
        return check.findings;
    }
    match Config::parse_slice(bytes) {
        Ok((parsed, warnings)) => {
            if let Config::V3_3(config) = parsed {
                drop(SecretConfig(config));
            }
            for warning in warnings {
                check.note("the document", format!("{warning}"));
            }
        }
        Err(error) => check.note("the document", format!("Ignition cannot read it: {error}")),
    }
    check.paths(document);
    check.units(document);
    for resource in ["merge", "replace"] {
        for (index, source) in list_items(&document["ignition"]["config"][resource]).into_iter().enumerate() {
            check.source(&format!("ignition.config.{resource}[{index}]"), source);
        }
    }
    check.findings
}

impl AssetCheck<'_> {
    /// Every path once, absolute and where Ignition can write; every remote file with its hash.
    fn paths(&mut self, document: &Value) {
        let storage = &document["storage"];
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for unit in list_items(&document["systemd"]["units"]) {
            let name = text_of(&unit["name"]);
            if unit["contents"].is_string() {
                seen.insert(format!("/etc/systemd/system/{name}"), "a unit");
            }
            for drop_in in list_items(&unit["dropins"]) {
                seen.insert(
                    format!("/etc/systemd/system/{name}.d/{}", text_of(&drop_in["name"])),
                    "a drop-in",
                );
            }
        }
        for kind in ["directories", "files", "links"] {
            for entry in list_items(&storage[kind]) {
                let path = text_of(&entry["path"]);
                if !path.starts_with('/') {
                    self.note(path, "the path is not absolute".to_owned());
                }
                if let Some(closed) =
                    CLOSED.iter().find(|closed| path == **closed || path.starts_with(&format!("{closed}/")))
                {
                    self.note(path, format!("nothing can be written below {closed}"));
                }
                if let Some(other) = seen.insert(path.to_owned(), kind) {
                    self.note(path, format!("it is written twice: {other} has the same path"));
                }
                for contents in list_items(&entry["contents"]).into_iter().chain(list_items(&entry["append"]))
                {
                    self.source(path, contents);
                }
            }
        }
    }

    fn source(&mut self, position: &str, resource: &Value) {
        let source = text_of(&resource["source"]);
        let hash = text_of(&resource["verification"]["hash"]);
        if source.starts_with("s3://") && !text_of(&resource["compression"]).is_empty() {
            self.note(
                position,
                "Ignition cannot decompress what it downloads from S3: remove compression".to_owned(),
            );
        }
        if source.is_empty() || source.starts_with("data:") {
            return;
        }
        let digits = match hash.split_once('-') {
            Some(("sha256", digits)) if digits.len() == 64 => digits,
            Some(("sha512", digits)) if digits.len() == 128 => digits,
            _ => "",
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            self.note(position, format!("{source} is downloaded without a hash that verifies it"));
        }
    }

    /// Units may only start and read files that exist.
    fn units(&mut self, document: &Value) {
        let storage = &document["storage"];
        let there: Vec<&str> =
            list_items(&storage["files"]).into_iter().map(|file| text_of(&file["path"])).collect();
        for unit in list_items(&document["systemd"]["units"]) {
            let name = text_of(&unit["name"]);
            let texts = list_items(&unit["dropins"]).into_iter().map(|drop_in| text_of(&drop_in["contents"]));
            for contents in texts.chain([text_of(&unit["contents"])]) {
                for needed in needed_files(contents) {
                    let given = FILES_FROM_ELSEWHERE.iter().any(|given| needed.starts_with(given))
                        || needed.starts_with("/usr/");
                    if !given && !there.contains(&needed) {
                        self.note(name, format!("it needs {needed}, which nothing provides"));
                    }
                }
            }
        }
    }
}

/// The programs and environment files that a unit cannot do without.
fn needed_files(unit: &str) -> Vec<&str> {
    unit.lines()
        .filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            let starts = matches!(
                key,
                "ExecStart" | "ExecStartPre" | "ExecStartPost" | "ExecStop" | "EnvironmentFile"
            );
            let word =
                value.split_whitespace().next().unwrap_or_default().trim_start_matches(['@', '+', '!']);
            (starts && word.starts_with('/')).then_some(word)
        })
        .collect()
}

/// A list's items; a single value counts as a list of one.
fn list_items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Null => Vec::new(),
        other => vec![other],
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::check_ignition;

    /// The messages about a valid config with `more` added.
    fn messages(more: &Value) -> Vec<String> {
        let mut config = json!({"ignition": {"version": "3.3.0"}});
        if let (Some(config), Some(more)) = (config.as_object_mut(), more.as_object()) {
            config.extend(more.clone());
        }
        let findings = check_ignition("x.ign", config.to_string().as_bytes());
        findings.into_iter().map(|finding| format!("{}: {}", finding.position, finding.message)).collect()
    }

    #[test]
    fn a_good_config_has_no_findings() {
        let config = json!({
            "storage": {"files": [{"path": "/etc/a", "mode": 420, "contents": {"source": "data:,x"}}]},
            "systemd": {"units": [{"name": "a.service", "contents": "[Service]\nExecStart=/usr/bin/true\nEnvironmentFile=/etc/a\n"}]},
        });
        assert_eq!(messages(&config), Vec::<String>::new());
    }

    #[test]
    fn what_stops_a_boot_is_named() {
        let file = |path: &str, contents: Value| json!({"storage": {"files": [{"path": path, "contents": contents}]}});
        let hash = format!("sha512-{}", "a".repeat(128));
        let unit =
            |contents: &str| json!({"systemd": {"units": [{"name": "a.service", "contents": contents}]}});
        for (config, expected) in [
            (file("etc/a", json!({"source": "data:,x"})), "etc/a: the path is not absolute"),
            (
                file("/usr/bin/a", json!({"source": "data:,x"})),
                "/usr/bin/a: nothing can be written below /usr",
            ),
            (file("/run/a", json!({"source": "data:,x"})), "/run/a: nothing can be written below /run"),
            (
                file("/opt/a", json!({"source": "https://a/b"})),
                "/opt/a: https://a/b is downloaded without a hash that verifies it",
            ),
            (
                file(
                    "/opt/a",
                    json!({"source": "s3://a/b", "compression": "gzip", "verification": {"hash": hash}}),
                ),
                "/opt/a: Ignition cannot decompress what it downloads from S3: remove compression",
            ),
            (
                file("/opt/a", json!({"source": "https://a/b", "verification": {"hash": "sha256-abc"}})),
                "/opt/a: https://a/b is downloaded without a hash that verifies it",
            ),
            (
                unit("[Service]\nExecStart=/opt/bin/x\n"),
                "a.service: it needs /opt/bin/x, which nothing provides",
            ),
            (
                unit("[Service]\nEnvironmentFile=/etc/x\n"),
                "a.service: it needs /etc/x, which nothing provides",
            ),
            (json!({"bananas": 1}), "the document: "),
            (json!({"ignition": {"version": "3.4.0"}}), "ignition.version: '3.4.0' is not one of"),
        ] {
            let found = messages(&config);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn one_path_has_one_writer() {
        let twice = json!({"storage": {
            "files": [{"path": "/etc/a", "contents": {"source": "data:,x"}}],
            "links": [{"path": "/etc/a", "target": "/etc/b"}],
        }});
        assert_eq!(messages(&twice), ["/etc/a: it is written twice: files has the same path"]);
        let unit = json!({
            "storage": {"files": [{"path": "/etc/systemd/system/a.service", "contents": {"source": "data:,x"}}]},
            "systemd": {"units": [{"name": "a.service", "contents": "[Unit]\n"}]},
        });
        assert_eq!(
            messages(&unit),
            ["/etc/systemd/system/a.service: it is written twice: a unit has the same path"]
        );
    }
}
