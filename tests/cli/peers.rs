//! `docs/peers.md`, which backs two tables, the README's and its own: the same rows and cells, and a source for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A part of a page: from its heading to the next of the same level.
fn part<'a>(page: &'a str, title: &str) -> &'a str {
    let beginning = format!("{title}\n");
    page.split("\n## ").find(|part| part.starts_with(&beginning)).unwrap()
}

/// The cells of each row; the first row is the header.
fn table(part: &str) -> Vec<Vec<String>> {
    let rows = part.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    rows.map(|row| row[1..row.len() - 1].split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

struct Section {
    title: String,
    entries: Vec<String>,
}

/// The sections of a part or of a whole page, each with its entries on one line.
fn sections(part: &str) -> Vec<Section> {
    let sections = part.split("\n### ").skip(1).map(|text| {
        let (title, body) = text.split_once('\n').unwrap();
        let mut entries: Vec<String> = Vec::new();
        for line in body.lines().take_while(|line| !line.is_empty()) {
            match line.strip_prefix("- ") {
                Some(entry) => entries.push(entry.to_owned()),
                None => *entries.last_mut().unwrap() += &format!(" {}", line.trim_start()),
            }
        }
        Section { title: title.to_owned(), entries }
    });
    sections.collect()
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn paths(text: &str) -> Vec<&str> {
    in_backticks(text).filter(|word| word.contains('/') && !word.contains(' ')).collect()
}

/// What `[text][name]` refers to.
fn references(text: &str) -> BTreeSet<&str> {
    text.split("][").skip(1).filter_map(|rest| rest.split_once(']')).map(|(name, _)| name).collect()
}

/// `[name]: address` at the end of the page.
fn addresses(page: &str) -> BTreeMap<&str, &str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    lines.collect()
}

#[track_caller]
fn expect_the_same_words(table: &[Vec<String>], columns: &[&str], sections: &[Section]) {
    let (header, rows) = table.split_first().unwrap();
    assert_eq!(header, columns);
    let titles: Vec<&String> = sections.iter().map(|section| &section.title).collect();
    assert_eq!(titles, rows.iter().map(|row| &row[0]).collect::<Vec<_>>());
    for (row, section) in rows.iter().zip(sections) {
        assert_eq!(row.len(), header.len(), "{row:?}");
        assert_eq!(section.entries.len() + 1, row.len(), "{}", section.title);
        for ((name, cell), entry) in header.iter().zip(row).skip(1).zip(&section.entries) {
            let beginning = format!("**{name}**: {cell}. ");
            assert!(entry.starts_with(&beginning), "{}: {entry:?} is not {beginning:?}", section.title);
        }
    }
}

#[test]
fn every_cell_of_the_readme_has_its_entry_in_the_same_words() {
    let rows = table(part(&read("README.md"), "Compared with other tools"));
    assert!(rows.len() <= 16, "{} rows are more than anyone reads", rows.len() - 1);
    let columns = [
        "",
        "infra",
        "eksctl",
        "ParallelCluster",
        "HyperPod",
        "SkyPilot",
        "AWS's blueprints",
        "Kubeflow Trainer",
    ];
    expect_the_same_words(&rows, &columns, &sections(part(&read("docs/peers.md"), "Systems to train with")));
}

#[test]
fn every_cell_of_the_second_table_has_its_entry_in_the_same_words() {
    let page = read("docs/peers.md");
    let part = part(&page, "Tools that make clusters");
    let columns = ["", "infra", "kube-aws", "eksctl", "kops", "Typhoon", "AWS CDK"];
    expect_the_same_words(&table(part), &columns, &sections(part));
}

#[test]
fn every_entry_says_where_it_was_read() {
    let page = read("docs/peers.md");
    let addresses = addresses(&page);
    for Section { title, entries } in sections(&page) {
        assert!(!paths(&entries[0]).is_empty(), "{title}: no test or page shows {:?}", entries[0]);
        for entry in &entries[1..] {
            assert!(!references(entry).is_empty(), "{title}: {entry:?} has no source");
        }
    }
    assert_eq!(references(&page), addresses.keys().copied().collect(), "references and addresses differ");
    for (name, address) in addresses {
        let is_commit = |part: &str| part.len() == 40 && part.chars().all(|digit| digit.is_ascii_hexdigit());
        assert!(address.starts_with("https://github.com/"), "{name}: {address}");
        assert!(address.split('/').nth(6).is_some_and(is_commit), "{name}: {address} has no commit");
    }
}

#[test]
fn every_column_was_read_at_a_commit() {
    let page = read("docs/peers.md");
    let (introduction, _) = page.split_once("\n## ").unwrap();
    let read_at: BTreeSet<String> =
        table(introduction).into_iter().skip(1).map(|row| row[0].clone()).collect();
    let tables = [
        table(part(&read("README.md"), "Compared with other tools")),
        table(part(&page, "Tools that make clusters")),
    ];
    let columns: BTreeSet<String> =
        tables.iter().flat_map(|table| table[0].iter().skip(2).cloned()).collect();
    assert_eq!(read_at, columns);
}

#[test]
fn what_is_named_of_this_repository_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = read("docs/peers.md");
    let missing: Vec<&str> = paths(&page).into_iter().filter(|path| !root.join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for Section { title, entries } in sections(&page) {
        for entry in &entries {
            let files: Vec<&str> = paths(entry).into_iter().filter(|path| path.ends_with(".rs")).collect();
            for test in in_backticks(entry).filter(|word| word.contains('_') && !word.contains('/')) {
                let function = format!("fn {test}(");
                let is_there = files.iter().any(|file| read(file).contains(&function));
                assert!(is_there, "{title}: {test} is in none of {files:?}");
            }
        }
    }
}
