//! Which pools put images and pods on the drives that their machines bring with them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::golden::golden;
use crate::support::Workspace;

const POOLS: &str = "\
- {name: none, instanceType: m5.large}
- {name: some, instanceType: m5d.large, instanceTypes: [m5.large]}
- {name: every, instanceType: m5d.2xlarge, instanceTypes: [m5d.large]}
";

fn unit<'a>(config: &'a Value, name: &str) -> Option<&'a Value> {
    config["systemd"]["units"].as_array().unwrap().iter().find(|unit| unit["name"] == name)
}

fn file(config: &Value, path: &str) -> Option<String> {
    let files = config["storage"]["files"].as_array().unwrap();
    let found = files.iter().find(|file| file["path"] == path)?;
    let encoded = found["contents"]["source"].as_str().unwrap().strip_prefix("data:;base64,").unwrap();
    Some(String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap())
}

fn rendered(workspace: &Workspace, name: &str) -> Value {
    serde_json::from_str(&workspace.read(name)).unwrap()
}

/// The tags by which the autoscaler knows what an empty pool would offer.
fn offers(workspace: &Workspace, pool: &str) -> Vec<(String, String)> {
    let stack = rendered(workspace, &format!("stacks/pool-{pool}.json"));
    let tags = stack["Resources"]["Nodes"]["Properties"]["Tags"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pairs = tags.iter().map(|tag| (text(&tag["Key"]), text(&tag["Value"])));
    pairs.filter(|(key, _)| key.contains("scratch") || key.contains("storage")).collect()
}

#[test]
fn drives_are_used_where_they_are_and_offered_where_every_type_has_them() {
    let workspace = golden("minimal");
    let text = workspace.read("cluster.yaml");
    workspace.write("cluster.yaml", format!("{text}{POOLS}"));
    workspace.infra(["render", "stack"]).expect_code(0);
    let required = "Environment=INFRA_EVERY_TYPE_HAS_DRIVES=yes";
    for (pool, uses, offered) in [("none", false, None), ("some", true, None), ("every", true, Some(41))] {
        let config = rendered(&workspace, &format!("userdata/pool-{pool}.ign"));
        let scratch = unit(&config, "scratch.service").map(|unit| unit["contents"].as_str().unwrap());
        assert_eq!(scratch.is_some(), uses, "{pool}");
        assert_eq!(scratch.is_some_and(|unit| unit.contains(required)), offered.is_some(), "{pool}");
        assert_eq!(file(&config, "/opt/infra/bin/prepare-scratch").is_some(), uses, "{pool}");
        for waiting in ["containerd.service", "remove-bootstrap.path"] {
            let text = unit(&config, waiting).unwrap().to_string();
            assert_eq!(text.contains("20-scratch.conf"), uses, "{pool}: {waiting}");
        }
        // A machine without drives has its certificates in the usual directory: an empty value would end the watch on that.
        assert!(
            !unit(&config, "remove-bootstrap.path").unwrap().to_string().contains("PathExists=\\n"),
            "{pool}"
        );
        let kubelet = file(&config, "/etc/kubernetes/kubelet.yaml").unwrap();
        // A root disk of another size may be in its place.
        let (kept, free) = if offered.is_some() { ("17Gi", "10Gi") } else { ("1Gi", "10%") };
        assert!(kubelet.contains(&format!("\n  ephemeral-storage: {kept}\n")), "{pool}:\n{kubelet}");
        assert!(kubelet.contains(&format!("\n  nodefs.available: {free}\n")), "{pool}:\n{kubelet}");
        let labels = unit(&config, "kubelet.service").unwrap()["contents"].as_str().unwrap();
        let label = offered.map(|gibibytes: u32| format!("infra.internal/scratch-gib={gibibytes}"));
        assert_eq!(labels.contains("scratch-gib"), label.is_some(), "{pool}");
        assert!(label.is_none_or(|label| labels.contains(&label)), "{pool}:\n{labels}");
        let prefix = "k8s.io/cluster-autoscaler/node-template";
        let tags = offered.map_or_else(Vec::new, |gibibytes| {
            vec![
                (format!("{prefix}/label/infra.internal/scratch-gib"), gibibytes.to_string()),
                (format!("{prefix}/resources/ephemeral-storage"), format!("{gibibytes}Gi")),
            ]
        });
        assert_eq!(offers(&workspace, pool), tags, "{pool}");
    }
}
