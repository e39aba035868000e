//! Puts the commit into `infra --version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for path in [".git/HEAD", ".git/refs/heads", ".git/packed-refs"] {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // A source archive has no history; the version then stands alone.
    let commit = git(&["rev-parse", "--short=10", "HEAD"]);
    let suffix = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=INFRA_VERSION={}{suffix}", env!("CARGO_PKG_VERSION"));
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
