//! What the configuration of each role holds that others must not hold: keys, and the snapshot to restore.

use crate::golden::{clusters, golden, workspace};

#[test]
fn a_snapshot_to_restore_reaches_etcd_members_and_no_other_machine() {
    let workspace = golden("minimal");
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let restore = format!("restore: {{snapshot: etcd.db, version: 3HL4+kqt/J, sha256: {digest}}}");
    let text = workspace.read("cluster.yaml");
    workspace
        .write("cluster.yaml", text.replace("etcd: {count: 1}", &format!("etcd: {{count: 1, {restore}}}")));
    workspace.infra(["render", "stack"]).expect_code(0);
    let named = "INFRA_RESTORE_SNAPSHOT=etcd.db\nINFRA_RESTORE_VERSION=3HL4+kqt/J\n";
    let wanted = format!("{named}INFRA_RESTORE_SHA256={digest}\n");
    for (file, bytes) in crate::support::files_in(&workspace.path("userdata")) {
        let config: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let is_named = embedded_texts(&config).iter().any(|text| text.contains(&wanted));
        assert_eq!(is_named, file == "etcd-0.ign", "{file}");
    }
}

#[test]
fn each_role_holds_the_keys_it_needs_and_no_other() {
    for cluster in clusters() {
        let workspace = workspace(&cluster);
        workspace.infra(["render", "stack"]).expect_code(0);
        let mut keys: Vec<(String, String)> = Vec::new();
        for (name, bytes) in crate::support::files_in(&workspace.path("credentials")) {
            if let Some(identity) = name.strip_suffix("-key.pem") {
                keys.push((identity.to_owned(), String::from_utf8(bytes).unwrap()));
            }
        }
        for (file, bytes) in crate::support::files_in(&workspace.path("userdata")) {
            // An archive holds its files as they are.
            let texts = if file.ends_with(".tar") {
                vec![String::from_utf8_lossy(&bytes).into_owned()]
            } else {
                embedded_texts(&serde_json::from_slice(&bytes).unwrap())
            };
            let mut held: Vec<&str> = keys
                .iter()
                .filter(|(_, pem)| {
                    texts.iter().any(|text| text.contains(pem.trim()) || text.contains(&base64(pem)))
                })
                .map(|(identity, _)| identity.as_str())
                .collect();
            held.sort_unstable();
            let role = file.trim_end_matches(".ign").trim_end_matches(".tar");
            let expected: Vec<&str> = match role {
                "controller" => vec![
                    "admin",
                    "apiserver",
                    "apiserver-kubelet-client",
                    "ca",
                    "controller-bootstrap",
                    "controller-manager",
                    "etcd-client",
                    "front-proxy-client",
                    "scheduler",
                    "service-account",
                ],
                member if member.starts_with("etcd-") => vec![member],
                _ => vec!["worker"],
            };
            assert_eq!(held, expected, "{}: {file}", cluster.display());
        }
    }
}

fn embedded_texts(config: &serde_json::Value) -> Vec<String> {
    let files = config["storage"]["files"].as_array().unwrap();
    let sources = files.iter().filter_map(|file| file["contents"]["source"].as_str());
    let encoded = sources.filter_map(|source| source.strip_prefix("data:;base64,"));
    encoded.map(|encoded| String::from_utf8_lossy(&decode(encoded)).into_owned()).collect()
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}
