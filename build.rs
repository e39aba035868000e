//! Puts the commit into `infra --version`, and every file of templates/ into the binary.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::format_collect,
    reason = "a build script talks to cargo and stops when it cannot go on"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for path in [".git/HEAD", ".git/refs/heads", ".git/packed-refs"] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // A source archive has no history; the version then stands alone.
    let commit = git(&["rev-parse", "--short=10", "HEAD"]);
    let suffix = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=INFRA_VERSION={}{suffix}", env!("CARGO_PKG_VERSION"));
    embed_templates();
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Writes `templates.rs`: every file below templates/ by its path there, and every one of stacks/ as `stacks/…`, with its text.
fn embed_templates() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    for directory in ["stacks", "templates"] {
        println!("cargo::rerun-if-changed={directory}");
        find_files(&root.join(directory), &mut files);
    }
    files.sort();
    let entries: String = files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(&root).expect("it was found below");
            let name = path.strip_prefix("templates").unwrap_or(path);
            let text = |path: &Path| path.to_str().expect("a path that rustc can read").to_owned();
            format!("    ({:?}, include_str!({:?})),\n", text(name), text(file))
        })
        .collect();
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("templates.rs");
    fs::write(target, format!("&[\n{entries}]\n")).expect("the build directory can be written to");
}

fn find_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("templates/ can be read") {
        let path = entry.expect("templates/ can be read").path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            find_files(&path, found);
        } else {
            found.push(path);
        }
    }
}
