//! What a test does with the pods of the cluster.

use serde_json::{Value, json};

use super::JobCluster;
use super::controller::{index_of, is_over, role_of};
use super::state::State;
use super::store::Key;
use super::termination::is_leaving;

impl JobCluster {
    /// Names of the pods that are there, of a role.
    pub fn pods(&self, role: &str) -> Vec<String> {
        let state = self.state();
        let keys = state.store.keys("pods").into_iter();
        keys.filter(|key| role_of(state.store.get(key).unwrap()) == role).map(|key| key.2).collect()
    }

    /// The newest pod of a number that has neither ended nor was told to; waited for.
    #[track_caller]
    pub fn pod(&self, role: &str, index: u32) -> Key {
        self.wait_for(&format!("a pod of {role} {index} that has not ended"), |state| {
            let keys = state.store.keys("pods").into_iter();
            let mut own: Vec<(String, Key)> = keys
                .filter_map(|key| state.store.get(&key).map(|pod| (pod.clone(), key)))
                .filter(|(pod, _)| role_of(pod) == role && index_of(pod).unwrap_or(0) == index)
                .filter(|(pod, _)| !is_over(pod) && !is_leaving(pod))
                .map(|(pod, key)| (pod["metadata"]["creationTimestamp"].to_string(), key))
                .collect();
            own.sort();
            own.pop().map(|(_, key)| key)
        })
    }

    fn with_pod(&self, role: &str, index: u32, act: impl FnOnce(&mut State, &Key)) {
        let key = self.pod(role, index);
        let mut state = self.state();
        act(&mut state, &key);
        state.reconcile();
        self.shared.changed.notify_all();
    }

    #[track_caller]
    pub fn run(&self, role: &str, index: u32, node: &str) {
        self.with_pod(role, index, |state, key| state.run(key, node));
    }

    #[track_caller]
    pub fn print(&self, role: &str, index: u32, text: &str) {
        self.with_pod(role, index, |state, key| state.print(key, text));
    }

    /// Ends a pod with a code.
    #[track_caller]
    pub fn finish(&self, role: &str, index: u32, code: i64) {
        self.with_pod(role, index, |state, key| state.finish(key, code));
    }

    /// Ends pods one after the other before the next request is answered.
    #[track_caller]
    pub fn finish_together(&self, role: &str, indexes: &[u32], code: i64) {
        let all: Vec<(&str, u32, i64)> = indexes.iter().map(|index| (role, *index, code)).collect();
        self.finish_at_once(&all);
    }

    /// Ends pods, each with its code, before any controller sees the end of the first.
    #[track_caller]
    pub fn finish_at_once(&self, ends: &[(&str, u32, i64)]) {
        let keys: Vec<(Key, i64)> =
            ends.iter().map(|(role, index, code)| (self.pod(role, *index), *code)).collect();
        let mut state = self.state();
        keys.iter().for_each(|(key, code)| state.finish(key, *code));
        state.reconcile();
        self.shared.changed.notify_all();
    }

    /// Ends a pod that was found, after it has printed; also one that was told to terminate.
    pub fn end_pod(&self, key: &Key, code: i64, text: &str) {
        let mut state = self.state();
        state.print(key, text);
        state.finish(key, code);
        state.reconcile();
        self.shared.changed.notify_all();
    }

    /// Gives a pod this status.
    #[track_caller]
    pub fn set_status(&self, role: &str, index: u32, status: Value) {
        self.with_pod(role, index, |state, key| state.store.get_mut(key).unwrap()["status"] = status);
    }

    /// Evicts a pod, as a drain or a spot notice does it: it terminates, and says why.
    #[track_caller]
    pub fn evict(&self, role: &str, index: u32) -> Key {
        let key = self.pod(role, index);
        let mut state = self.state();
        let disruption = disruption("EvictionByEvictionAPI", "Eviction API: evicting");
        state.store.get_mut(&key).unwrap()["status"]["conditions"] = disruption;
        state.delete_pod(&key);
        state.reconcile();
        self.shared.changed.notify_all();
        key
    }

    /// A machine is lost and its node deleted: the pods that ran on it fail without a word, and are deleted.
    pub fn lose_machine(&self, node: &str) {
        let mut state = self.state();
        state.lost_nodes.insert(node.to_owned());
        state.store.remove(&("nodes", String::new(), node.to_owned()));
        let is_on_it = |key: &Key| state.store.get(key).is_some_and(|pod| pod["spec"]["nodeName"] == node);
        let pods: Vec<Key> = state.store.keys("pods").into_iter().filter(is_on_it).collect();
        for key in &pods {
            let pod = state.store.get_mut(key).unwrap();
            if !is_over(pod) {
                let conditions = disruption("DeletionByPodGC", "PodGC: node no longer exists");
                pod["status"] = json!({"phase": "Failed", "conditions": conditions});
            }
        }
        // The Job controller sees all of them before they are gone.
        state.reconcile();
        pods.iter().for_each(|key| state.delete_pod(key));
        self.shared.changed.notify_all();
    }

    /// The machine of finished pods is gone; its pods are not.
    pub fn lose_node(&self, node: &str) {
        self.state().lost_nodes.insert(node.to_owned());
    }

    /// Every log that is being followed breaks off, and so does every program and every port.
    pub fn break_logs(&self) {
        self.state().breaks += 1;
        self.shared.changed.notify_all();
    }
}

fn disruption(reason: &str, message: &str) -> Value {
    json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}])
}
