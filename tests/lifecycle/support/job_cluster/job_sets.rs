//! What a test does with JobSets and their controller.

use std::time::Duration;

use serde_json::{Value, json};

use super::JobCluster;
use super::job_set::RESOURCE;
use super::job_set_children::text;

impl JobCluster {
    /// Whether the API server knows JobSets. Without their definition there are none, and nothing that belonged to one.
    pub fn install_job_sets(&self, is_installed: bool) {
        let mut state = self.state();
        state.has_job_sets = is_installed;
        if is_installed {
            let established =
                json!([{"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}]);
            let names = json!({"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"});
            let definition = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
                                    "metadata": {"name": RESOURCE},
                                    "spec": {"group": "jobset.x-k8s.io", "scope": "Namespaced", "names": names},
                                    "status": {"conditions": established}});
            state.store.put("customresourcedefinitions", definition);
        } else {
            state.store.remove(&("customresourcedefinitions", String::new(), RESOURCE.to_owned()));
            for key in state.store.keys("jobsets") {
                state.delete(&key, Some("Background"));
            }
        }
        state.reconcile();
        self.shared.changed.notify_all();
    }

    /// Stops or starts the JobSet controller. Jobs, deletions and the API server do not depend on it.
    pub fn run_job_set_controller(&self, runs: bool) {
        let mut state = self.state();
        state.has_job_set_controller = runs;
        state.reconcile();
        self.shared.changed.notify_all();
    }

    /// How long pods take to end from now on.
    pub fn set_grace(&self, grace: Duration) {
        self.state().grace = grace;
    }

    /// How often a JobSet was restarted, and how often of these count.
    #[track_caller]
    pub fn restarts(&self, name: &str) -> (u64, u64) {
        let job_set = self.object("jobsets", "default", name).expect("there is no such JobSet");
        let number = |field: &str| job_set["status"][field].as_u64().unwrap_or(0);
        (number("restarts"), number("restartsCountTowardsMax"))
    }

    /// The attempts of the pods of a role that are there.
    pub fn attempts(&self, role: &str) -> Vec<u64> {
        self.state().attempts(role)
    }

    /// Waits until an attempt has this number of pods, and no other pod is left.
    #[track_caller]
    pub fn wait_for_attempt(&self, role: &str, attempt: u64, pods: usize) {
        self.wait_for(&format!("{pods} pods of {role} in attempt {attempt}"), |state| {
            (state.attempts(role) == vec![attempt; pods]).then_some(())
        });
    }

    /// Waits for the end of a JobSet, and returns the condition that says how it ended.
    #[track_caller]
    pub fn wait_for_end(&self, name: &str) -> Value {
        self.wait_for(&format!("the end of JobSet {name}"), |state| {
            let job_set = state.store.get(&("jobsets", "default".to_owned(), name.to_owned()))?;
            let end = text(&job_set["status"]["terminalState"]);
            let conditions = job_set["status"]["conditions"].as_array()?;
            conditions.iter().find(|condition| !end.is_empty() && condition["type"] == end).cloned()
        })
    }

    /// An object of someone else where a job needs the name.
    pub fn put_foreign(&self, plural: &'static str, name: &str) {
        let metadata = json!({"name": name, "namespace": "default"});
        self.put(plural, json!({"metadata": metadata, "spec": {"suspend": true}}));
    }
}
