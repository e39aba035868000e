//! Who may import whom, which file alone names which library, and how long a file may be.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says so"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each layer and the layers it may use; the order is that of the data.
const LAYERS: [(&str, &[&str]); 20] = [
    ("outcome", &[]),
    ("document", &["outcome"]),
    ("durable_file", &[]),
    ("hexadecimal", &[]),
    ("plural", &[]),
    ("waiting", &[]),
    ("well_known", &[]),
    ("config", &["document"]),
    ("blueprint", &["config", "document"]),
    ("credentials", &["blueprint", "config", "durable_file", "outcome"]),
    ("render", &["blueprint", "config", "credentials", "document", "durable_file", "hexadecimal", "outcome"]),
    ("check", &["blueprint", "document", "outcome", "render"]),
    (
        "project",
        &[
            "blueprint",
            "check",
            "config",
            "credentials",
            "document",
            "durable_file",
            "hexadecimal",
            "outcome",
            "render",
        ],
    ),
    ("aws", &["outcome", "waiting"]),
    ("kube", &["credentials", "outcome"]),
    (
        "deploy",
        &[
            "aws",
            "blueprint",
            "check",
            "config",
            "credentials",
            "document",
            "hexadecimal",
            "kube",
            "outcome",
            "plural",
            "render",
            "waiting",
        ],
    ),
    ("operator", &["aws", "blueprint", "check", "config", "deploy", "document"]),
    ("job", &["blueprint", "config", "document", "hexadecimal", "kube", "outcome", "plural", "waiting"]),
    ("cli", &ALL),
    ("lib", &ALL),
];

const ALL: [&str; 19] = [
    "aws",
    "blueprint",
    "check",
    "cli",
    "config",
    "credentials",
    "deploy",
    "document",
    "durable_file",
    "hexadecimal",
    "job",
    "kube",
    "operator",
    "outcome",
    "plural",
    "project",
    "render",
    "waiting",
];

/// What only the named places may say, and why.
const WORDS: [(&str, &[&str], &str); 24] = [
    ("aws_sdk_", &["aws"], "the SDK stays behind aws/"),
    (
        "aws_config",
        &["aws", "cli/mod.rs"],
        "the SDK is configured in one place, and its log is quieted in another",
    ),
    ("serde_saphyr", &["document/yaml.rs"], "the YAML library can be exchanged in one file"),
    ("tera::", &["render/engine.rs"], "the template engine can be exchanged in one file"),
    ("rcgen", &["credentials"], "keys and certificates are made in one layer"),
    ("x509_parser", &["credentials"], "certificates are read in one layer"),
    ("now_utc", &["cli"], "the time comes in as an argument"),
    (
        "SystemTime",
        &["cli", "aws/clock.rs"],
        "the time comes in as an argument, and is compared with AWS's in one file",
    ),
    ("Instant::", &["cli", "waiting.rs"], "the time comes in as an argument"),
    (
        "tokio::time",
        &["cli", "waiting.rs", "kube/connection.rs", "kube/api_server.rs"],
        "all waiting goes through one clock",
    ),
    ("hyper", &["kube"], "one layer speaks HTTP to the cluster"),
    ("rustls", &["kube"], "one layer speaks TLS to the cluster"),
    ("std::env::", &["cli"], "the environment is looked at where the user is"),
    ("std::process", &["cli", "main.rs"], "only the command line ends the process"),
    ("anyhow", &["cli"], "layers have errors with fields"),
    ("infra.internal", &["well_known.rs"], SPELLED_ONCE),
    ("infra:cluster", &["well_known.rs"], SPELLED_ONCE),
    ("infra:role", &["well_known.rs"], SPELLED_ONCE),
    ("infra:count", &["well_known.rs"], SPELLED_ONCE),
    ("infra:s3-uri", &["well_known.rs"], SPELLED_ONCE),
    ("infra:credentials", &["well_known.rs"], SPELLED_ONCE),
    ("kubernetes.io/cluster/", &["well_known.rs"], SPELLED_ONCE),
    ("k8s.io/cluster-autoscaler", &["well_known.rs"], SPELLED_ONCE),
    ("\"pool-", &["well_known.rs"], SPELLED_ONCE),
];

const SPELLED_ONCE: &str = "labels, tags and domains are spelled in well_known.rs, which every layer may use";

const LONGEST_FILE: usize = 400;

fn sources() -> BTreeMap<String, String> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    let name = |path: &Path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The code of a file: without comments and without its unit tests, which may look wherever they like.
fn code(text: &str) -> String {
    let shipped = text.split("#[cfg(test)]").next().unwrap();
    shipped.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn layer_of(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The layers that a file names, as `crate::layer` or in `crate::{…}`.
fn imports(code: &str) -> Vec<String> {
    let mut layers = Vec::new();
    for (place, _) in code.match_indices("crate::") {
        let rest = &code[place + "crate::".len()..];
        let word = |text: &str| {
            text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        };
        match rest.strip_prefix('{') {
            Some(list) => layers.extend(list.split('}').next().unwrap().split(',').map(word)),
            None => layers.push(word(rest)),
        }
    }
    layers
}

#[test]
fn every_file_belongs_to_a_layer_and_imports_only_what_that_may() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let layer = layer_of(&file);
        if layer == "main" {
            continue;
        }
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            wrong.push(format!("{file}: no layer is called '{layer}'"));
            continue;
        };
        for import in imports(&code(&text)) {
            if import != layer && import != "well_known" && !allowed.contains(&import.as_str()) {
                wrong.push(format!("{file}: {layer} may not use {import}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files that only unit tests are built with, by their names.
fn is_of_tests(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap();
    name.starts_with("test_") || name.ends_with("_tests.rs") || name == "tests.rs"
}

#[test]
fn files_named_after_tests_are_built_for_tests_only() {
    let sources = sources();
    for file in sources.keys().filter(|file| is_of_tests(file)) {
        let (directory, name) = file.rsplit_once('/').unwrap();
        let module = format!("mod {};", name.trim_end_matches(".rs"));
        let parent = &sources[&format!("{directory}/mod.rs")];
        let before =
            parent.split(&module).next().unwrap().trim_end().trim_end_matches("pub(crate)").trim_end();
        assert!(before.ends_with("#[cfg(test)]"), "{file} is shipped");
    }
}

#[test]
fn libraries_clock_and_environment_stay_in_their_places() {
    let mut wrong = Vec::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| !is_of_tests(file)) {
        let code = code(&text);
        for (word, places, reason) in WORDS {
            let at_home = places.iter().any(|place| file == *place || layer_of(&file) == *place);
            if code.contains(word) && !at_home {
                wrong.push(format!("{file} says {word}: {reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short_and_begin_with_what_they_are_for() {
    for (file, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{file} has {lines} lines: what two things live there?");
        assert!(text.starts_with("//! "), "{file} does not say what it is for");
    }
}

#[test]
fn there_is_one_tls_stack_and_no_abandoned_yaml() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let mut packages: Vec<(&str, &str)> = tree.lines().filter_map(|line| line.split_once(' ')).collect();
    packages.iter_mut().for_each(|(_, version)| *version = version.split(' ').next().unwrap());
    packages.sort_unstable();
    packages.dedup();
    assert!(packages.len() > 100, "the tree was not understood: {tree}");
    for banned in
        ["ring", "openssl", "openssl-sys", "native-tls", "serde_yaml", "serde_yml", "yaml-rust", "chrono"]
    {
        assert!(packages.iter().all(|(name, _)| *name != banned), "{banned} is in the tree");
    }
    for single in ["rustls", "hyper", "aws-lc-rs", "tokio-rustls"] {
        let versions: Vec<_> = packages.iter().filter(|(name, _)| *name == single).collect();
        assert_eq!(versions.len(), 1, "{versions:?}");
    }
}

/// The guard itself must be able to fail.
#[test]
fn the_scan_sees_what_it_looks_for() {
    assert_eq!(imports("use crate::{aws, render::engine};\ncrate::cli::run()"), ["aws", "render", "cli"]);
    assert_eq!(
        code("//! crate::aws\nuse x; // y\n#[cfg(test)]\nmod tests { use crate::cli; }"),
        "use x; // y"
    );
    assert_eq!(layer_of("durable_file.rs"), "durable_file");
}
