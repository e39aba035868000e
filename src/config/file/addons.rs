//! Parts of the cluster that can be left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::At;

/// Parts of the cluster that can be left out.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct AddonsFile {
    /// Grows and shrinks pools between `minCount` and `maxCount`. `kubectl delete -n kube-system deployment/cluster-autoscaler` deletes it.
    pub cluster_autoscaler: bool,
    /// Answers `kubectl top` and horizontal autoscalers. `kubectl delete -n kube-system apiservice/v1beta1.metrics.k8s.io daemonset/metrics-server service/metrics-server` deletes it.
    pub metrics_server: bool,
    /// Runs JobSets: groups of Jobs that start, restart and end together. `kubectl delete -n kube-system daemonset/jobset` deletes it; `kubectl delete crd/jobsets.jobset.x-k8s.io` deletes every JobSet with its pods.
    pub job_set: bool,
    /// Whether Prometheus measures the cluster and raises alerts, which `infra dashboard` shows, or where it sends what it measures. A change replaces etcd members and controllers. `kubectl delete -n kube-system daemonset/prometheus daemonset/kube-state-metrics daemonset/node-exporter daemonset/dcgm-exporter` deletes it.
    pub monitoring: At<MonitoringFile>,
}

/// Monitoring: true, false, or where it sends what it measures.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(untagged)]
pub(crate) enum MonitoringFile {
    /// Whether there is any.
    Wanted(bool),
    /// With these settings.
    Settings(MonitoringSettings),
}

/// Where monitoring sends what it measures.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MonitoringSettings {
    /// The URL that Prometheus writes everything to as well (remote write); controllers must reach it without a login.
    pub remote_write: String,
}
