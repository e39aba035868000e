//! The documents: links point at something that exists, and commands in running text are accepted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, Workspace};

/// Every document of the project.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn what_a_document_links_to_is_there() {
    let mut links = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            assert!(path.exists(), "{} links to {target}, which is not there", document.display());
            if !anchor.is_empty() {
                let there = anchors_of(&fs::read_to_string(&path).unwrap());
                assert!(there.contains(anchor), "{} links to {target}: {there:?}", document.display());
            }
            links += 1;
        }
    }
    assert!(links > 30, "{links}");
}

/// The anchors of a document's headings, as GitHub creates them.
fn anchors_of(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
    let anchor = |line: &str| line.trim_start_matches('#').trim().chars().filter(kept).collect::<String>();
    headings.map(|line| anchor(line).to_lowercase().replace(' ', "-")).collect()
}

/// Blocks of commands are run by tests/lifecycle/runbooks.rs. Arguments are parsed in order, so that help at the end is shown only if
/// everything before it is known.
#[test]
fn every_command_in_a_text_is_understood() {
    let workspace = Workspace::new();
    let mut commands = BTreeSet::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for command in inline_commands(&text) {
            commands.insert(command);
        }
    }
    assert!(commands.len() > 40, "{commands:?}");
    for command in commands {
        // NAME is a placeholder; names are in lower case. What follows `--` is another program's.
        let words = command.split_whitespace().map(|word| if word == "NAME" { "name" } else { word });
        let words = words.take_while(|word| *word != "--").skip(1).chain(["--help"]);
        let run = Outcome::of(workspace.command([]).args(words));
        assert_eq!(run.code, 0, "`{command}`: {}", run.stderr);
    }
}

/// What begins with `infra` between two backticks of a line, unless it only shows a form.
fn inline_commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let typed = line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("infra "));
            commands.extend(typed.map(str::to_owned));
        }
    }
    let shows_form = |command: &String| {
        command.contains(['…', '[', '|', '$', '>', '<', '{']) || command.starts_with("infra COMMAND")
    };
    commands.retain(|command| !shows_form(command));
    commands
}

/// docs/jobs.md explains every key of a job file, and no other: those of reference/job.md, which the program writes.
#[test]
fn the_page_of_jobs_has_every_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let keys_of = |page: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let table = text.lines().skip_while(|line| !line.starts_with("| key |")).skip(2);
        let cells =
            table.take_while(|line| line.starts_with('|')).map(|line| line.split('|').nth(1).unwrap());
        let keys = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        keys.map(|key| key.split('.').next().unwrap().to_owned()).collect()
    };
    let known = keys_of("reference/job.md");
    assert!(known.len() > 15, "{known:?}");
    assert_eq!(keys_of("jobs.md"), known);
}
