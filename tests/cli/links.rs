//! Links that a pull request brings: nothing below the directory of cluster.yaml is read, written or deleted through one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use crate::golden::golden;
use crate::support::{Workspace, files_in};

const SECRET: &str = "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG";

/// Someone else's directory, with names that infra would read, overwrite or delete.
fn victim() -> TempDir {
    let victim = tempfile::tempdir().unwrap();
    fs::create_dir_all(victim.path().join("files/etc/flatcar")).unwrap();
    fs::create_dir_all(victim.path().join("extra")).unwrap();
    for name in [
        "package.json",
        "network.json",
        "etcd.ign",
        "controller.ign",
        "notes.yaml",
        "ca.pem",
        "ca-key.pem",
        "files/etc/flatcar/update.conf",
        "extra/notes.yaml",
    ] {
        fs::write(victim.path().join(name), SECRET).unwrap();
    }
    victim
}

fn everything_in(directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files_in(directory) {
        found.insert(directory.join(name).display().to_string(), bytes);
    }
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            everything_in(&entry.path(), found);
        }
    }
}

/// Plants a link, runs commands, and expects each to refuse it by name, with no byte read or written behind it.
#[track_caller]
fn expect_refused(workspace: &Workspace, link: &str, target: &str, commands: &[&[&str]]) {
    let victim = victim();
    let mut before = BTreeMap::new();
    everything_in(victim.path(), &mut before);
    let path = workspace.path(link);
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(&path).unwrap();
    } else {
        let _ = fs::remove_file(&path);
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(victim.path().join(target), &path).unwrap();
    for command in commands {
        let run = crate::support::Outcome::of(workspace.infra_command().args(*command));
        assert_eq!(run.code, 2, "{command:?} with {link}:\n{}{}", run.stdout, run.stderr);
        let refusal = format!(
            "error: {link} is a symbolic link, which infra does not follow\n\
             help: put the file or directory itself there; if you did not create the link, find out who did\n"
        );
        assert!(run.stderr.contains(&refusal), "{command:?}: '{refusal}' is not in:\n{}", run.stderr);
        assert!(!format!("{}{}", run.stdout, run.stderr).contains("wJalr"), "{command:?} with {link}");
    }
    let mut after = BTreeMap::new();
    everything_in(victim.path(), &mut after);
    assert_eq!(before, after, "{link}");
    let mut ours = BTreeMap::new();
    everything_in(workspace.root(), &mut ours);
    let encoded = "YXdzX3NlY3JldF9hY2Nlc3Nfa2V5";
    for (name, bytes) in ours.iter().filter(|(name, _)| !workspace.path(link).ends_with(name)) {
        let text = String::from_utf8_lossy(bytes);
        // What is reached through the link itself is the victim's.
        let is_behind = Path::new(name).starts_with(&path);
        assert!(is_behind || !(text.contains(SECRET) || text.contains(encoded)), "{link}: {name}");
    }
    fs::remove_file(path).unwrap();
}

const MARKDOWN: &[&str] = &["plan", "--output", "markdown"];
const RENDER: &[&str] = &["render", "stack"];
const VALIDATE: &[&str] = &["validate"];
const CERTIFICATES: &[&str] = &["certificates"];
const CREDENTIALS: &[&str] = &["render", "credentials", "--generate-ca"];

#[test]
fn the_teams_own_files_may_not_be_links() {
    for (link, target) in [
        ("templates/files/etc/flatcar/update.conf", "files/etc/flatcar/update.conf"),
        ("templates/files", "files"),
        ("templates", ""),
        ("snippets/etcd.ign", "etcd.ign"),
        ("snippets", ""),
        ("manifests/extra/notes.yaml", "notes.yaml"),
        ("manifests/extra", "extra"),
        ("manifests", ""),
    ] {
        expect_refused(&golden("minimal"), link, target, &[MARKDOWN, RENDER, VALIDATE]);
    }
    // A link to nowhere, as an editor's lock, is none to follow either.
    expect_refused(&golden("minimal"), "templates/files/etc/.#update.conf", "nowhere", &[RENDER]);
}

#[test]
fn what_is_rendered_is_not_written_through_links() {
    for (link, target) in [("stacks", ""), ("userdata", ""), ("manifests", "")] {
        expect_refused(&golden("minimal"), link, target, &[RENDER]);
        let workspace = golden("minimal");
        workspace.infra(["render", "stack"]).expect_code(0);
        expect_refused(&workspace, link, target, &[RENDER, MARKDOWN]);
    }
    for (link, target) in
        [("stacks/network.json", "network.json"), ("userdata/controller.ign", "controller.ign")]
    {
        expect_refused(&golden("minimal"), link, target, &[RENDER]);
    }
    // Another file of that kind is none of ours, and stays.
    let workspace = golden("minimal");
    let victim = victim();
    fs::create_dir(workspace.path("stacks")).unwrap();
    symlink(victim.path().join("package.json"), workspace.path("stacks/other.json")).unwrap();
    workspace.infra(["render", "stack"]).expect_code(0);
    assert!(workspace.path("stacks/other.json").is_symlink());
}

#[test]
fn credentials_and_single_files_may_not_be_links() {
    expect_refused(&golden("minimal"), "credentials", "", &[CREDENTIALS, RENDER, MARKDOWN, CERTIFICATES]);
    expect_refused(&golden("minimal"), "credentials/ca.pem", "ca.pem", &[CREDENTIALS, RENDER, CERTIFICATES]);
    for name in ["ca-key.pem", ".lock", ".ca.pending", ".infra-x.part"] {
        let link = format!("credentials/{name}");
        expect_refused(&golden("minimal"), &link, "ca-key.pem", &[CREDENTIALS, RENDER]);
    }
    expect_refused(&golden("minimal"), "kubeconfig", "notes.yaml", &[CREDENTIALS]);
    expect_refused(&golden("minimal"), "infra.lock", "notes.yaml", &[&["lock"]]);
    expect_refused(&golden("minimal"), "cluster.yaml", "notes.yaml", &[VALIDATE, RENDER, MARKDOWN]);
    expect_refused(&golden("minimal"), "job.yaml", "notes.yaml", &[&["job", "lint"], &["job", "render"]]);
}

#[test]
fn the_directory_itself_and_what_a_flag_names_may_be_links() {
    let workspace = golden("minimal");
    let elsewhere = Workspace::new();
    symlink(workspace.root(), elsewhere.path("cluster")).unwrap();
    elsewhere.infra(["-C", "cluster", "render", "stack"]).expect_code(0);
    let templates = tempfile::tempdir().unwrap();
    symlink(templates.path(), elsewhere.path("ours")).unwrap();
    elsewhere.infra(["-C", "cluster", "--templates", "ours", "render", "stack"]).expect_code(0);
    // But nothing below it.
    symlink(victim().path(), templates.path().join("files")).unwrap();
    elsewhere
        .infra(["-C", "cluster", "--templates", "ours", "render", "stack"])
        .expect_code(2)
        .expect_stderr("ours/files is a symbolic link, which infra does not follow");
}
