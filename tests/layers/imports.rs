//! Who imports whom: every path that a file names, resolved to the file that defines what it names.
//!
//! In: the sources. Out: edges between files. `crate::`, `super::`, `self::`, names of child modules and modules imported by name are
//! resolved; re-exports are followed to the file that defines the item, and are no import of the file that only hands them on.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

type Path = Vec<String>;

/// What a file says about other modules.
struct Names {
    /// The module that the file is.
    module: Path,
    /// What `use` brings in: its name here, its path, and whether it is handed on.
    uses: Vec<Use>,
    /// Every path elsewhere in the code.
    paths: Vec<Path>,
    /// Every word elsewhere in the code.
    words: BTreeSet<String>,
}

struct Use {
    name: String,
    path: Path,
    is_handed_on: bool,
}

/// One file that needs another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    pub from: String,
    pub to: String,
}

/// Every import between files, each once.
pub fn imports(sources: &BTreeMap<String, Source>) -> BTreeSet<Import> {
    let files: BTreeMap<&String, Names> = sources
        .iter()
        .filter(|(file, _)| *file != "main.rs")
        .map(|(file, source)| (file, Names::read(file, &source.bare)))
        .collect();
    let modules: BTreeMap<&Path, (&String, &Names)> =
        files.iter().map(|(file, names)| (&names.module, (*file, names))).collect();
    let mut found = BTreeSet::new();
    for (file, names) in &files {
        let used = names.uses.iter().filter(|used| !used.is_handed_on || names.words.contains(&used.name));
        for path in used.map(|used| &used.path).chain(&names.paths) {
            let Some(path) = names.absolute(path, &modules) else { continue };
            if let Some(to) = home(&path, &modules, 0).filter(|to| to != *file) {
                found.insert(Import { from: (*file).clone(), to });
            }
        }
    }
    found
}

/// The file that defines what an absolute path names.
fn home(path: &[String], modules: &BTreeMap<&Path, (&String, &Names)>, depth: usize) -> Option<String> {
    assert!(depth < 20, "{path:?} is handed on in a circle");
    let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length].to_vec()))?;
    let (file, names) = modules[&path[..length].to_vec()];
    // A module that is imported by name is used by the paths that begin with its name.
    let item = path.get(length)?;
    match names.uses.iter().find(|used| used.name == *item) {
        Some(used) => {
            let mut further = names.absolute(&used.path, modules)?;
            further.extend_from_slice(&path[length + 1..]);
            home(&further, modules, depth + 1)
        }
        None => Some(file.clone()),
    }
}

impl Names {
    fn read(file: &str, bare: &str) -> Self {
        let module = file.trim_end_matches(".rs").split('/').map(str::to_owned);
        let module = module.filter(|part| part != "mod" && part != "lib").collect();
        let tokens = tokens(bare);
        let mut names = Self { module, uses: Vec::new(), paths: Vec::new(), words: BTreeSet::new() };
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at] == "use" {
                let is_handed_on = at > 0 && matches!(tokens[at - 1], "pub" | ")");
                let mut leaves = Vec::new();
                at = read_tree(&tokens, at + 1, &Path::new(), &mut leaves);
                names.uses.extend(leaves.into_iter().map(|(name, path)| Use { name, path, is_handed_on }));
                continue;
            }
            if !is_word(tokens[at]) {
                at += 1;
                continue;
            }
            let mut path = vec![tokens[at].to_owned()];
            // A field or a method is no path of ours.
            let is_member = at > 0 && tokens[at - 1] == ".";
            while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|word| is_word(word)) {
                at += 2;
                path.push(tokens[at].to_owned());
            }
            at += 1;
            if !is_member {
                names.words.insert(path[0].clone());
            }
            if path.len() > 1 {
                names.paths.push(path);
            }
        }
        names
    }

    /// A path from the crate's root, if it names anything of ours.
    fn absolute(&self, path: &[String], modules: &BTreeMap<&Path, (&String, &Names)>) -> Option<Path> {
        let mut base = self.module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let child: Path = base.iter().cloned().chain([first.to_owned()]).collect();
                if !modules.contains_key(&child) {
                    // A module that was imported by its name.
                    let used = self.uses.iter().find(|used| used.name == first && used.path != path)?;
                    let module = self.absolute(&used.path, modules)?;
                    if !modules.contains_key(&module) {
                        return None;
                    }
                    base = module;
                    rest = &path[1..];
                }
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }
}

/// The leaves of a `use` with their names, and where the `use` ends.
fn read_tree(tokens: &[&str], mut at: usize, before: &Path, leaves: &mut Vec<(String, Path)>) -> usize {
    let mut path = before.clone();
    while at < tokens.len() {
        match tokens[at] {
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at = read_tree(tokens, at, &path, leaves);
                    if tokens[at] == "," {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "::" => at += 1,
            "as" => {
                leaves.push((tokens[at + 1].to_owned(), path));
                return at + 2;
            }
            word if is_word(word) => {
                if word != "self" || path.is_empty() {
                    path.push(word.to_owned());
                }
                at += 1;
            }
            _ => break,
        }
    }
    leaves.push((path.last().cloned().unwrap_or_default(), path));
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn tokens(bare: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = bare.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphabetic() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}
