//! Pods that are deleted: each has its grace, and its Job learns how it ended unless the Job itself asked for the end.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller::is_over;
use super::pod_failures::{Consequence, consequence_of};
use super::state::State;
use super::store::Key;

/// How long the end of a pod takes whose process has ended already.
const MOMENT: Duration = Duration::from_millis(20);
/// How a process ends that does nothing about its SIGTERM.
const TERMINATED: i64 = 143;

pub fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

impl State {
    /// Terminates a pod for its controller: how it ends is nobody's concern.
    pub fn take_pod(&mut self, key: &Key) {
        self.terminate(key, false);
    }

    /// Terminates a pod as a user or an eviction does it: its Job sees that it failed.
    pub fn delete_pod(&mut self, key: &Key) {
        self.terminate(key, true);
    }

    fn terminate(&mut self, key: &Key, is_seen: bool) {
        let now = self.store.now();
        let Some(pod) = self.store.get_mut(key).filter(|pod| !is_leaving(pod)) else { return };
        pod["metadata"]["deletionTimestamp"] = json!(now);
        let (uid, has_ended) = (pod["metadata"]["uid"].clone(), is_over(pod));
        let pause = if has_ended { MOMENT } else { self.grace };
        self.stop_program(key);
        let (Some(shared), key) = (self.own.upgrade(), key.clone()) else { return };
        thread::spawn(move || {
            loop {
                thread::sleep(pause);
                let mut state = shared.state.lock().unwrap();
                if state.is_over {
                    return;
                }
                if !state.keeps_pods {
                    state.let_go(&key, &uid, is_seen);
                    shared.changed.notify_all();
                    return;
                }
            }
        });
    }

    /// The end of a pod that was told to go.
    fn let_go(&mut self, key: &Key, uid: &Value, is_seen: bool) {
        let Some(pod) = self.store.get(key).filter(|pod| pod["metadata"]["uid"] == *uid) else { return };
        let owner = pod["metadata"]["ownerReferences"][0].clone();
        if is_seen && !owner.is_null() {
            if !is_over(pod) {
                self.finish(key, TERMINATED);
            }
            self.reconcile();
        }
        self.remember_failure(key, &owner);
        self.store.remove(key);
        self.logs.entry(key.clone()).or_default().ended = true;
        self.reconcile();
    }

    /// A failure counts also when its pod is gone.
    fn remember_failure(&mut self, key: &Key, owner: &Value) {
        let Some(pod) = self.store.get(key).filter(|pod| pod["status"]["phase"] == "Failed") else { return };
        let job = ("jobs", key.1.clone(), owner["name"].as_str().unwrap_or_default().to_owned());
        let Some(job) = self.store.get(&job).filter(|job| job["metadata"]["uid"] == owner["uid"]) else {
            return;
        };
        if consequence_of(job, pod) != Consequence::Ignored {
            let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
            *self.gone_failures.entry(uid).or_default() += 1;
        }
    }
}
