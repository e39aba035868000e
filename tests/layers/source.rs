//! The sources as text that can be searched: without comments, without what is built for tests only, with or without strings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of src/.
pub struct Source {
    /// The whole text.
    pub text: String,
    /// The shipped code: no comments, no tests.
    pub code: String,
    /// The shipped code with every string emptied.
    pub bare: String,
}

impl Source {
    pub fn new(text: &str) -> Self {
        let (mut code, mut bare) = mask(text);
        for (from, to) in test_items(&bare) {
            for text in [&mut code, &mut bare] {
                text[from..to].fill(b' ');
            }
        }
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { text: text.to_owned(), code: text_of(code), bare: text_of(bare) }
    }
}

/// All files by their path below src/.
pub fn sources() -> BTreeMap<String, Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rust = files_below(&root).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let name = |path: &Path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
    rust.map(|path| (name(&path), Source::new(&fs::read_to_string(&path).unwrap()))).collect()
}

/// The text of every template that is embedded in the binary, by its path in the repository.
pub fn templates() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths = ["stacks", "templates"].into_iter().flat_map(|folder| files_below(&root.join(folder)));
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
    paths.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Files that only unit tests are built with, by their names.
pub fn is_of_tests(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap();
    name.starts_with("test_") || name.ends_with("_tests.rs") || name == "tests.rs"
}

/// The text with its comments as spaces, and the same with its strings as spaces too; line ends stay.
fn mask(text: &str) -> (Vec<u8>, Vec<u8>) {
    let bytes = text.as_bytes();
    let (mut code, mut bare) = (bytes.to_vec(), bytes.to_vec());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (length, is_comment) = if rest.starts_with(b"//") {
            (rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()), true)
        } else if rest.starts_with(b"/*") {
            (rest.windows(2).position(|two| two == b"*/").map_or(rest.len(), |end| end + 2), true)
        } else if let Some(length) = text
            .get(at..)
            .and_then(|rest| literal_length(rest, at.checked_sub(1).map(|before| bytes[before])))
        {
            (length, false)
        } else {
            at += 1;
            continue;
        };
        let blank = |target: &mut Vec<u8>| {
            target[at..at + length].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        };
        if is_comment {
            blank(&mut code);
        }
        blank(&mut bare);
        at += length;
    }
    (code, bare)
}

/// The length of the string or character literal that begins here.
fn literal_length(rest: &str, before: Option<u8>) -> Option<usize> {
    let in_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let prefix = usize::from(rest.starts_with('b') && !in_word);
    let body = &rest[prefix..];
    if let Some(raw) = body.strip_prefix('r').filter(|_| !in_word || prefix == 1) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = raw[hashes + 1..].find(&end)?;
            return Some(prefix + 1 + hashes + 1 + length + end.len());
        }
    }
    if let Some(character) = body.strip_prefix('\'') {
        // A lifetime has no second quote after one character.
        let length = if character.starts_with('\\') {
            2 + character[2..].find('\'')?
        } else {
            character.chars().next()?.len_utf8()
        };
        return character[length..].starts_with('\'').then_some(prefix + 1 + length + 1);
    }
    let string = body.strip_prefix('"')?.as_bytes();
    let mut at = 0;
    while at < string.len() && string[at] != b'"' {
        at += if string[at] == b'\\' { 2 } else { 1 };
    }
    Some(prefix + 1 + at + 1)
}

/// Where items that are built for tests only begin and end.
fn test_items(bare: &[u8]) -> Vec<(usize, usize)> {
    const MARK: &[u8] = b"#[cfg(test)]";
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(found) = bare[at..].windows(MARK.len()).position(|window| window == MARK) {
        let from = at + found;
        let (mut depth, mut end) = (0_usize, from + MARK.len());
        while end < bare.len() {
            let byte = bare[end];
            end += 1;
            match byte {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => {
                    depth -= 1;
                    if depth == 0 && byte == b'}' {
                        break;
                    }
                }
                b';' if depth == 0 => break,
                _ => {}
            }
        }
        items.push((from, end));
        at = end;
    }
    items
}
