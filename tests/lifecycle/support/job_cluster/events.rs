//! Events about objects, as their controllers and the kubelet write them.

use serde_json::{Value, json};

use super::state::State;
use super::store::Key;

impl State {
    /// A warning of the Job controller or of the kubelet.
    pub fn warn(&mut self, key: &Key, reason: &str, message: &str) {
        let now = self.store.now();
        self.put_event(
            key,
            json!({"type": "Warning", "reason": reason, "message": message, "lastTimestamp": now}),
        );
    }

    /// An event of the JobSet controller, which has another field for its time.
    pub fn record(&mut self, key: &Key, kind: &str, reason: &str, message: &str) {
        let now = self.store.now().replace('Z', ".000000Z");
        self.put_event(
            key,
            json!({"type": kind, "reason": reason, "message": message, "eventTime": now,
                   "lastTimestamp": null, "action": "Reconciling"}),
        );
    }

    /// A warning of the JobSet controller that is counted when it is repeated.
    pub fn record_once(&mut self, key: &Key, reason: &str, message: &str) {
        let uid = self.store.get(key).expect("there is no such object")["metadata"]["uid"].clone();
        let is_same = |event: &Value| {
            event["involvedObject"]["uid"] == uid && event["reason"] == reason && event["message"] == message
        };
        let keys = self.store.keys("events");
        if !keys.iter().filter_map(|key| self.store.get(key)).any(is_same) {
            self.record(key, "Warning", reason, message);
        }
    }

    fn put_event(&mut self, key: &Key, mut event: Value) {
        let object = self.store.get(key).expect("there is no such object");
        event["involvedObject"] =
            json!({"kind": object["kind"], "name": key.2, "uid": object["metadata"]["uid"]});
        let name = format!("{}.{}", key.2, self.store.keys("events").len());
        event["metadata"] = json!({"name": name, "namespace": key.1});
        self.store.put("events", event);
    }
}
