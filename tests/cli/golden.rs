//! `tests/clusters/<name>/`: what `infra render stack` writes for each cluster, byte for byte. `SNAPSHOTS=overwrite` renews them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, Workspace};

pub fn clusters() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters");
    let mut found: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    assert!(found.len() >= 6, "{found:?}");
    found
}

/// A golden cluster with its credentials, ready to be rendered.
pub fn workspace(cluster: &Path) -> Workspace {
    let workspace = Workspace::new();
    fs::copy(cluster.join("cluster.yaml"), workspace.path("cluster.yaml")).unwrap();
    fs::create_dir(workspace.path("credentials")).unwrap();
    for entry in fs::read_dir(cluster.join("credentials")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, workspace.credential(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    workspace
}

pub fn golden(name: &str) -> Workspace {
    workspace(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters").join(name))
}

/// Every rendered file below a directory, by its path there.
fn rendered(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for directory in ["stacks", "userdata", "manifests"] {
        let path = root.join(directory);
        if path.is_dir() {
            for (name, bytes) in crate::support::files_in(&path) {
                files.insert(format!("{directory}/{name}"), bytes);
            }
        }
    }
    files
}

fn overwrite(expected: &Path, files: &BTreeMap<String, Vec<u8>>) {
    let _ = fs::remove_dir_all(expected);
    for (name, bytes) in files {
        let path = expected.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn every_golden_cluster_renders_to_what_is_expected() {
    for cluster in clusters() {
        let workspace = workspace(&cluster);
        workspace.infra(["render", "stack"]).expect_code(0);
        let files = rendered(&workspace.path(""));
        let expected = cluster.join("expected");
        if std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite") {
            overwrite(&expected, &files);
        }
        let wanted = rendered(&expected);
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&files), names(&wanted), "{}", cluster.display());
        for (name, bytes) in &files {
            assert!(
                wanted[name] == *bytes,
                "{}: {name} differs; SNAPSHOTS=overwrite renews it",
                cluster.display()
            );
        }
        for name in files.keys().filter(|name| name.starts_with("userdata/")) {
            assert_eq!(workspace.mode(name), 0o600, "{name}");
        }
    }
}

#[test]
fn a_second_render_changes_nothing_and_reports_so() {
    let workspace = golden("minimal");
    workspace.infra(["render", "stack"]).expect_code(0);
    let before = rendered(&workspace.path(""));
    let run = workspace.infra(["render", "stack"]).expect_code(0);
    assert!(run.stderr.contains("manifests: 18 unchanged"), "{}", run.stderr);
    assert_eq!(rendered(&workspace.path("")), before);
}

#[test]
fn pools_are_added_and_deleted_without_a_change_of_the_control_plane() {
    let workspace = golden("minimal");
    workspace.infra(["render", "stack"]).expect_code(0);
    let before = rendered(&workspace.path(""));
    let text = workspace.read("cluster.yaml");
    workspace.write("cluster.yaml", format!("{text}- {{name: gpu, instanceType: g5.xlarge, spot: true}}\n"));
    workspace.infra(["render", "stack"]).expect_code(0).expect_stderr("2 written, 18 unchanged");
    let with_gpu = rendered(&workspace.path(""));
    for (name, bytes) in &before {
        assert!(with_gpu[name] == *bytes, "{name} changed with a pool");
    }
    workspace.write("cluster.yaml", text);
    let run = workspace.infra(["render", "stack", "--output", "json"]).expect_code(0);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        report["assets"]["deleted"],
        serde_json::json!(["stacks/pool-gpu.json", "userdata/pool-gpu.ign"])
    );
    assert_eq!(rendered(&workspace.path("")), before);
}

#[test]
fn an_add_on_that_is_switched_off_leaves_no_trace() {
    let workspace = golden("minimal");
    let traces = || -> Vec<String> {
        let found = rendered(&workspace.path(""));
        let mentions = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase().contains("jobset");
        found.iter().filter(|(_, bytes)| mentions(bytes)).map(|(name, _)| name.clone()).collect()
    };
    workspace.infra(["render", "stack"]).expect_code(0);
    assert_eq!(
        traces(),
        ["manifests/53-jobset-api.yaml", "manifests/54-jobset.yaml", "userdata/controller.ign"]
    );
    let text = workspace.read("cluster.yaml");
    workspace.write("cluster.yaml", format!("{text}addons: {{jobSet: false}}\n"));
    workspace.infra(["render", "stack"]).expect_code(0);
    assert_eq!(traces(), Vec::<String>::new());
}

#[test]
fn monitoring_changes_controllers_members_and_one_rule_and_follows_the_mirrors() {
    let workspace = golden("private");
    workspace.infra(["render", "stack"]).expect_code(0);
    let before = rendered(&workspace.path(""));
    let text = workspace.read("cluster.yaml");
    let with = |monitoring: &str| {
        let text =
            text.replace("metricsServer: false", &format!("metricsServer: false, monitoring: {monitoring}"));
        let mirrors = "mirrors:\n  quay.io: https://mirror.example.com/quay\n  nvcr.io: https://mirror.example.com/nvidia\n";
        workspace.write("cluster.yaml", text.replace("mirrors:\n", mirrors));
        workspace.infra(["render", "stack"]).expect_code(0);
        rendered(&workspace.path(""))
    };
    let off = with("false");
    let on = with("{remoteWrite: \"https://metrics.example.com/write?team=a\"}");
    let changed = |name: &&String| on.get(*name) != off.get(*name);
    let changed: Vec<&str> = on.keys().filter(changed).map(String::as_str).collect();
    let new = ["55-prometheus", "56-alerts", "57-kube-state-metrics", "58-node-exporter", "59-dcgm-exporter"];
    let mut expected: Vec<String> = new.iter().map(|name| format!("manifests/{name}.yaml")).collect();
    expected.extend(["stacks/control-plane.json", "stacks/network.json"].map(str::to_owned));
    let machines = ["controller", "etcd-0", "etcd-1", "etcd-2"];
    expected.extend(machines.iter().map(|name| format!("userdata/{name}.ign")));
    assert_eq!(changed, expected);
    let read = |name: &str| String::from_utf8_lossy(&on[&format!("manifests/{name}.yaml")]).into_owned();
    for name in new {
        for image in read(name).lines().filter(|line| line.contains("image: ")) {
            assert!(image.contains("image: mirror.example.com/"), "{name}: {image}");
        }
    }
    let prometheus = read("55-prometheus");
    assert!(prometheus.contains("- url: \"https://metrics.example.com/write?team=a\""), "{prometheus}");
    assert!(prometheus.contains("__replica__: ${NODE_NAME}"), "{prometheus}");
    // There is no file system to miss.
    assert!(!read("56-alerts").contains("FileSystemMountMissing"));
    assert!(!String::from_utf8_lossy(&on["manifests/55-prometheus.yaml"]).contains("pki"));
    // And off again, every byte is as it was.
    workspace.write("cluster.yaml", text.as_str());
    workspace.infra(["render", "stack"]).expect_code(0);
    assert_eq!(rendered(&workspace.path("")), before);
}

#[test]
fn render_does_credentials_and_then_the_stack() {
    let workspace = Workspace::with_cluster();
    workspace.infra(["render"]).expect_code(1).expect_stderr("there is no certificate authority");
    workspace.infra(["render", "stack"]).expect_code(1).expect_stderr("ca.pem is not among the credentials");
    workspace.infra(["render", "--generate-ca"]).expect_code(0);
    assert!(workspace.path("userdata/etcd-2.ign").exists() && workspace.path("kubeconfig").exists());
    let run = workspace.infra(["render", "--output", "json"]).expect_code(0);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (report["credentials"][0]["action"].as_str(), report["assets"]["written"].as_array().map(Vec::len)),
        (Some("kept"), Some(0))
    );
    fs::remove_file(workspace.credential("etcd-client-key.pem")).unwrap();
    workspace
        .infra(["render", "stack"])
        .expect_code(1)
        .expect_stderr("etcd-client-key.pem is not among the credentials");
    workspace.infra(["render"]).expect_code(0);
}

#[test]
fn a_command_prints_each_warning_of_cluster_yaml_once() {
    let workspace = golden("minimal");
    let text = workspace.read("cluster.yaml");
    workspace.write("cluster.yaml", format!("{text}sshAllowedCIDRs: [0.0.0.0/0]\nkeyName: team\n"));
    let warning = "SSH is open to the whole internet";
    for arguments in [["render", "credentials"], ["render", "stack"]] {
        let run = workspace.infra(arguments).expect_code(0);
        assert_eq!(run.stderr.matches(warning).count(), 1, "{}", run.stderr);
    }
    let run = workspace.infra(["render"]).expect_code(0);
    assert_eq!(run.stderr.matches(warning).count(), 1, "{}", run.stderr);
    let open = "the API server accepts connections from the whole internet";
    assert_eq!(run.stderr.matches(open).count(), 1, "{}", run.stderr);
    let run = workspace.infra(["kubeconfig"]).expect_code(0);
    assert!(!run.stderr.contains("internet"), "a command that only reads repeats it: {}", run.stderr);
}

#[test]
fn files_with_keys_are_closed_again_even_if_nothing_else_changes() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = golden("minimal");
    workspace.infra(["render"]).expect_code(0);
    let files = ["kubeconfig", "userdata/controller.ign"];
    for file in files {
        fs::set_permissions(workspace.path(file), fs::Permissions::from_mode(0o644)).unwrap();
    }
    workspace.infra(["render"]).expect_code(0);
    for file in files {
        let mode = fs::metadata(workspace.path(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}");
    }
}

#[test]
fn no_network_and_no_aws_settings_are_needed() {
    let workspace = golden("minimal");
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--user", "--net", env!("CARGO_BIN_EXE_infra"), "render", "stack"])
        .current_dir(workspace.path(""));
    let run = Outcome::of(command.env_clear());
    if run.stderr.contains("unshare") {
        eprintln!("SKIPPED: this machine has no user namespaces: {}", run.stderr);
        return;
    }
    run.expect_code(0);
}

/// The names of the resources that differ between two renderings, by stack.
fn changed_resources(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let mut changed = Vec::new();
    for (name, bytes) in after.iter().filter(|(name, _)| name.starts_with("stacks/")) {
        let resources = |bytes: &[u8]| {
            let document: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            document["Resources"].as_object().unwrap().clone()
        };
        let (old, new) = (resources(&before[name]), resources(bytes));
        let names = new
            .iter()
            .filter(|(resource, value)| old.get(*resource) != Some(*value))
            .map(|(resource, _)| resource);
        changed.extend(names.map(|resource| format!("{name} {resource}")));
    }
    changed
}

#[test]
fn each_setting_changes_only_the_assets_it_affects() {
    let workspace = golden("ha-gpu-efs");
    workspace.infra(["render", "stack"]).expect_code(0);
    let before = rendered(&workspace.path(""));
    let text = workspace.read("cluster.yaml");
    workspace.write("cluster.yaml", text.replace("count: 2, maxCount: 4", "count: 3, maxCount: 4"));
    workspace.infra(["render", "stack"]).expect_code(0).expect_stderr("1 written");
    assert_eq!(changed_resources(&before, &rendered(&workspace.path(""))), ["stacks/pool-cpu.json Nodes"]);
    workspace.write("cluster.yaml", &text);
    fs::create_dir_all(workspace.path("templates/files/etc/kubernetes")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let policy = fs::read_to_string(root.join("files/etc/kubernetes/audit-policy.yaml.tera")).unwrap();
    workspace
        .write("templates/files/etc/kubernetes/audit-policy.yaml.tera", format!("{policy}# one byte more\n"));
    workspace.infra(["render", "stack"]).expect_code(0);
    let after = rendered(&workspace.path(""));
    assert_eq!(changed_resources(&before, &after), ["stacks/control-plane.json ControllerLaunchTemplate"]);
    let mount = fs::read_to_string(root.join("units/efs.mount.tera")).unwrap();
    fs::remove_dir_all(workspace.path("templates")).unwrap();
    fs::create_dir_all(workspace.path("templates/units")).unwrap();
    workspace.write("templates/units/efs.mount.tera", format!("{mount}# one byte more\n"));
    workspace.infra(["render", "stack"]).expect_code(0);
    let after = rendered(&workspace.path(""));
    let expected = ["stacks/pool-cpu.json NodeLaunchTemplate", "stacks/pool-gpu.json NodeLaunchTemplate"];
    assert_eq!(changed_resources(&before, &after), expected);
}

#[test]
fn cost_lists_what_is_billed() {
    let workspace = golden("private");
    let run = workspace.infra(["cost"]).expect_code(0);
    assert!(run.stdout.contains("vault-network        1      NAT gateway"), "{}", run.stdout);
    let run = workspace.infra(["cost", "--output", "json"]).expect_code(0);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["region"], "us-west-2");
    assert!(
        report["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|item| item["what"] == "machine" && item["count"] == 3)
    );
}

#[test]
fn validate_checks_what_would_be_rendered_without_credentials() {
    let workspace = Workspace::with_cluster();
    workspace.infra(["validate"]).expect_code(0);
    assert!(!workspace.path("credentials").exists() && !workspace.path("stacks").exists());
    fs::create_dir_all(workspace.path("snippets")).unwrap();
    workspace.write("snippets/etcd.ign", r#"{"ignition": {"version": "3.3.0"}, "bananas": 1}"#);
    let run = workspace.infra(["validate"]).expect_code(2);
    assert!(run.stdout.contains("snippets/etcd.ign: the document: "), "{}", run.stdout);
    let run = workspace.infra(["validate", "--output", "json"]).expect_code(2);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["checks"][0]["asset"], "snippets/etcd.ign");
}
