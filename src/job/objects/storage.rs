//! The cluster's file system for one more namespace.

use serde_json::{Value, json};

use crate::job::names::{MANAGER, MANAGER_LABEL};
use crate::job::workload::Workload;

/// Kubernetes wants a size; the file system has none.
const SIZE: &str = "1Pi";
const ACCESS: [&str; 1] = ["ReadWriteMany"];
/// As the volume in `default` is mounted.
const OPTIONS: [&str; 7] =
    ["nfsvers=4.1", "rsize=1048576", "wsize=1048576", "hard", "timeo=600", "retrans=2", "noresvport"];

/// The volume and its claim, reserved for each other.
pub(super) fn volume_pair(workload: &Workload) -> Vec<Value> {
    let Some(pair) = &workload.volume else { return Vec::new() };
    let (claim, namespace) = (&workload.claim, &workload.namespace);
    let labels = json!({MANAGER_LABEL: MANAGER});
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": pair.volume, "labels": labels},
            "spec": {
                "capacity": {"storage": SIZE},
                "accessModes": ACCESS,
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim},
                "mountOptions": OPTIONS,
                "nfs": {"server": pair.server, "path": "/"},
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": namespace, "labels": labels},
            "spec": {
                "accessModes": ACCESS,
                "storageClassName": "",
                "volumeName": pair.volume,
                "resources": {"requests": {"storage": SIZE}},
            },
        }),
    ]
}
