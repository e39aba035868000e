//! How Prometheus is found on controllers.

/// The port of 127.0.0.1 that Prometheus answers on.
pub const PROMETHEUS_PORT: u16 = 9090;

/// The directory of a controller's disk that Prometheus keeps its data in.
pub const PROMETHEUS_DIRECTORY: &str = "/var/lib/prometheus";

/// The namespace of what monitors a cluster.
pub const MONITORING_NAMESPACE: &str = "kube-system";

/// The label of Prometheus' pods.
pub const PROMETHEUS_SELECTOR: &str = "k8s-app=prometheus";
