//! The stand-in for a cluster with JobSets, compared with what the real controllers of JobSet v0.12.0 and Kubernetes v1.36 did.

mod deleting;
mod ending;
mod objects;
mod restarting;
mod suspending;

use serde_json::{Value, json};

use crate::support::api_connections::ask_server;
use crate::support::http::Message;
use crate::support::job_cluster::JobCluster;
use crate::support::job_cluster::controller::Fate;
use crate::support::workspace::Workspace;

const COLLECTION: &str = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A cluster, and its administrator.
struct Cluster {
    workspace: Workspace,
    jobs: JobCluster,
}

impl Cluster {
    /// Pods wait for the test.
    fn new() -> Self {
        let workspace = Workspace::of_golden("ha-gpu-efs");
        let jobs = JobCluster::start(&workspace.credentials());
        Self { workspace, jobs }
    }

    /// A JobSet `a` with three workers and two parameter servers, all running.
    fn with_running() -> Self {
        let cluster = Self::new();
        cluster.jobs.decide(|_, _, _| Fate::Run("node-1"));
        cluster.apply(&group("a"));
        cluster
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, kind: &str, body: &str) -> (u16, String) {
        let request = Message::request(method, path, &[("Content-Type", kind)], body.as_bytes());
        let address = self.jobs.address();
        let answer = ask_server(&address, &self.workspace.credentials(), true, &request).unwrap();
        (answer.status(), answer.text())
    }

    #[track_caller]
    fn get(&self, path: &str) -> (u16, Value) {
        let (status, text) = self.ask("GET", path, "application/json", "");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// An object that exists.
    #[track_caller]
    fn read(&self, collection: &str, name: &str) -> Value {
        let (status, object) = self.get(&format!("{collection}/{name}"));
        assert_eq!(status, 200, "{object}");
        object
    }

    #[track_caller]
    fn try_to_apply(&self, object: &Value) -> (u16, Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{COLLECTION}/{name}?fieldManager=infra&force=true");
        let (status, text) = self.ask("PATCH", &path, "application/apply-patch+yaml", &object.to_string());
        (status, serde_json::from_str(&text).unwrap())
    }

    #[track_caller]
    fn apply(&self, object: &Value) -> Value {
        let (status, object) = self.try_to_apply(object);
        assert!(matches!(status, 200 | 201), "{status}: {object}");
        object
    }

    #[track_caller]
    fn merge(&self, path: &str, change: &Value) -> (u16, Value) {
        let (status, text) = self.ask("PATCH", path, "application/merge-patch+json", &change.to_string());
        (status, serde_json::from_str(&text).unwrap())
    }

    #[track_caller]
    fn delete(&self, path: &str, policy: &str) -> (u16, Value) {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        let (status, text) = self.ask("DELETE", path, "application/json", &options.to_string());
        (status, serde_json::from_str(&text).unwrap())
    }

    /// A condition of an object as `True PodFailurePolicy: why`; empty if there is none.
    #[track_caller]
    fn condition(&self, collection: &str, name: &str, kind: &str) -> String {
        condition(&self.read(collection, name), kind)
    }
}

fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
    found.map_or_else(String::new, |found| {
        format!("{} {}: {}", text(found, "status"), text(found, "reason"), text(found, "message"))
    })
}

/// Three workers of which the first decides, and two parameter servers; three restarts count.
fn group(name: &str) -> Value {
    let mut workers = replicated_job("worker", 3);
    workers["template"]["spec"]["successPolicy"] = json!({"rules": [{"succeededIndexes": "0"}]});
    json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
           "metadata": {"name": name, "namespace": "default", "labels": {"team": "vision"}},
           "spec": {
               "network": {"enableDNSHostnames": true, "publishNotReadyAddresses": true, "subdomain": name},
               "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
               "successPolicy": {"operator": "All", "targetReplicatedJobs": ["worker"]},
               "failurePolicy": {"maxRestarts": 3, "restartStrategy": "BlockingRecreate", "rules": [
                   {"name": "wrongUse", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"],
                    "onJobFailureMessagePatterns": ["failed with exit code 64 matching FailJob rule"]},
                   {"name": "machineLost", "action": "RestartJobSetAndIgnoreMaxRestarts",
                    "onJobFailureReasons": ["PodFailurePolicy"],
                    "onJobFailureMessagePatterns": ["has condition DisruptionTarget matching FailJob rule"]},
                   {"name": "tookTooLong", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
                   {"name": "failed", "action": "RestartJobSet"}]},
               "replicatedJobs": [workers, replicated_job("ps", 2)]}})
}

fn replicated_job(name: &str, pods: u32) -> Value {
    let attempt = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']";
    let variable = json!({"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": attempt}}});
    let container = json!({"name": "main", "image": "registry.example.com/train:1", "env": [variable]});
    json!({"name": name, "replicas": 1, "groupName": "default", "template": {"spec": {
        "parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [64]}},
            {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}})
}
