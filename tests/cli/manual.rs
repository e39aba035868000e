//! Manual pages: one for every command, none that is named and missing, the exit codes, and groff's word on how they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::reference::commands_of;
use crate::support::{Outcome, Workspace, files_in};

/// Every page that `--write-to` writes, by its name without the section.
fn pages(workspace: &Workspace) -> BTreeMap<String, String> {
    workspace.infra(["man", "--write-to", "pages"]).expect_code(0);
    let files = files_in(&workspace.path("pages")).into_iter();
    files
        .map(|(name, bytes)| (name.strip_suffix(".1").unwrap().to_owned(), String::from_utf8(bytes).unwrap()))
        .collect()
}

/// Every command by the name of its page, as the help texts list them.
fn commands(workspace: &Workspace, path: &[String]) -> BTreeSet<String> {
    let mut command = workspace.command([]);
    let help = Outcome::of(command.args(path).arg("--help")).expect_code(0).stdout;
    let mut names = BTreeSet::from([[&["infra".to_owned()], path].concat().join("-")]);
    for inner in commands_of(&help) {
        names.extend(commands(workspace, &[path, &[inner]].concat()));
    }
    names
}

#[test]
fn there_is_a_page_for_every_command_and_for_every_name_on_a_page() {
    let workspace = Workspace::new();
    let pages = pages(&workspace);
    let names: BTreeSet<String> = pages.keys().cloned().collect();
    assert_eq!(names, commands(&workspace, &[]));
    assert!(names.len() > 25, "{names:?}");
    for (page, text) in &pages {
        let text = text.replace("\\-", "-");
        for line in text.lines().filter(|line| line.starts_with("infra-") && line.ends_with("(1)")) {
            let named = line.trim_end_matches("(1)");
            assert!(names.contains(named), "{page} names {named}, which has no page");
        }
    }
    let run = workspace.infra(["man", "render", "credentials"]).expect_code(0);
    assert_eq!(run.stdout, pages["infra-render-credentials"]);
    assert!(run.stdout.contains("generate\\-ca"), "{}", run.stdout);
}

#[test]
fn every_page_has_the_exit_codes_of_the_help_text() {
    let workspace = Workspace::new();
    let help = workspace.infra(["--help"]).expect_code(0).stdout;
    let list = help.split("Exit codes:\n").nth(1).unwrap();
    let codes: Vec<(&str, &str)> =
        list.lines().map(|line| line.trim_start().split_once("  ").unwrap()).collect();
    assert_eq!(codes.len(), 10, "{help}");
    for (page, text) in pages(&workspace) {
        let text = text.replace("\\-", "-").replace("\\*(Aq", "'");
        let section = text.split(".SH \"EXIT STATUS\"\n").nth(1).unwrap_or_else(|| panic!("{page}: {text}"));
        for (code, meaning) in &codes {
            let entry = format!(".TP\n\\fB{code}\\fR\n{meaning}\n");
            assert!(section.contains(&entry), "{page} lacks {entry} in {section}");
        }
        assert!(!text.contains("Exit codes:"), "{page} has them twice: {text}");
    }
}

#[test]
fn examples_keep_their_lines() {
    let pages = pages(&Workspace::new());
    for (page, first) in [
        ("infra", "Start with `infra init`"),
        ("infra-init", "Example:\n  infra init "),
        ("infra-job", "Usual order:\n  infra job init "),
    ] {
        let text = pages[page].replace("\\-", "-");
        let section = text.split(".SH EXAMPLES\n.nf\n").nth(1).unwrap_or_else(|| panic!("{page}: {text}"));
        assert!(section.starts_with(first) && section.contains("\n.fi\n"), "{page}: {section}");
    }
    assert!(pages.values().all(|text| !text.contains(".SH EXTRA")));
}

#[test]
fn groff_takes_every_page_without_a_warning() {
    let workspace = Workspace::new();
    for page in pages(&workspace).keys() {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-ww", "-Tutf8", "-P-c"]).arg(workspace.path(&format!("pages/{page}.1")));
        let run = Outcome::of(&mut groff).expect_code(0);
        assert_eq!(run.stderr, "", "{page}");
        assert!(
            run.stdout.contains("EXIT STATUS") || run.stdout.contains("E\u{8}E"),
            "{page}: {}",
            run.stdout
        );
    }
}
