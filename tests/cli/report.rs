//! `infra report`: pages and pictures of every golden cluster, read by a parser that we did not write and compared with the blueprint;
//! texts of others, and files that are not ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use infra::blueprint::{BlockIds, Blueprint, Source};
use serde_json::Value;

use crate::golden::{clusters, golden, workspace};
use crate::support::{Outcome, Workspace, tool};

/// The elements of a page or of a picture; it must be well-formed.
#[track_caller]
fn elements(workspace: &Workspace, file: &str) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/read_markup.py");
    let read = Outcome::of(tool("venv/bin/python").arg(script).arg(workspace.path(file))).expect_code(0);
    read.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn attribute<'a>(element: &'a Value, name: &str) -> Option<&'a str> {
    element["attributes"][name].as_str()
}

fn blueprint(workspace: &Workspace) -> Blueprint {
    let loaded = infra::config::load(&workspace.path("cluster.yaml")).unwrap();
    Blueprint::new(loaded.value).unwrap()
}

/// The boxes and arrows of a picture are the machines, subnets and rules of the blueprint: all of them, each once.
#[track_caller]
fn expect_everything_in_it(elements: &[Value], blueprint: &Blueprint) {
    let cluster = &blueprint.cluster;
    let mut wanted: BTreeMap<String, u64> =
        (0..cluster.etcd.count).map(|member| (format!("etcd-{member}"), 1)).collect();
    wanted.insert("controller".to_owned(), cluster.controllers.count.into());
    wanted.extend(cluster.pools.iter().map(|pool| (format!("pool-{}", pool.name), pool.count.into())));
    let mut drawn: BTreeMap<String, u64> = BTreeMap::new();
    for element in elements {
        let Some(role) = attribute(element, "data-role") else { continue };
        *drawn.entry(role.to_owned()).or_default() +=
            attribute(element, "data-machines").unwrap().parse::<u64>().unwrap();
        let zone = attribute(element, "data-zone-index").unwrap().parse::<usize>().unwrap();
        let zone = &cluster.availability_zones[zone];
        if let Some(member) = role.strip_prefix("etcd-") {
            assert_eq!(zone, cluster.etcd_availability_zone(member.parse().unwrap()), "{role}");
        }
        let pool = cluster.pools.iter().find(|pool| role == format!("pool-{}", pool.name));
        assert!(pool.is_none_or(|pool| pool.availability_zones.contains(zone)), "{role} in {zone}");
    }
    assert_eq!(drawn, wanted, "machines");

    let subnets: BTreeSet<&str> =
        elements.iter().filter_map(|found| attribute(found, "data-subnet")).collect();
    let expected: BTreeSet<&str> =
        blueprint.network.subnets.iter().map(|subnet| subnet.resource.as_str()).collect();
    assert_eq!(subnets, expected, "subnets");

    let mut left: BTreeMap<String, (String, &str)> = BTreeMap::new();
    for rule in &blueprint.rules {
        let from = match &rule.from {
            Source::SecurityGroup(group) => group.resource().to_owned(),
            Source::Range(_) => rule.why.to_owned(),
        };
        left.insert(rule.resource(), (from, rule.to.resource()));
    }
    let bands: BTreeSet<&str> = elements.iter().filter_map(|found| attribute(found, "data-band")).collect();
    for arrow in elements.iter().filter(|element| attribute(element, "data-arrow").is_some()) {
        let (from, to) = (attribute(arrow, "data-from").unwrap(), attribute(arrow, "data-to").unwrap());
        assert!(bands.contains(from) && bands.contains(to), "an arrow begins or ends nowhere: {arrow}");
        for rule in attribute(arrow, "data-rules").unwrap().split(' ') {
            assert_eq!(left.remove(rule), Some((from.to_owned(), to)), "{rule} of arrow {arrow}");
        }
    }
    assert!(left.is_empty(), "rules without an arrow: {left:?}");
}

#[test]
fn every_golden_cluster_has_a_page_and_a_picture_with_everything_in_it() {
    for cluster in clusters() {
        let workspace = workspace(&cluster);
        let run =
            workspace.infra(["report", "--to", "report.html", "--picture", "cluster.svg"]).expect_code(0);
        assert_eq!(run.stdout, "");
        let blueprint = blueprint(&workspace);
        expect_everything_in_it(&elements(&workspace, "cluster.svg"), &blueprint);
        let page = elements(&workspace, "report.html");
        expect_everything_in_it(&page, &blueprint);
        let texts: BTreeSet<&str> = page.iter().map(|element| element["text"].as_str().unwrap()).collect();
        let headings = page.iter().filter(|element| element["name"] == "h2").count();
        assert_eq!(headings, 9, "{}", cluster.display());
        for rule in &blueprint.rules {
            assert!(texts.contains(rule.why), "{}", rule.why);
        }
        for file in ["ca", "apiserver", "etcd-0", "front-proxy-client"] {
            assert!(texts.contains(file), "{file} is not on the time line of {}", cluster.display());
        }
        for item in blueprint.billed_items(&BlockIds::new()) {
            assert!(texts.contains(item.what.as_str()), "{item:?}");
        }
        assert!(!page.iter().any(|element| element["name"] == "script"), "no page needs a script");
        let fetched = |element: &&Value| {
            ["src", "xlink:href", "srcset", "action"].iter().any(|name| attribute(element, name).is_some())
                || attribute(element, "href").is_some_and(|link| !link.starts_with('#'))
        };
        assert_eq!(page.iter().find(fetched), None);
    }
}

#[test]
fn numbers_and_nouns_agree() {
    let workspace = golden("minimal");
    workspace.infra(["report", "--to", "report.html"]).expect_code(0);
    let page = elements(&workspace, "report.html");
    let figures = page.iter().find(|element| attribute(element, "class") == Some("figures")).unwrap();
    let text = figures["text"].as_str().unwrap();
    assert!(text.contains("machines") && text.contains("availability zone"), "{text}");
    assert!(!text.contains("availability zones"), "{text}");
}

#[test]
fn no_key_is_on_a_page() {
    let workspace = golden("ha-gpu-efs");
    workspace.infra(["report", "--to", "report.html", "--picture", "cluster.svg"]).expect_code(0);
    let text = workspace.read("report.html") + &workspace.read("cluster.svg");
    for (name, bytes) in crate::support::files_in(&workspace.path("credentials")) {
        for line in String::from_utf8_lossy(&bytes).lines().filter(|line| line.len() > 20) {
            assert!(!text.contains(line), "a line of {name} is shown");
        }
    }
    assert!(!text.contains("PRIVATE KEY"));
}

#[test]
fn a_page_works_without_credentials_lock_and_pools_and_a_picture_has_the_same_bytes_twice() {
    let workspace = Workspace::with_cluster();
    workspace.infra(["report", "--to", "report.html"]).expect_code(0);
    let page = workspace.read("report.html");
    for part in [
        "There are no certificates on this machine",
        "There is no infra.lock yet",
        "none in cluster.yaml",
        "no S3 URI is known",
        "AWS was not read for this page",
    ] {
        assert!(page.contains(part), "{part}");
    }
    workspace.infra(["report", "--picture", "one.svg"]).expect_code(0);
    workspace.infra(["report", "--picture", "two.svg"]).expect_code(0);
    assert_eq!(workspace.read("one.svg"), workspace.read("two.svg"));
}

#[test]
fn the_picture_of_the_readme_is_current() {
    let workspace = golden("ha-gpu-efs");
    workspace.infra(["report", "--picture", "cluster.svg"]).expect_code(0);
    let found = workspace.read("cluster.svg");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("docs/pictures/ha-gpu-efs.svg");
    if std::env::var("SNAPSHOTS").as_deref() == Ok("overwrite") {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &found).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap_or_default() == found, "{} is outdated", file.display());
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains("](docs/pictures/ha-gpu-efs.svg)"), "the README does not show it");
}

/// The screen is what a test of the lifecycle has seen; the picture is made from it, and by nobody's hand.
#[test]
fn the_picture_of_up_is_made_from_its_screen() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = std::process::Command::new(root.join("scripts/make-screen-picture"))
        .arg(root.join("tests/screens/up-ha-gpu-efs.ansi"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (found, file) =
        (String::from_utf8(made.stdout).unwrap(), root.join("docs/pictures/up-ha-gpu-efs.svg"));
    if std::env::var("SNAPSHOTS").as_deref() == Ok("overwrite") {
        fs::write(&file, &found).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap_or_default() == found, "{} is outdated", file.display());
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains("](docs/pictures/up-ha-gpu-efs.svg)"), "the README does not show it");
}

#[test]
fn what_others_wrote_stays_text() {
    let workspace = golden("minimal");
    let hostile = "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>&lt;\"'";
    let lock = format!(
        "cluster: minimal\nregion: us-west-2\nimage: {{id: ami-1, name: {}}}\n",
        serde_json::to_string(hostile).unwrap()
    );
    workspace.write("infra.lock", lock);
    let name = "<b onclick=alert(3)>\u{202e}\u{1b}[2J.pem";
    workspace.write(&format!("credentials/{name}"), "no certificate");
    workspace.infra(["report", "--to", "report.html"]).expect_code(0);
    let page = elements(&workspace, "report.html");
    let texts: Vec<&str> = page.iter().map(|element| element["text"].as_str().unwrap()).collect();
    assert!(texts.contains(&hostile), "the name of the image is not there as it is");
    assert!(texts.contains(&"<b onclick=alert(3)>\u{fffd}\u{fffd}[2J.pem"), "{texts:#?}");
    let names: BTreeSet<&str> = page.iter().map(|element| element["name"].as_str().unwrap()).collect();
    assert!(names.is_disjoint(&BTreeSet::from(["script", "img", "b", "iframe", "link"])), "{names:?}");
    let written = page.iter().flat_map(|element| element["attributes"].as_object().unwrap().keys());
    assert_eq!(written.filter(|name| name.starts_with("on")).count(), 0);
}

#[test]
fn a_file_of_someone_else_is_kept() {
    let workspace = Workspace::with_cluster();
    workspace.write("mine.html", "<html>mine</html>");
    let refused = workspace.infra(["report", "--to", "mine.html"]).expect_code(1);
    assert_eq!(
        refused.stderr,
        "error: mine.html exists, and `infra report` did not write it\n\
         help: name another file, or overwrite this one with --force\n"
    );
    assert_eq!(workspace.read("mine.html"), "<html>mine</html>");
    // A page is no picture, and nothing is written when one of two files cannot be.
    workspace.infra(["report", "--to", "report.html"]).expect_code(0);
    fs::remove_file(workspace.path("mine.html")).unwrap();
    workspace.infra(["report", "--to", "mine.html", "--picture", "report.html"]).expect_code(1);
    assert!(!workspace.path("mine.html").exists());
    workspace.infra(["report", "--to", "report.html"]).expect_code(0).expect_stderr("written: report.html\n");
    workspace.infra(["report", "--picture", "report.html", "--force"]).expect_code(0);
    assert!(workspace.read("report.html").starts_with("<?xml"));
    assert_eq!(workspace.mode("report.html"), 0o644);
}

#[test]
fn broken_inputs_have_a_reason_and_help() {
    let workspace = Workspace::with_cluster();
    fs::create_dir(workspace.path("directory")).unwrap();
    fs::create_dir(workspace.path("stacks")).unwrap();
    std::os::unix::fs::symlink("cluster.yaml", workspace.path("link.html")).unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["--to", "none/report.html"],
            1,
            "error: cannot write none/report.html: there is no directory none\n",
        ),
        (&["--to", "directory"], 1, "error: cannot write directory: it is not a regular file\n"),
        (&["--to", "/dev/null", "--force"], 1, "error: cannot write /dev/null: it is not a regular file\n"),
        (
            &["--to", "stacks/report.html"],
            2,
            "error: cannot write stacks/report.html: infra reads or writes stacks/ itself\n",
        ),
        (
            &["--to", "link.html", "--force"],
            2,
            "error: link.html is a symbolic link, which infra does not follow\n",
        ),
        (&["--to", "a", "--picture", "a"], 2, "error: the page and the picture cannot be the same file\n"),
        (&[], 2, "--to <FILE.html>"),
        (&["--picture", "a.svg", "--online"], 2, "--to <FILE.html>"),
    ];
    for (arguments, code, part) in cases {
        let mut command = workspace.command(["report"]);
        Outcome::of(command.args(arguments)).expect_code(code).expect_stderr(part);
    }
    workspace
        .infra(["status", "--output", "html"])
        .expect_code(2)
        .expect_stderr("error: only `infra plan` writes markdown and html\n");
    workspace.write("infra.lock", "cluster: [");
    workspace.infra(["report", "--to", "report.html"]).expect_code(2).expect_stderr("infra.lock:1");
    workspace.write("cluster.yaml", "clusterName: [");
    workspace.infra(["report", "--picture", "a.svg"]).expect_code(2).expect_stderr("cluster.yaml");
    assert!(!workspace.path("report.html").exists() && !workspace.path("a.svg").exists());
}
