//! Pages against the stand-in for AWS: plans that create, change, replace and delete, and the report of a running cluster. They are
//! kept in target/pages, where tests/pages opens them in a browser.

use std::fs;
use std::path::Path;

use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

/// Keeps a page for the browser.
fn keep(name: &str, page: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/pages");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{name}.html")), page).unwrap();
}

#[track_caller]
fn expect_parts(page: &str, parts: &[&str]) {
    assert!(page.starts_with("<!DOCTYPE html>\n") && page.ends_with("</html>\n"), "{page}");
    for part in parts {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    assert!(!page.contains("PRIVATE KEY") && !page.contains("client-key-data"), "a key is shown");
}

#[test]
fn plans_and_reports_as_pages() {
    let world = World::of_golden("ha-gpu-efs");
    world.workspace.edit(|text| format!("{text}kubernetes: {{version: v1.35.7}}\n"));
    let place = format!("s3://{}/clusters", world.bucket());
    let plan = |more: &[&str]| {
        let arguments = ["plan", "--output", "html"].into_iter().chain(more.iter().copied());
        world.run(arguments).expect_code(0).stdout
    };
    // With prices, so that the browser sees costs, too.
    world.run(["lock"]).expect_code(0);
    let create = plan(&["--s3-uri", &place]);
    expect_parts(
        &create,
        &[
            "data-role=\"etcd-0\" data-machines=\"1\" data-zone-index=\"0\" data-mark=\"created\"",
            "data-role=\"pool-gpu\" data-machines=\"3\" data-zone-index=\"0\" data-mark=\"created\"",
            "+ 3 created",
            "Plan: 5 stacks to create",
            "<p>Cost: ",
        ],
    );
    keep("plan-create", &create);

    world.up([]).expect_code(0);
    let before = world.workspace.read("cluster.yaml");
    let none = plan(&[]);
    expect_parts(&none, &["No changes. The cluster is as cluster.yaml says."]);
    assert!(!none.contains("<svg"), "nothing changes, and there is a picture of it");
    keep("plan-none", &none);

    world.workspace.edit(|text| {
        text.replace("labels: {team: vision,", "labels: {team: '<b>sound',")
            .replace("sshAllowedCIDRs: [192.0.2.0/24]", "sshAllowedCIDRs: [192.0.2.0/24, 198.51.100.0/24]")
    });
    let refused = world.run(["plan", "--output", "html"]);
    assert_eq!(refused.stdout, "", "a label cannot be markup: {}", refused.stderr);
    world.workspace.edit(|text| text.replace("'<b>sound'", "sound"));
    let change = plan(&[]);
    expect_parts(
        &change,
        &[
            "~ 3 stay outdated",
            "data-mark=\"created\"",
            "<summary><code>",
            "<span class=\"add\">+ ",
            "<span class=\"remove\">- ",
        ],
    );
    keep("plan-change", &change);

    let version = |text: &str| text.replace("v1.35.7", "v1.36.3").replace("m5.large", "m5.xlarge");
    world.workspace.edit(|_| version(&before));
    let replace = plan(&[]);
    expect_parts(&replace, &["± 3 replaced", "± 2 replaced", "data-mark=\"replaced\""]);
    assert_eq!(replace, plan(&[]), "the same plan is another page");
    keep("plan-replace", &replace);

    world
        .workspace
        .edit(|_| before.replace("- {name: cpu, instanceType: m5.large, count: 2, maxCount: 4}\n", ""));
    let delete = plan(&[]);
    expect_parts(
        &delete,
        &[
            "data-role=\"pool-cpu\" data-machines=\"2\" data-mark=\"deleted\"",
            "class=\"strike\"",
            "not in cluster.yaml",
            "<details open=\"open\">",
        ],
    );
    keep("plan-delete", &delete);

    world.workspace.edit(|_| before);
    let costs = world.run(["cost"]).expect_code(0).stdout;
    let total = costs.lines().find_map(|line| line.strip_prefix("total: ")?.split(", ").next()).unwrap();
    assert!(total.starts_with("$2."), "{total}");
    let changing = ["Create", "Put", "Execute", "Delete", "Update", "Set"];
    world.proxy.clear();
    world.run(["report", "--to", "report.html", "--online"]).expect_code(0).expect_stderr("written: ");
    let changed: Vec<String> = world
        .proxy
        .operations()
        .into_iter()
        .filter(|name| changing.iter().any(|verb| name.contains(&format!(":{verb}"))))
        .collect();
    assert_eq!(changed, [""; 0], "a report changes something in AWS");
    let report = world.workspace.read("report.html");
    expect_parts(
        &report,
        &[
            "<span class=\"pill good\">✓ healthy</span>",
            "<th scope=\"row\">research-pool-gpu</th>",
            "3 of 3 Ready",
            "Deleted, in this order",
            "may hold more than this cluster&#39;s objects",
            "Image in use",
            // What `infra cost` says of the same cluster by the same prices.
            &format!("<p>{total}, "),
            "<th scope=\"col\">An hour</th>",
            "<td class=\"number-cell\">$0.192</td>",
            // The cluster itself says where its assets are.
            &format!("arn:aws:s3:::{}", world.bucket()),
        ],
    );
    keep("report-online", &report);
}

#[test]
fn a_report_of_a_cluster_that_does_not_exist_or_cannot_be_read() {
    let world = World::of_golden("minimal");
    world.run(["report", "--to", "report.html", "--online"]).expect_code(0);
    let page = world.workspace.read("report.html");
    expect_parts(
        &page,
        &["Nothing of this cluster exists in AWS", "Nothing of this cluster is left to delete."],
    );
    // A page that was written stays when a later one cannot be made.
    world.proxy.fault("cloudformation:DescribeStacks", Fault::AccessDenied, Times::Always);
    world.run(["report", "--to", "report.html", "--online"]).expect_code(1).expect_stderr("DescribeStacks");
    assert_eq!(world.workspace.read("report.html"), page);
}
