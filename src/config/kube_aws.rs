//! What replaces the keys of kube-aws, for users with an old cluster.yaml.

use serde_json::{Map, Value};

const RENAMED: [(&str, &str); 23] = [
    ("amiId", "chosen by `infra lock`, and kept in infra.lock"),
    ("availabilityZone", "availabilityZones, a list"),
    ("controller", "controllers"),
    ("controllerCount", "controllers.count"),
    ("controllerInstanceType", "controllers.instanceType"),
    ("createRecordSet", "dns.manage"),
    ("elasticFileSystemId", "storage.efs.fileSystemId"),
    ("etcdCount", "etcd.count"),
    ("etcdDataVolumeSize", "etcd.volumeGiB"),
    ("etcdInstanceType", "etcd.instanceType"),
    ("hostedZoneId", "dns.hostedZoneId"),
    ("kubernetesVersion", "kubernetes.version"),
    ("podCIDR", "kubernetes.podCIDR"),
    ("releaseChannel", "os.channel"),
    ("serviceCIDR", "kubernetes.serviceCIDR"),
    ("sharedPersistentVolume", "storage.efs"),
    ("stackTags", "tags"),
    ("subnets", "made from network.vpcCIDR, or network.existing.subnets"),
    ("vpcCIDR", "network.vpcCIDR"),
    ("vpcId", "network.existing.vpcId"),
    ("worker", "pools, a list"),
    ("workerCount", "pools[].count"),
    ("workerInstanceType", "pools[].instanceType"),
];

/// Each old key, and the key that replaces it.
pub(super) fn renamed_keys() -> Map<String, Value> {
    RENAMED.into_iter().map(|(old, new)| (old.to_owned(), Value::from(new))).collect()
}
