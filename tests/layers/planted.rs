//! Planted violations: each rule refuses what it is for.

use std::collections::BTreeMap;

use crate::imports::imports;
use crate::source::Source;
use crate::tables::STATUS_FILE;
use crate::{
    backward_imports_in_deploy, import_circles, layer_of, status_literals, upward_imports, well_known_names,
};

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
        (
            "operator/policy.rs",
            "use crate::deploy::state::live::LiveCluster; use crate::deploy::inputs::Inputs;",
        ),
        ("deploy/mod.rs", ""),
        ("deploy/inputs/mod.rs", "pub struct Inputs;"),
        ("deploy/state/live.rs", "pub struct LiveCluster;"),
    ]);
    assert_eq!(
        upward_imports(&folders),
        ["operator/policy.rs: operator may not use deploy (deploy/inputs/mod.rs)"],
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

#[test]
fn a_planted_well_known_name_is_refused() {
    let template = "# infra:cluster\nTags:\n- {Key: \"infra:cluster\", Value: {{ cluster_name }}}\n\
                    - {Key: {{ role_tag }}}\nname: infra:cluster-autoscaler\n";
    assert_eq!(
        well_known_names("stacks/pool.yaml.tera", template),
        ["stacks/pool.yaml.tera:3 spells infra:cluster: use well_known.rs"]
    );
}
