//! The Job controller: a pod for each number, another in the place of one that failed, and an end.

use serde_json::{Value, json};

use super::state::State;
use super::store::Key;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// What a Job's failure policy calls hopeless in the jobs that infra makes.
const HOPELESS: i64 = 64;

/// What becomes of a pod as soon as it is there.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It waits for the test.
    Wait,
    /// It runs on a node.
    Run(&'static str),
    /// It runs there, prints this and succeeds.
    Succeed(&'static str, &'static str),
    /// It runs there, prints this and ends with a code.
    Fail(&'static str, i64, &'static str),
}

/// How a pod is, in short.
pub fn phase_of(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or("Pending")
}

fn is_active(pod: &Value) -> bool {
    !matches!(phase_of(pod), "Succeeded" | "Failed")
}

pub fn index_of(pod: &Value) -> Option<u32> {
    pod["metadata"]["annotations"][INDEX].as_str().and_then(|index| index.parse().ok())
}

pub fn role_of(object: &Value) -> String {
    object["metadata"]["labels"]["infra.internal/role"].as_str().unwrap_or_default().to_owned()
}

fn has_ended(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    let ends = |condition: &Value| condition["type"] == "Complete" || condition["type"] == "Failed";
    conditions.is_some_and(|conditions| conditions.iter().any(ends))
}

impl State {
    /// Brings every Job as far as it can get now.
    pub fn reconcile(&mut self) {
        self.bind_claims();
        for key in self.store.keys("jobs") {
            // A pod whose fate is to end at once may make the next one due.
            while self.advance(&key) {}
        }
    }

    /// A claim and the volume that is kept for it find each other, unless the volume remembers another.
    fn bind_claims(&mut self) {
        for key in self.store.keys("persistentvolumeclaims") {
            let Some(claim) = self.store.get(&key) else { continue };
            let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default().to_owned();
            let uid = claim["metadata"]["uid"].clone();
            let place = ("persistentvolumes", String::new(), volume);
            let Some(volume) = self.store.get_mut(&place) else { continue };
            let known = &volume["spec"]["claimRef"]["uid"];
            if known.is_null() || *known == uid {
                volume["spec"]["claimRef"]["uid"] = uid;
                volume["status"]["phase"] = json!("Bound");
                self.store.get_mut(&key).unwrap()["status"]["phase"] = json!("Bound");
            }
        }
    }

    fn advance(&mut self, key: &Key) -> bool {
        let Some(job) = self.store.get(key).cloned() else { return false };
        if job["spec"]["suspend"] == true || has_ended(&job) {
            return false;
        }
        let pods = self.pods_of(&job);
        let failed = pods.iter().filter(|(_, pod)| phase_of(pod) == "Failed");
        let counted: Vec<&Value> = failed.map(|(_, pod)| pod).filter(|pod| !was_disrupted(pod)).collect();
        if let Some(pod) = counted.iter().find(|pod| exit_code(pod) == Some(HOPELESS)) {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let message = format!(
                "Container {} for pod {}/{name} failed with exit code 64 matching FailJob rule at index 1",
                role_of(pod),
                key.1
            );
            self.end(key, "Failed", "PodFailurePolicy", &message);
            return false;
        }
        if counted.len() as u64 > job["spec"]["backoffLimit"].as_u64().unwrap_or(6) {
            self.end(key, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
            return false;
        }
        let is_indexed = job["spec"]["completionMode"] == "Indexed";
        let wanted = job["spec"]["completions"].as_u64().unwrap_or(1) as u32;
        let of_index = |index: u32| {
            pods.iter().map(|(_, pod)| pod).filter(move |pod| !is_indexed || index_of(pod) == Some(index))
        };
        // A pod that succeeded counts also when it is gone.
        let before = job["status"]["completedIndexes"].as_str().unwrap_or_default().to_owned();
        let was_done = |index: u32| before.split(',').any(|part| part == index.to_string());
        let done: Vec<String> = (0..wanted)
            .filter(|index| was_done(*index) || of_index(*index).any(|pod| phase_of(pod) == "Succeeded"))
            .map(|index| index.to_string())
            .collect();
        let status = &mut self.store.get_mut(key).unwrap()["status"];
        status["succeeded"] = json!(done.len());
        status["active"] = json!(pods.iter().filter(|(_, pod)| is_active(pod)).count());
        if is_indexed {
            status["completedIndexes"] = json!(done.join(","));
        }
        if done.len() as u32 == wanted {
            self.end(key, "Complete", "CompletionsReached", "Reached expected number of succeeded pods");
            return false;
        }
        let missing =
            (0..wanted).find(|index| !done.contains(&index.to_string()) && !of_index(*index).any(is_active));
        let Some(index) = missing else { return false };
        if let Some(message) = self.quota {
            self.warn(key, "FailedCreate", message);
            return false;
        }
        self.make_pod(key, &job, is_indexed.then_some(index), of_index(index).count());
        true
    }

    fn make_pod(&mut self, key: &Key, job: &Value, index: Option<u32>, attempt: usize) {
        let number = self.store.keys("pods").len();
        let name = match index {
            Some(index) => format!("{}-{index}-{number:05}", key.2),
            None => format!("{}-{number:05}", key.2),
        };
        let mut pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": job["spec"]["template"]["metadata"],
                             "spec": job["spec"]["template"]["spec"], "status": {"phase": "Pending"}});
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = json!(key.1);
        pod["metadata"]["ownerReferences"] =
            json!([{"kind": "Job", "name": key.2, "uid": job["metadata"]["uid"], "controller": true}]);
        if let Some(index) = index {
            pod["metadata"]["annotations"][INDEX] = json!(index.to_string());
        }
        let role = role_of(&pod);
        self.history.push(format!("pod {role} {}", index.unwrap_or_default()));
        self.store.put("pods", pod);
        let key = ("pods", key.1.clone(), name);
        let fate = self.fates.as_ref().map_or(Fate::Wait, |fate| fate(&role, index.unwrap_or(0), attempt));
        match fate {
            Fate::Wait => self.start_program(&key),
            Fate::Run(node) => self.run(&key, node),
            Fate::Succeed(node, text) => {
                self.run(&key, node);
                self.print(&key, text);
                self.finish(&key, 0);
            }
            Fate::Fail(node, code, text) => {
                self.run(&key, node);
                self.print(&key, text);
                self.finish(&key, code);
            }
        }
    }

    /// Makes an event about an object.
    pub fn warn(&mut self, key: &Key, reason: &str, message: &str) {
        let object = self.store.get(key).expect("there is no such object").clone();
        let now = self.store.now();
        let name = format!("{}.{}", key.2, self.store.keys("events").len());
        self.store.put(
            "events",
            json!({"metadata": {"name": name, "namespace": key.1}, "type": "Warning", "reason": reason,
                   "message": message, "lastTimestamp": now,
                   "involvedObject": {"kind": object["kind"], "name": key.2, "uid": object["metadata"]["uid"]}}),
        );
    }

    /// The pods that a Job owns, oldest first.
    pub fn pods_of(&self, job: &Value) -> Vec<(Key, Value)> {
        let uid = &job["metadata"]["uid"];
        let keys = self.store.keys("pods").into_iter();
        let mut pods: Vec<(Key, Value)> = keys
            .filter_map(|key| self.store.get(&key).cloned().map(|pod| (key, pod)))
            .filter(|(_, pod)| pod["metadata"]["ownerReferences"][0]["uid"] == *uid)
            .collect();
        pods.sort_by_key(|(_, pod)| pod["metadata"]["creationTimestamp"].as_str().map(str::to_owned));
        pods
    }

    /// A Job that failed takes the pods with it that still run.
    pub fn end(&mut self, key: &Key, condition: &str, reason: &str, message: &str) {
        self.history.push(format!("job {} {condition}", key.2));
        let now = self.store.now();
        let job = self.store.get_mut(key).unwrap();
        job["status"]["conditions"] = json!([{"type": condition, "status": "True", "reason": reason,
                                              "message": message, "lastTransitionTime": now}]);
        let job = job.clone();
        for (pod, _) in self.pods_of(&job).into_iter().filter(|(_, pod)| is_active(pod)) {
            self.take_pod(&pod);
        }
    }

    pub fn run(&mut self, key: &Key, node: &str) {
        if let Some(pod) = self.store.get_mut(key) {
            pod["spec"]["nodeName"] = json!(node);
            pod["status"] = json!({"phase": "Running"});
        }
    }

    pub fn finish(&mut self, key: &Key, code: i64) {
        let now = self.store.now();
        let Some(pod) = self.store.get_mut(key) else { return };
        let role = role_of(pod);
        let (phase, reason) = if code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
        let ended = json!({"exitCode": code, "reason": reason, "finishedAt": now});
        pod["status"] =
            json!({"phase": phase, "containerStatuses": [{"name": role, "state": {"terminated": ended}}]});
        self.history.push(format!("{role} {} {phase}", index_of(self.store.get(key).unwrap()).unwrap_or(0)));
        self.logs.entry(key.clone()).or_default().ended = true;
    }
}

fn was_disrupted(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| conditions.iter().any(|one| one["type"] == "DisruptionTarget"))
}

fn exit_code(pod: &Value) -> Option<i64> {
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64()
}
