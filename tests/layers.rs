//! Who may import whom, which file alone names which library, and how long a file may be.
//!
//! Four rules about imports, all of them about shipped code (what is built for tests only may import what it likes):
//! - A layer (an entry of src/) imports only the layers that `LAYERS` gives it.
//! - Inside deploy/ nothing imports a folder to its right in `DEPLOY_ORDER`.
//! - No file is part of a circle of files that import one another. What a `mod.rs` re-exports is the business of the file that defines
//!   it, so a `mod.rs` that only declares and re-exports is in no circle.
//! - No folder or file is part of a circle with its siblings, so that every folder can be read from one end to the other.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says so"
)]

#[path = "layers/circles.rs"]
mod circles;
#[path = "layers/imports.rs"]
mod imports;
#[path = "layers/planted.rs"]
mod planted;
#[path = "layers/source.rs"]
mod source;
#[path = "layers/tables.rs"]
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use circles::circles;
use imports::{Import, imports};
use source::{Source, is_of_tests, sources, templates};
use tables::{DEPLOY_ORDER, LAYERS, LONGEST_FILE, SPELLED_ONCE, STATUS_FILE, WORDS};

fn layer_of(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// Imports of a layer that the importing layer may not use.
fn upward_imports(sources: &BTreeMap<String, Source>) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in sources.keys() {
        let layer = layer_of(file);
        if layer != "main" && LAYERS.iter().all(|(name, _)| *name != layer) {
            wrong.push(format!("{file}: no layer is called '{layer}'"));
        }
    }
    for Import { from, to } in imports(sources) {
        let (layer, used) = (layer_of(&from), layer_of(&to));
        let allowed = LAYERS.iter().find(|(name, _)| *name == layer).map_or(&[][..], |(_, allowed)| allowed);
        // Every layer may spell labels, tags and domains.
        let is_allowed = allowed
            .iter()
            .any(|entry| *entry == used || to.strip_prefix(entry).is_some_and(|rest| rest.starts_with('/')));
        if used != layer && used != "well_known" && !is_allowed {
            wrong.push(format!("{from}: {layer} may not use {used} ({to})"));
        }
    }
    wrong
}

/// Imports inside deploy/ of a folder to the right, and entries that have no place in the order.
fn backward_imports_in_deploy(sources: &BTreeMap<String, Source>) -> Vec<String> {
    let entry_of = |file: &str| {
        let entry = file.strip_prefix("deploy/")?.split('/').next()?.trim_end_matches(".rs").to_owned();
        (entry != "mod").then_some(entry)
    };
    let place_of = |entry: &str| DEPLOY_ORDER.iter().position(|row| row.contains(&entry));
    let mut wrong: Vec<String> = sources
        .keys()
        .filter(|file| !is_of_tests(file))
        .filter(|file| entry_of(file).is_some_and(|entry| place_of(&entry).is_none()))
        .map(|file| format!("{file} has no place in the order of deploy/"))
        .collect();
    for Import { from, to } in imports(sources).into_iter().filter(|import| !is_of_tests(&import.from)) {
        let Some((entry, used)) = entry_of(&from).zip(entry_of(&to)) else { continue };
        if place_of(&used) > place_of(&entry) {
            wrong.push(format!("{from} imports {to}, which is to its right"));
        }
    }
    wrong
}

/// Circles between files, and between the entries of every folder.
fn import_circles(sources: &BTreeMap<String, Source>) -> Vec<String> {
    let imports: Vec<Import> =
        imports(sources).into_iter().filter(|import| !is_of_tests(&import.from)).collect();
    let mut found: BTreeSet<String> = BTreeSet::new();
    let files = imports.iter().map(|import| (import.from.as_str(), import.to.as_str()));
    found.extend(circles(files).iter().map(|circle| circle.join(" ↔ ")));
    let folders: BTreeSet<&str> =
        sources.keys().filter_map(|file| file.rsplit_once('/').map(|(folder, _)| folder)).collect();
    for folder in folders {
        let entry_of = |file: &'_ str| -> Option<String> {
            let rest = file.strip_prefix(folder)?.strip_prefix('/')?;
            let entry = rest.split('/').next()?;
            // The parent's own file composes its children.
            (entry != "mod.rs").then(|| format!("{folder}/{entry}"))
        };
        let edges: Vec<(String, String)> = imports
            .iter()
            .filter_map(|import| entry_of(&import.from).zip(entry_of(&import.to)))
            .filter(|(from, to)| from != to)
            .collect();
        let edges = edges.iter().map(|(from, to)| (from.as_str(), to.as_str()));
        found.extend(circles(edges).iter().map(|circle| circle.join(" ↔ ")));
    }
    found.into_iter().collect()
}

/// Where the status of a stack or of a resource is spelled.
fn status_literals(sources: &BTreeMap<String, Source>) -> Vec<String> {
    let is_status = |word: &str| {
        let begins = ["CREATE_", "UPDATE_", "DELETE_", "ROLLBACK_", "REVIEW_", "IMPORT_"];
        let ends = ["_IN_PROGRESS", "_COMPLETE", "_FAILED"];
        begins.iter().any(|begin| word.starts_with(begin)) && ends.iter().any(|end| word.ends_with(end))
    };
    let mut found = Vec::new();
    for (file, source) in sources.iter().filter(|(file, _)| *file != STATUS_FILE && !is_of_tests(file)) {
        for (number, line) in source.code.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            if let Some(word) = words.find(|word| is_status(word)) {
                found.push(format!("{file}:{} says {word}", number + 1));
            }
        }
    }
    found
}

#[test]
fn every_file_belongs_to_a_layer_and_imports_only_what_that_may() {
    let wrong = upward_imports(&sources());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn deploy_imports_to_the_left_only() {
    let wrong = backward_imports_in_deploy(&sources());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_modules_import_one_another_in_a_circle() {
    let wrong = import_circles(&sources());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn statuses_of_stacks_are_spelled_in_one_file() {
    let sources = sources();
    assert!(sources.contains_key(STATUS_FILE), "{STATUS_FILE} is gone");
    let wrong = status_literals(&sources);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_named_after_tests_are_built_for_tests_only() {
    let sources = sources();
    for file in sources.keys().filter(|file| is_of_tests(file)) {
        let (directory, name) = file.rsplit_once('/').unwrap();
        let module = format!("mod {};", name.trim_end_matches(".rs"));
        let parent = &sources[&format!("{directory}/mod.rs")].text;
        let before =
            parent.split(&module).next().unwrap().trim_end().trim_end_matches("pub(crate)").trim_end();
        assert!(before.ends_with("#[cfg(test)]"), "{file} is shipped");
    }
}

#[test]
fn libraries_clock_and_environment_stay_in_their_places() {
    let mut wrong = Vec::new();
    for (file, source) in sources().into_iter().filter(|(file, _)| !is_of_tests(file)) {
        for (word, places, reason) in WORDS {
            let at_home = places.iter().any(|place| file == *place || layer_of(&file) == *place);
            if source.code.contains(word) && !at_home {
                wrong.push(format!("{file} says {word}: {reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The well-known names that a text spells, with the numbers of the lines; comments of YAML and shell may say them.
fn well_known_names(file: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    let named = lines.flat_map(|(number, line)| {
        // `infra:cluster-autoscaler` is the name of something else.
        let is_spelled = move |name: &&str| {
            line.match_indices(*name).any(|(at, _)| !line[at + name.len()..].starts_with('-'))
        };
        let spelled = SPELLED_ONCE.into_iter().filter(is_spelled);
        spelled.map(move |name| format!("{file}:{} spells {name}: use well_known.rs", number + 1))
    });
    named.collect()
}

#[test]
fn well_known_names_are_spelled_once() {
    let mut wrong = Vec::new();
    for (file, source) in sources() {
        if file != "well_known.rs" && !is_of_tests(&file) {
            wrong.extend(well_known_names(&file, &source.code));
        }
    }
    let templates = templates();
    assert!(templates.contains_key("stacks/pool.yaml.tera"), "the templates were not found");
    wrong.extend(templates.iter().flat_map(|(file, text)| well_known_names(file, text)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short_and_begin_with_what_they_are_for() {
    for (file, Source { text, .. }) in sources() {
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
