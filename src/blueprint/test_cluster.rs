//! A small cluster for the unit tests of this layer.

use std::path::Path;

use crate::config::{self, Cluster};
use crate::document::Problems;

/// A cluster with `more` keys, as `, etcd: {count: 1}`.
pub(super) fn cluster(more: &str) -> Result<Cluster, Problems> {
    let text = format!(
        "{{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
         kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd'{more}}}"
    );
    Ok(config::validate(Path::new("cluster.yaml"), &text)?.value)
}
