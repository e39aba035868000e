//! What a test does with the pods of the cluster.

use serde_json::Value;

use super::JobCluster;
use super::controller::{index_of, phase_of, role_of};
use super::state::State;
use super::store::Key;

impl JobCluster {
    /// Names of the pods that are there, of a role.
    pub fn pods(&self, role: &str) -> Vec<String> {
        let state = self.state();
        let keys = state.store.keys("pods").into_iter();
        keys.filter(|key| role_of(state.store.get(key).unwrap()) == role).map(|key| key.2).collect()
    }

    /// The newest pod of a number; waited for.
    #[track_caller]
    pub fn pod(&self, role: &str, index: u32) -> Key {
        self.wait_for(&format!("a pod of {role} {index} that has not ended"), |state| {
            let keys = state.store.keys("pods").into_iter();
            let mut own: Vec<(String, Key)> = keys
                .filter_map(|key| state.store.get(&key).map(|pod| (pod.clone(), key)))
                .filter(|(pod, _)| role_of(pod) == role && index_of(pod).unwrap_or(0) == index)
                .filter(|(pod, _)| !matches!(phase_of(pod), "Succeeded" | "Failed"))
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
        let keys: Vec<Key> = indexes.iter().map(|index| self.pod(role, *index)).collect();
        let mut state = self.state();
        keys.iter().for_each(|key| state.finish(key, code));
        state.reconcile();
    }

    /// Ends a pod that was found, after it has printed.
    pub fn end_pod(&self, key: &Key, code: i64, text: &str) {
        let mut state = self.state();
        state.print(key, text);
        state.finish(key, code);
    }

    /// Gives a pod this status.
    #[track_caller]
    pub fn set_status(&self, role: &str, index: u32, status: Value) {
        self.with_pod(role, index, |state, key| state.store.get_mut(key).unwrap()["status"] = status);
    }

    /// The machine of finished pods is gone; its pods are not.
    pub fn lose_node(&self, node: &str) {
        self.state().lost_nodes.insert(node.to_owned());
    }

    /// Every log that is being followed breaks off.
    pub fn break_logs(&self) {
        self.state().breaks += 1;
        self.shared.changed.notify_all();
    }
}
