//! Deletion, and the garbage collector: what belongs to a Job or a JobSet is deleted before it, after it, or not at all.

use serde_json::{Value, json};

use super::job_set::JOB_SET;
use super::state::State;
use super::store::Key;
use super::termination::is_leaving;

const FOREGROUND: &str = "foregroundDeletion";

/// How the owner of an object is.
enum Owner {
    Alive,
    /// It waits for its dependents.
    Leaving,
    Gone,
}

impl State {
    /// Deletes an object. The policy decides about its dependents; without one the pods of a Job are left alone, as batch/v1 has it.
    pub fn delete(&mut self, key: &Key, policy: Option<&str>) {
        match (key.0, policy) {
            ("pods", _) => self.take_pod(key),
            ("jobs" | "jobsets", Some("Foreground")) => {
                let now = self.store.now();
                if let Some(object) = self.store.get_mut(key).filter(|object| !is_leaving(object)) {
                    object["metadata"]["deletionTimestamp"] = json!(now);
                    object["metadata"]["finalizers"] = json!([FOREGROUND]);
                }
            }
            ("jobs", Some("Background")) => {
                if let Some(job) = self.store.remove(key) {
                    self.pods_of(&job).iter().for_each(|(pod, _)| self.take_pod(pod));
                }
            }
            ("namespaces", _) => {
                self.store.remove(key);
                self.store.empty_namespace(&key.2);
            }
            _ => drop(self.store.remove(key)),
        }
    }

    /// Deletes what has lost its owner or blocks it, and says whether anything was changed.
    pub fn collect_garbage(&mut self) -> bool {
        let mut changed = false;
        for plural in ["services", "jobs", "pods"] {
            for key in self.store.keys(plural) {
                let Some(object) = self.store.get(&key).filter(|object| !is_leaving(object)) else {
                    continue;
                };
                let policy = match self.owner_of(&key, object) {
                    Owner::Alive => continue,
                    Owner::Leaving => "Foreground",
                    // Tests delete Jobs without a request, and find their pods.
                    Owner::Gone if plural == "pods" && !is_of_job_set(object) => continue,
                    Owner::Gone => "Background",
                };
                self.delete(&key, Some(policy));
                changed = true;
            }
        }
        for plural in ["jobs", "jobsets"] {
            for key in self.store.keys(plural) {
                let is_done = self.store.get(&key).is_some_and(|object| {
                    object["metadata"]["finalizers"][0] == FOREGROUND && !self.has_dependents(object)
                });
                if is_done {
                    self.store.remove(&key);
                    changed = true;
                }
            }
        }
        changed
    }

    fn owner_of(&self, key: &Key, object: &Value) -> Owner {
        let reference = &object["metadata"]["ownerReferences"][0];
        let plural = match reference["kind"].as_str() {
            Some("Job") => "jobs",
            Some("JobSet") => "jobsets",
            _ => return Owner::Alive,
        };
        let owner = (plural, key.1.clone(), reference["name"].as_str().unwrap_or_default().to_owned());
        let owner = self.store.get(&owner).filter(|owner| owner["metadata"]["uid"] == reference["uid"]);
        match owner {
            None => Owner::Gone,
            Some(owner) if is_leaving(owner) => Owner::Leaving,
            Some(_) => Owner::Alive,
        }
    }

    fn has_dependents(&self, owner: &Value) -> bool {
        let uid = &owner["metadata"]["uid"];
        let keys = ["services", "jobs", "pods"].into_iter().flat_map(|plural| self.store.keys(plural));
        let mut objects = keys.filter_map(|key| self.store.get(&key).cloned());
        objects.any(|object| object["metadata"]["ownerReferences"][0]["uid"] == *uid)
    }
}

fn is_of_job_set(object: &Value) -> bool {
    !object["metadata"]["labels"][JOB_SET].is_null()
}
