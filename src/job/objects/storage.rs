//! The cluster's file system for one more namespace.

use serde_json::{Value, json};

use crate::job::workload::Workload;
use crate::well_known::{MANAGER, MANAGER_LABEL};

/// Kubernetes wants a size; the file system has none.
const SIZE: &str = "1Pi";
const ACCESS: [&str; 1] = ["ReadWriteMany"];
/// As the volume in `default` is mounted.
const OPTIONS: [&str; 7] =
    ["nfsvers=4.1", "rsize=1048576", "wsize=1048576", "hard", "timeo=600", "retrans=2", "noresvport"];

/// A directory of the file system as a claim of a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSystemClaim<'a> {
    /// The volume, of which there is one for each claim.
    pub volume: &'a str,
    /// The NFS server.
    pub server: &'a str,
    /// The directory, which must exist before it is mounted.
    pub path: &'a str,
    /// The namespace of the claim.
    pub namespace: &'a str,
    /// The claim.
    pub claim: &'a str,
}

impl FileSystemClaim<'_> {
    /// The volume and its claim, reserved for each other.
    #[must_use]
    pub(crate) fn objects(&self) -> Vec<Value> {
        let Self { volume, server, path, namespace, claim } = self;
        let labels = json!({MANAGER_LABEL: MANAGER});
        vec![
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": volume, "labels": labels},
                "spec": {
                    "capacity": {"storage": SIZE},
                    "accessModes": ACCESS,
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": "",
                    "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim},
                    "mountOptions": OPTIONS,
                    "nfs": {"server": server, "path": path},
                },
            }),
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim, "namespace": namespace, "labels": labels},
                "spec": {
                    "accessModes": ACCESS,
                    "storageClassName": "",
                    "volumeName": volume,
                    "resources": {"requests": {"storage": SIZE}},
                },
            }),
        ]
    }
}

/// The whole file system, for a job in a namespace that is no team's.
pub(super) fn volume_pair(workload: &Workload) -> Vec<Value> {
    let Some(pair) = &workload.volume else { return Vec::new() };
    let (claim, namespace) = (&workload.claim, &workload.namespace);
    FileSystemClaim { volume: &pair.volume, server: &pair.server, path: "/", namespace, claim }.objects()
}
