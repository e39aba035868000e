//! A page of docs/ as what its reader does, in order: the commands that are typed and the files that are edited.
//! docs/runbooks/README.md has the rules.

use std::fs;
use std::path::{Path, PathBuf};

const FENCE: &str = "```";

/// One thing that a reader does.
#[derive(Clone, Debug)]
pub enum Step {
    Command(Command),
    /// The content of a block that begins with the name of a file.
    Edit {
        file: String,
        text: String,
    },
}

/// A line that is typed.
#[derive(Clone, Debug)]
pub struct Command {
    pub line: String,
    /// Everything behind `infra`.
    pub arguments: Vec<String>,
    /// How it is expected to end.
    pub code: i32,
}

impl Command {
    pub fn is(&self, name: &str) -> bool {
        self.arguments.first().is_some_and(|first| first == name)
    }
}

/// The steps of a page, by its path below docs/runbooks.
#[track_caller]
pub fn steps_of(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (language, text) in blocks_of(page) {
        match language.as_str() {
            "infra" => steps.extend(commands(&text, page).into_iter().map(Step::Command)),
            "yaml" => steps.extend(edit(&text)),
            // What was seen once; the rehearsal's own test runs its commands.
            "console" => {}
            _ => {
                let typed = |line: &str| line.trim_start().trim_start_matches("$ ").starts_with("infra ");
                assert!(!text.lines().any(typed), "{page}: this block is not marked `infra`:\n{text}");
            }
        }
    }
    steps
}

/// What a page says that its reader sees: everything in backticks under that heading that is no command.
pub fn quotes_of(page: &str) -> Vec<String> {
    const COMMANDS: [&str; 5] = ["infra", "aws", "up", "validate", "destroy"];
    let text = read(page);
    let Some((_, rest)) = text.split_once("\n## What you see\n") else { return Vec::new() };
    let section = rest.split("\n## ").next().unwrap_or(rest);
    let prose: Vec<&str> = section.lines().take_while(|line| !line.starts_with(['|', '`'])).collect();
    let quotes = prose.join(" ");
    let quotes = quotes.split('`').skip(1).step_by(2).map(in_one_line);
    let is_said = |quote: &String| {
        let first = quote.split(' ').next().unwrap_or_default();
        quote.contains(' ') && !COMMANDS.contains(&first) && !first.starts_with("--")
    };
    quotes.filter(is_said).collect()
}

/// Whether a text holds a quote; `…` in it stands for anything.
pub fn holds(text: &str, quote: &str) -> bool {
    let text = in_one_line(text);
    let mut rest = text.as_str();
    quote.split('…').all(|part| {
        let found = rest.split_once(part);
        rest = found.map_or(rest, |(_, behind)| behind);
        found.is_some()
    })
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of all pages, sorted, without the one that lists the others.
pub fn pages() -> Vec<String> {
    let names = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".md") && name != "README.md");
    names.sort();
    names
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks")
}

fn read(page: &str) -> String {
    let path = directory().join(page);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every fenced block with its language, without the indentation of the list it may be in.
fn blocks_of(page: &str) -> Vec<(String, String)> {
    let text = read(page);
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix(FENCE) else { continue };
        let indentation = &line[..line.len() - line.trim_start().len()];
        let inside = lines.by_ref().take_while(|line| line.trim() != FENCE);
        let inside: Vec<&str> = inside.map(|line| line.strip_prefix(indentation).unwrap_or(line)).collect();
        blocks.push((language.trim().to_owned(), inside.join("\n")));
    }
    blocks
}

#[track_caller]
fn commands(text: &str, page: &str) -> Vec<Command> {
    let joined = text.replace("\\\n", " ");
    joined.lines().filter(|line| !line.trim().is_empty()).map(|line| command(line, page)).collect()
}

#[track_caller]
fn command(line: &str, page: &str) -> Command {
    let (typed, code) = match line.split_once(" # exit ") {
        Some((typed, code)) => (typed, code.trim().parse().unwrap_or_else(|_| panic!("{page}: {line}"))),
        None => (line, 0),
    };
    assert!(!typed.contains(['\'', '"', '$', '|', '#', ';', '&']), "{page}: needs a shell: {line}");
    let mut words = typed.split_whitespace().map(str::to_owned);
    assert_eq!(words.next().as_deref(), Some("infra"), "{page}: not a command of ours: {line}");
    let arguments: Vec<String> = words.collect();
    Command { line: format!("infra {}", arguments.join(" ")), arguments, code }
}

/// An edit, unless the block is of something else.
fn edit(text: &str) -> Option<Step> {
    let (first, rest) = text.split_once('\n')?;
    let file = first.strip_prefix("# ")?;
    file.ends_with(".yaml").then(|| Step::Edit { file: file.to_owned(), text: format!("{rest}\n") })
}

/// A file after each top-level section of an edit has taken the place of its own of that name.
pub fn with_sections(text: &str, edit: &str) -> String {
    let names: Vec<&str> = edit.lines().filter_map(section).collect();
    let mut kept = String::new();
    let mut is_replaced = false;
    for line in text.lines() {
        if let Some(name) = section(line) {
            is_replaced = names.contains(&name);
        }
        if !is_replaced {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept + edit
}

/// The key that a line at the left edge begins.
fn section(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(':')?;
    (!key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric())).then_some(key)
}
