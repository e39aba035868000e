//! What a team adds to the asset directory: overriding templates, snippets, manifests of its own.

use std::fs;

use crate::golden::golden;

#[test]
fn single_templates_can_be_overridden() {
    let workspace = golden("minimal");
    fs::create_dir_all(workspace.path("templates/files/etc/flatcar")).unwrap();
    workspace.write("templates/files/etc/flatcar/update.conf", "GROUP=lts\n");
    workspace.infra(["render", "stack"]).expect_code(0);
    assert!(workspace.read("userdata/controller.ign").contains("R1JPVVA9bHRzCg=="));
    fs::rename(workspace.path("templates"), workspace.path("ours")).unwrap();
    let run = workspace.infra(["render", "stack"]).expect_code(0);
    assert!(run.stderr.contains("5 written"), "{}", run.stderr);
    workspace.infra(["--templates", "ours", "render", "stack"]).expect_code(0).expect_stderr("5 written");
    workspace
        .infra(["--templates", "nowhere", "render", "stack"])
        .expect_code(2)
        .expect_stderr("there is no directory");
    workspace.write("ours/files/etc/flatcar/updat.conf", "x\n");
    let run = workspace.infra(["--templates", "ours", "render", "stack"]).expect_code(2);
    assert!(
        run.stderr.contains("overrides nothing") && run.stderr.contains("did you mean"),
        "{}",
        run.stderr
    );
    fs::remove_file(workspace.path("ours/files/etc/flatcar/updat.conf")).unwrap();
    fs::create_dir_all(workspace.path("ours/units")).unwrap();
    workspace
        .write("ours/units/kubelet.service.tera", "[Service]\nExecStart=/opt/bin/kubelt {{ nonsense }}\n");
    let run = workspace.infra(["--templates", "ours", "render", "stack"]).expect_code(2);
    assert!(
        run.stderr.contains("nonsense") && run.stderr.contains("units/kubelet.service"),
        "{}",
        run.stderr
    );
    workspace.write("ours/units/kubelet.service.tera", "[Service]\nExecStart=/opt/bin/kubelt\n");
    let run = workspace.infra(["--templates", "ours", "render", "stack"]).expect_code(2);
    assert!(run.stderr.contains("kubelet.service: it needs /opt/bin/kubelt"), "{}", run.stderr);
}

#[test]
fn each_snippet_goes_to_the_one_role_that_it_names_and_a_stray_one_is_mentioned() {
    let workspace = golden("minimal");
    let text = workspace.read("cluster.yaml");
    workspace.write("cluster.yaml", format!("{text}- {{name: cpu-large, instanceType: m5.xlarge}}\n"));
    fs::create_dir_all(workspace.path("snippets")).unwrap();
    for name in ["etcd", "pool-cpu", "pool-cpu-large", "pool-cpu-large-disks", "pool-cqu"] {
        let text = format!(
            r#"{{"ignition": {{"version": "3.3.0"}}, "systemd": {{"units": [{{"name": "{name}.service"}}]}}}}"#
        );
        workspace.write(&format!("snippets/{name}.ign"), &text);
    }
    let run = workspace.infra(["render", "stack"]).expect_code(0);
    let stray =
        "warning: snippets/pool-cqu.ign is for no machine of this cluster: did you mean pool-cpu.ign?";
    assert!(run.stderr.contains(stray), "{}", run.stderr);
    let merged = |stack: &str| workspace.read(&format!("stacks/{stack}.json")).matches(".ign\\\",").count();
    // Its own configuration, and the snippets.
    assert_eq!((merged("pool-cpu"), merged("pool-cpu-large")), (2, 3));
}

#[test]
fn snippets_and_extra_manifests_are_merged_in_and_checked() {
    let workspace = golden("minimal");
    fs::create_dir_all(workspace.path("snippets")).unwrap();
    fs::create_dir_all(workspace.path("manifests/extra")).unwrap();
    workspace.write("manifests/extra/team.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n");
    workspace.write("snippets/controller.ign", r#"{"ignition": {"version": "3.3.0"}}"#);
    workspace.infra(["render", "stack"]).expect_code(0);
    let config: serde_json::Value = serde_json::from_str(&workspace.read("userdata/controller.ign")).unwrap();
    let files = config["storage"]["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["path"] == "/etc/kubernetes/addons/90-team.yaml"));
    assert!(workspace.path("manifests/extra/team.yaml").exists());
    workspace.write(
        "snippets/controller-bad.ign",
        r#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/usr/x", "contents": {"source": "http://a/b"}}]}}"#,
    );
    let run = workspace.infra(["render", "stack"]).expect_code(2);
    assert!(
        run.stderr.contains("snippets/controller-bad.ign: /usr/x: nothing can be written below /usr"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("downloaded without a hash"), "{}", run.stderr);
    fs::remove_file(workspace.path("snippets/controller-bad.ign")).unwrap();
    workspace.write("manifests/extra/broken.yaml", "a: [\n");
    let run = workspace.infra(["render", "stack"]).expect_code(2);
    assert!(run.stderr.contains("broken.yaml:1:"), "{}", run.stderr);
}
