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
#[path = "layers/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use circles::circles;
use imports::{Import, imports};
use source::{Source, is_of_tests, sources, templates};

/// Each layer and the layers, or the folders of a layer, that it may use; the order is that of the data.
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
    ("operator", &["aws", "blueprint", "check", "config", "deploy/inputs", "deploy/state", "document"]),
    ("job", &["blueprint", "config", "document", "hexadecimal", "kube", "outcome", "plural", "waiting"]),
    ("cli", &ALL),
    ("lib", &ALL),
];

const ALL: [&str; 18] = [
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
const WORDS: [(&str, &[&str], &str); 15] = [
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
];

/// Labels, tags, domains and resources that well_known.rs alone spells. Every layer may use that file; templates get its constants as values.
const SPELLED_ONCE: [&str; 10] = [
    "infra.internal",
    "infra:cluster",
    "infra:role",
    "infra:count",
    "infra:s3-uri",
    "infra:credentials",
    "kubernetes.io/cluster/",
    "k8s.io/cluster-autoscaler",
    "nvidia.com/gpu",
    "\"pool-",
];

/// The folders and files of deploy/ in the order of the data. Those of one row may import one another, but not in a circle.
const DEPLOY_ORDER: [&[&str]; 8] = [
    &["error", "event", "run"],
    &["inputs"],
    &["state"],
    &["plan"],
    &["preflight"],
    &["explain", "machines"],
    &["stack"],
    &["destroy", "status", "up"],
];

/// The one file that spells the statuses of stacks.
const STATUS_FILE: &str = "aws/stack_status.rs";

const LONGEST_FILE: usize = 400;

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
fn a_planted_well_known_name_is_refused() {
    let template = "# infra:cluster\nTags:\n- {Key: \"infra:cluster\", Value: {{ cluster_name }}}\n\
                    - {Key: {{ role_tag }}}\nname: infra:cluster-autoscaler\n";
    assert_eq!(
        well_known_names("stacks/pool.yaml.tera", template),
        ["stacks/pool.yaml.tera:3 spells infra:cluster: use well_known.rs"]
    );
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

/// Files as they might be written, for the rules to judge.
fn planted(files: &[(&str, &str)]) -> BTreeMap<String, Source> {
    files.iter().map(|(file, text)| ((*file).to_owned(), Source::new(text))).collect()
}

/// The imports of planted files, as `from → to`.
fn planted_imports(files: &[(&str, &str)]) -> Vec<String> {
    imports(&planted(files)).iter().map(|import| format!("{} → {}", import.from, import.to)).collect()
}

#[test]
fn a_planted_upward_import_is_refused() {
    for import in ["use crate::cli::run;", "use super::cli::run;", "use super::{config, cli::run};"] {
        let files = planted(&[("render.rs", import), ("config.rs", ""), ("cli/mod.rs", "pub fn run() {}")]);
        assert_eq!(upward_imports(&files), ["render.rs: render may not use cli (cli/mod.rs)"], "{import}");
    }
    let call = planted(&[("render.rs", "fn f() { crate::cli::run() }"), ("cli/mod.rs", "pub fn run() {}")]);
    assert_eq!(upward_imports(&call), ["render.rs: render may not use cli (cli/mod.rs)"]);
    let folders = planted(&[
        ("operator/policy.rs", "use crate::deploy::state::live::LiveCluster; use crate::deploy::up::Up;"),
        ("deploy/mod.rs", ""),
        ("deploy/state/live.rs", "pub struct LiveCluster;"),
        ("deploy/up/mod.rs", "pub struct Up;"),
    ]);
    assert_eq!(
        upward_imports(&folders),
        ["operator/policy.rs: operator may not use deploy (deploy/up/mod.rs)"],
        "only the folders that it needs"
    );
    assert_eq!(upward_imports(&planted(&[("helpers.rs", "")])), ["helpers.rs: no layer is called 'helpers'"]);
}

#[test]
fn a_planted_import_to_the_right_is_refused_in_deploy() {
    for import in
        ["use crate::deploy::up::apply;", "use super::super::up::apply;", "use crate::deploy::apply;"]
    {
        let files = planted(&[
            ("deploy/mod.rs", "pub use up::apply;"),
            ("deploy/state/live.rs", import),
            ("deploy/up/mod.rs", "pub fn apply() {}"),
        ]);
        let refused = ["deploy/state/live.rs imports deploy/up/mod.rs, which is to its right"];
        assert_eq!(backward_imports_in_deploy(&files), refused, "{import}");
    }
    let files = planted(&[
        ("deploy/state/mod.rs", "pub fn read() {}"),
        ("deploy/up/mod.rs", "use super::state; fn f() { state::read() }"),
        ("deploy/helpers.rs", ""),
    ]);
    assert_eq!(
        backward_imports_in_deploy(&files),
        ["deploy/helpers.rs has no place in the order of deploy/"]
    );
}

#[test]
fn a_planted_circle_is_refused() {
    let two = [("kube/a.rs", "use super::b::B;"), ("kube/b.rs", "use crate::kube::a::A;")];
    assert_eq!(import_circles(&planted(&two)), ["kube/a.rs ↔ kube/b.rs"]);
    let three = [
        ("kube/a.rs", "use super::b; fn f() { b::g() }"),
        ("kube/b.rs", "pub fn g() { super::c::h() }"),
        ("kube/c.rs", "use super::A; pub fn h() {}"),
        ("kube/mod.rs", "pub use a::A;"),
    ];
    assert_eq!(import_circles(&planted(&three)), ["kube/a.rs ↔ kube/b.rs ↔ kube/c.rs"]);
    let parent = [("kube/a.rs", "use super::Session;"), ("kube/mod.rs", "use a::A; struct Session;")];
    assert_eq!(import_circles(&planted(&parent)), ["kube/a.rs ↔ kube/mod.rs"]);
    let used_and_handed_on =
        [("kube/a.rs", "use super::Session;"), ("kube/mod.rs", "pub use a::A; struct Session(A);")];
    assert_eq!(import_circles(&planted(&used_and_handed_on)), ["kube/a.rs ↔ kube/mod.rs"]);
    let folders = [
        ("kube/x/a.rs", "use crate::kube::y::b::B;"),
        ("kube/y/b.rs", ""),
        ("kube/y/c.rs", "use crate::kube::x::d::D;"),
        ("kube/x/d.rs", ""),
        ("kube/mod.rs", ""),
    ];
    assert_eq!(import_circles(&planted(&folders)), ["kube/x ↔ kube/y"]);
}

#[test]
fn a_parent_that_only_hands_on_and_tests_are_in_no_circle() {
    let files = [
        ("kube/a.rs", "use super::B; #[cfg(test)] mod tests { use crate::kube::c::C; }"),
        ("kube/b.rs", ""),
        ("kube/c.rs", "use super::a::A;"),
        ("kube/mod.rs", "mod a; mod b; pub use a::A; pub(crate) use b::B;"),
    ];
    assert_eq!(import_circles(&planted(&files)), [""; 0]);
    assert_eq!(planted_imports(&files), ["kube/a.rs → kube/b.rs", "kube/c.rs → kube/a.rs"]);
}

#[test]
fn a_planted_status_is_refused() {
    let files = planted(&[
        ("deploy/stack/watch.rs", "//! CREATE_COMPLETE\nfn f() -> bool { status == \"ROLLBACK_COMPLETE\" }"),
        (STATUS_FILE, "const A: &str = \"CREATE_COMPLETE\";"),
        ("deploy/stack/graph.rs", "#[cfg(test)]\nmod tests { const A: &str = \"CREATE_FAILED\"; }\n"),
    ]);
    assert_eq!(status_literals(&files), ["deploy/stack/watch.rs:2 says ROLLBACK_COMPLETE"]);
}

/// The guards read code as the compiler does, as far as they need to.
#[test]
fn comments_strings_and_tests_are_told_from_code() {
    let source = Source::new(
        "//! crate::aws\nuse x; // y\nconst A: &str = \"// \\\" {\"; /* z */ const B: char = '\"';\n\
         #[cfg(test)]\nmod tests { const C: &str = r#\"}\"#; }\nfn after<'a>() {}",
    );
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        words(&source.code),
        "use x; const A: &str = \"// \\\" {\"; const B: char = '\"'; fn after<'a>() {}"
    );
    assert_eq!(words(&source.bare), "use x; const A: &str = ; const B: char = ; fn after<'a>() {}");
    assert_eq!(layer_of("durable_file.rs"), "durable_file");
}
