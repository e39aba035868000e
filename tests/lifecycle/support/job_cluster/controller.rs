//! The Job controller: a pod for each number, another in the place of one that failed, and an end.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::conditions::{Condition, set_condition, true_condition};
use super::indexes::write_indexes;
use super::job_end::{completed, end_of, is_indexed};
use super::job_set::{REPLICATED_JOB, RESTART_ATTEMPT, is_suspended};
use super::job_set_children::text;
use super::pod_failures::{Consequence, consequence_of};
use super::state::State;
use super::store::Key;
use super::termination::is_leaving;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The characters of generated names, in their order.
const NAME_CHARACTERS: &[u8] = b"2456789bcdfghjklmnpqrstvwxz";
/// Somewhere in the middle, so that names look like names.
const FIRST_NAME: usize = 6_213_987;

/// What becomes of a pod as soon as it is there.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It waits for the test.
    Wait,
    /// It runs on a node.
    Run(&'static str),
    /// It runs there, and prints this.
    Print(&'static str, &'static str),
    /// It runs there, prints this and succeeds.
    Succeed(&'static str, &'static str),
    /// It runs there, prints this and ends with a code.
    Fail(&'static str, i64, &'static str),
}

/// How a pod is, in short.
pub fn phase_of(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or("Pending")
}

/// Whether the process of a pod has ended.
pub fn is_over(pod: &Value) -> bool {
    matches!(phase_of(pod), "Succeeded" | "Failed")
}

pub fn index_of(pod: &Value) -> Option<u32> {
    pod["metadata"]["annotations"][INDEX].as_str().and_then(|index| index.parse().ok())
}

/// What a pod or a Job does: as infra labels it, or as the JobSet calls it.
pub fn role_of(object: &Value) -> String {
    let labels = &object["metadata"]["labels"];
    let role = labels["infra.internal/role"].as_str().or(labels[REPLICATED_JOB].as_str());
    role.unwrap_or_default().to_owned()
}

fn has_ended(job: &Value) -> bool {
    ["Complete", "Failed"].into_iter().any(|end| true_condition(job, end).is_some())
}

impl State {
    /// Brings everything as far as it can get now.
    pub fn reconcile(&mut self) {
        self.bind_claims();
        loop {
            let mut changed = self.collect_garbage();
            changed |= self.advance_job_sets();
            for key in self.store.keys("jobs") {
                // A pod whose fate is to end at once may make the next one due.
                while self.advance(&key) {
                    changed = true;
                }
            }
            if !changed {
                return;
            }
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

    /// One step of a Job; whether anything was changed by it.
    fn advance(&mut self, key: &Key) -> bool {
        let Some(job) = self.store.get(key).cloned() else { return false };
        if has_ended(&job) {
            return false;
        }
        let pods = self.pods_of(&job);
        let done = completed(&job, &pods);
        let failed = self.failures(&job, &pods);
        let mut changed = self.write_status(key, &pods, &done, failed);
        if let Some((condition, reason, message)) = end_of(&job, &pods, &done, failed) {
            let target = if condition == "Failed" { "FailureTarget" } else { "SuccessCriteriaMet" };
            changed |= self.set_condition(key, &Condition::holds(target, &reason, &message));
            changed |= self.take_pods(&pods);
            // What still terminates delays the end.
            if pods.iter().all(|(_, pod)| is_over(pod)) {
                self.history.push(format!("job {} {condition}", key.2));
                changed |= self.set_condition(key, &Condition::holds(condition, &reason, &message));
            }
            return changed;
        }
        if is_suspended(&job) {
            changed |= self.take_pods(&pods);
            let suspended = Condition::holds("Suspended", "JobSuspended", "Job suspended");
            return self.set_condition(key, &suspended) || changed;
        }
        changed |= self.set_condition(key, &Condition::fails("Suspended", "JobResumed", "Job resumed"));
        if is_leaving(&job) {
            return changed;
        }
        self.create_pods(key, &job, &pods, &done) || changed
    }

    fn write_status(&mut self, key: &Key, pods: &[(Key, Value)], done: &BTreeSet<u32>, failed: u64) -> bool {
        let count =
            |is_wanted: &dyn Fn(&Value) -> bool| pods.iter().filter(|(_, pod)| is_wanted(pod)).count();
        let is_active = |pod: &Value| !is_over(pod) && !is_leaving(pod);
        let active = count(&is_active);
        let ready = count(&|pod| is_active(pod) && is_ready(pod));
        let terminating = count(&|pod| !is_over(pod) && is_leaving(pod));
        self.store.update(key, |job| {
            let is_indexed = is_indexed(job);
            let status = &mut job["status"];
            status["succeeded"] = json!(done.len());
            status["active"] = json!(active);
            status["ready"] = json!(ready);
            status["terminating"] = json!(terminating);
            if failed > 0 {
                status["failed"] = json!(failed);
            }
            if is_indexed {
                status["completedIndexes"] = json!(write_indexes(done));
            }
        })
    }

    /// The failures that count towards the backoff limit.
    fn failures(&self, job: &Value, pods: &[(Key, Value)]) -> u64 {
        let counts =
            |pod: &Value| phase_of(pod) == "Failed" && consequence_of(job, pod) != Consequence::Ignored;
        let gone = self.gone_failures.get(text(&job["metadata"]["uid"])).copied().unwrap_or(0);
        gone + pods.iter().filter(|(_, pod)| counts(pod)).count() as u64
    }

    fn set_condition(&mut self, key: &Key, condition: &Condition<'_>) -> bool {
        let Some(mut job) = self.store.get(key).cloned() else { return false };
        let changed = set_condition(&mut job, condition, || self.store.now());
        if changed {
            self.store.update(key, |object| *object = job);
        }
        changed
    }

    fn take_pods(&mut self, pods: &[(Key, Value)]) -> bool {
        let running = pods.iter().filter(|(_, pod)| !is_over(pod) && !is_leaving(pod));
        let running: Vec<&Key> = running.map(|(key, _)| key).collect();
        running.iter().for_each(|key| self.take_pod(key));
        !running.is_empty()
    }

    fn create_pods(&mut self, key: &Key, job: &Value, pods: &[(Key, Value)], done: &BTreeSet<u32>) -> bool {
        let only_failed = job["spec"]["podReplacementPolicy"] != "TerminatingOrFailed";
        let is_taken = |pod: &Value| !is_over(pod) && (only_failed || !is_leaving(pod));
        let of_index = |index: u32| {
            pods.iter()
                .map(|(_, pod)| pod)
                .filter(move |pod| !is_indexed(job) || index_of(pod) == Some(index))
        };
        let wanted = job["spec"]["completions"].as_u64().unwrap_or(1) as u32;
        let mut missing: Vec<u32> =
            (0..wanted).filter(|index| !done.contains(index) && !of_index(*index).any(is_taken)).collect();
        if missing.is_empty() {
            return false;
        }
        if let Some(message) = self.quota {
            self.warn(key, "FailedCreate", message);
            return false;
        }
        let earlier = job["metadata"]["labels"][RESTART_ATTEMPT].as_str();
        // The pods of a group begin together, whatever becomes of the first.
        if earlier.is_none() {
            missing.truncate(1);
        }
        let earlier = earlier.and_then(|attempt| attempt.parse().ok()).unwrap_or(0);
        let created: Vec<(Key, usize)> = missing
            .into_iter()
            .map(|index| {
                let attempt = earlier + of_index(index).count();
                (self.create_pod(key, job, is_indexed(job).then_some(index)), attempt)
            })
            .collect();
        created.iter().for_each(|(pod, attempt)| self.begin(pod, *attempt));
        true
    }

    fn create_pod(&mut self, key: &Key, job: &Value, index: Option<u32>) -> Key {
        self.created_pods += 1;
        let suffix = generated_name(self.created_pods as usize);
        let name = match index {
            Some(index) => format!("{}-{index}-{suffix}", key.2),
            None => format!("{}-{suffix}", key.2),
        };
        let mut pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": job["spec"]["template"]["metadata"],
                             "spec": job["spec"]["template"]["spec"], "status": {"phase": "Pending"}});
        let metadata = &mut pod["metadata"];
        metadata["name"] = json!(name);
        metadata["namespace"] = json!(key.1);
        metadata["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": key.2, "uid": job["metadata"]["uid"],
                    "controller": true, "blockOwnerDeletion": true}]);
        for prefix in ["", "batch.kubernetes.io/"] {
            metadata["labels"][format!("{prefix}job-name")] = json!(key.2);
            metadata["labels"][format!("{prefix}controller-uid")] = job["metadata"]["uid"].clone();
        }
        if let Some(index) = index {
            metadata["annotations"][INDEX] = json!(index.to_string());
            metadata["labels"][INDEX] = json!(index.to_string());
            pod["spec"]["hostname"] = json!(format!("{}-{index}", key.2));
        }
        self.history.push(format!("pod {} {}", role_of(&pod), index.unwrap_or_default()));
        self.store.put("pods", pod);
        ("pods", key.1.clone(), name)
    }

    /// What a pod does first is up to the test.
    fn begin(&mut self, key: &Key, attempt: usize) {
        let pod = self.store.get(key).expect("there is no such pod");
        let (role, index) = (role_of(pod), index_of(pod).unwrap_or(0));
        let fate = self.fates.as_ref().map_or(Fate::Wait, |fate| fate(&role, index, attempt));
        match fate {
            Fate::Wait => self.start_program(key),
            Fate::Run(node) => self.run(key, node),
            Fate::Print(node, text) => {
                self.run(key, node);
                self.print(key, text);
            }
            Fate::Succeed(node, text) => {
                self.run(key, node);
                self.print(key, text);
                self.finish(key, 0);
            }
            Fate::Fail(node, code, text) => {
                self.run(key, node);
                self.print(key, text);
                self.finish(key, code);
            }
        }
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

    /// A Job fails for a reason of its own, as soon as its pods have terminated.
    pub fn fail_job(&mut self, key: &Key, reason: &str, message: &str) {
        self.set_condition(key, &Condition::holds("FailureTarget", reason, message));
        self.reconcile();
    }

    pub fn run(&mut self, key: &Key, node: &str) {
        if let Some(pod) = self.store.get_mut(key) {
            pod["spec"]["nodeName"] = json!(node);
            pod["status"] = json!({"phase": "Running", "podIP": "10.2.1.7"});
        }
    }

    /// Ends the process of a pod. Why the pod was disrupted is still known.
    pub fn finish(&mut self, key: &Key, code: i64) {
        let now = self.store.now();
        let Some(pod) = self.store.get_mut(key) else { return };
        let role = role_of(pod);
        let (phase, reason) = if code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
        let ended = json!({"exitCode": code, "reason": reason, "finishedAt": now});
        let container = pod["spec"]["containers"][0]["name"].as_str().unwrap_or(&role).to_owned();
        let conditions = pod["status"]["conditions"].take();
        pod["status"] = json!({"phase": phase, "containerStatuses": [{"name": container, "state": {"terminated": ended}}]});
        let is_disruption = |condition: &&Value| condition["type"] == "DisruptionTarget";
        if let Some(disruption) = conditions.as_array().and_then(|all| all.iter().find(is_disruption)) {
            pod["status"]["conditions"] = json!([disruption]);
        }
        self.history.push(format!("{role} {} {phase}", index_of(self.store.get(key).unwrap()).unwrap_or(0)));
        self.logs.entry(key.clone()).or_default().ended = true;
    }
}

/// A pod that runs is ready unless a test says otherwise.
fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_refuted = |condition: &Value| condition["type"] == "Ready" && condition["status"] != "True";
    phase_of(pod) == "Running" && !conditions.iter().any(is_refuted)
}

/// Five characters, other ones for every number; later names are greater.
fn generated_name(number: usize) -> String {
    let base = NAME_CHARACTERS.len();
    let mut left = FIRST_NAME + number;
    let mut name = [0; 5];
    for character in name.iter_mut().rev() {
        *character = NAME_CHARACTERS[left % base];
        left /= base;
    }
    String::from_utf8_lossy(&name).into_owned()
}
