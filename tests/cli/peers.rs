//! `docs/peers.md`, which backs the README's table of peers: the same rows and cells, and a source for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The cells of each row; the first row is the header.
fn table() -> Vec<Vec<String>> {
    let text = read("README.md");
    let section =
        text.split("\n## ").find(|section| section.starts_with("Compared with other tools\n")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    rows.map(|row| row[1..row.len() - 1].split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

struct Section {
    title: String,
    entries: Vec<String>,
}

/// The sections of the page, each with its entries on one line.
fn sections(page: &str) -> Vec<Section> {
    let sections = page.split("\n## ").skip(1).map(|text| {
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

#[test]
fn every_cell_has_its_entry_in_the_same_words() {
    let rows = table();
    let (header, rows) = rows.split_first().unwrap();
    assert_eq!(header.len(), 7, "{header:?}");
    let sections = sections(&read("docs/peers.md"));
    let titles: Vec<&String> = sections.iter().map(|section| &section.title).collect();
    assert_eq!(titles, rows.iter().map(|row| &row[0]).collect::<Vec<_>>());
    for (row, section) in rows.iter().zip(&sections) {
        assert_eq!(row.len(), header.len(), "{row:?}");
        assert_eq!(section.entries.len() + 1, row.len(), "{}", section.title);
        for ((name, cell), entry) in header.iter().zip(row).skip(1).zip(&section.entries) {
            let beginning = format!("**{name}**: {cell}. ");
            assert!(entry.starts_with(&beginning), "{}: {entry:?} is not {beginning:?}", section.title);
        }
    }
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
