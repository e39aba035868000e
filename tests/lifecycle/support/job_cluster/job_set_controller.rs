//! The JobSet controller: Jobs for each attempt, a restart or an end when one of them fails, an end when enough of them succeed.

use serde_json::{Value, json};

use super::conditions::{Condition, set_condition, true_condition};
use super::failure_rules::{Decision, decide};
use super::job_set::{REPLICATED_JOB, RESTART_ATTEMPT, is_suspended, replicated_jobs};
use super::job_set_children::{
    has_hostnames, job, job_name, replicas_of, restarts_of, resume, service, subdomain_of, text,
};
use super::state::State;
use super::store::Key;
use super::termination::is_leaving;

/// The name by which a JobSet is left to this controller.
const CONTROLLER: &str = "jobset.sigs.k8s.io/jobset-controller";

/// The Jobs of a JobSet: those of an earlier attempt, and those of this one by how they are.
#[derive(Default)]
struct Children {
    previous: Vec<Value>,
    active: Vec<Value>,
    successful: Vec<Value>,
    failed: Vec<Value>,
}

impl Children {
    fn has(&self, name: &str) -> bool {
        let lists = [&self.previous, &self.active, &self.successful, &self.failed];
        lists.into_iter().flatten().any(|job| job["metadata"]["name"] == name)
    }
}

fn key_of(plural: &'static str, object: &Value) -> Key {
    (plural, text(&object["metadata"]["namespace"]).to_owned(), text(&object["metadata"]["name"]).to_owned())
}

fn is_of(job: &Value, replicated_job: &Value) -> bool {
    job["metadata"]["labels"][REPLICATED_JOB] == replicated_job["name"]
}

impl State {
    /// Brings every JobSet as far as it can get now, and says whether anything was changed.
    pub fn advance_job_sets(&mut self) -> bool {
        let mut changed = false;
        if self.has_job_set_controller {
            for key in self.store.keys("jobsets") {
                while self.advance_job_set(&key) {
                    changed = true;
                }
            }
        }
        changed
    }

    fn advance_job_set(&mut self, key: &Key) -> bool {
        let Some(job_set) = self.store.get(key).cloned() else { return false };
        let manager = &job_set["spec"]["managedBy"];
        if is_leaving(&job_set) || (!manager.is_null() && manager != CONTROLLER) {
            return false;
        }
        let children = self.children_of(&job_set);
        let mut next = job_set.clone();
        next["status"]["replicatedJobsStatus"] = replicated_jobs_status(&job_set, &children);
        let acted = if has_ended(&job_set) {
            self.delete_jobs(&children.active)
        } else {
            let deleted = self.delete_jobs(&children.previous);
            match self.advance_attempt(key, &mut next, &children) {
                Ok(acted) => deleted || acted,
                // As long as a Job cannot be created, the status stays as it is.
                Err(message) => {
                    self.record_once(key, "JobCreationFailed", &message);
                    return deleted;
                }
            }
        };
        if next["status"] == job_set["status"] {
            return acted;
        }
        next["status"]["restarts"] = json!(restarts_of(&next));
        self.store.update(key, |object| object["status"] = next["status"].clone());
        true
    }

    fn advance_attempt(&mut self, key: &Key, next: &mut Value, children: &Children) -> Result<bool, String> {
        if !is_suspended(next) && are_all_ready(next) {
            self.note(key, next, &Condition::fails("RestartingJobSet", "JobsReady", "all jobs are ready"));
        }
        if !children.failed.is_empty() {
            self.apply_failure_policy(key, next, &children.failed);
            return Ok(false);
        }
        if !children.successful.is_empty() && is_successful(next, &children.successful) {
            let (reason, message) = ("AllJobsCompleted", "jobset completed successfully");
            self.end_job_set(key, next, &Condition::holds("Completed", reason, message));
            return Ok(false);
        }
        let mut acted = self.create_service(next);
        acted |= self.create_jobs(next, children)?;
        if is_suspended(next) {
            acted |= self.suspend_jobs(children);
            let message = "jobset is suspended";
            self.note(key, next, &Condition::holds("Suspended", "SuspendedJobs", message));
            self.note(key, next, &Condition::fails("RestartingJobSet", "JobSetSuspended", message));
        } else {
            acted |= self.resume_jobs(next, children);
            self.note(key, next, &Condition::fails("Suspended", "ResumeJobs", "jobset is resumed"));
        }
        Ok(acted)
    }

    fn children_of(&self, job_set: &Value) -> Children {
        let mut children = Children::default();
        let uid = &job_set["metadata"]["uid"];
        for job in self.store.keys("jobs").iter().filter_map(|key| self.store.get(key)) {
            if job["metadata"]["ownerReferences"][0]["uid"] != *uid {
                continue;
            }
            let attempt = text(&job["metadata"]["labels"][RESTART_ATTEMPT]).parse::<u64>().unwrap_or(0);
            let list = if attempt < restarts_of(job_set) {
                &mut children.previous
            } else if true_condition(job, "Failed").is_some() {
                &mut children.failed
            } else if true_condition(job, "Complete").is_some() {
                &mut children.successful
            } else {
                &mut children.active
            };
            list.push(job.clone());
        }
        children
    }

    fn delete_jobs(&mut self, jobs: &[Value]) -> bool {
        let mut acted = false;
        for job in jobs.iter().filter(|job| !is_leaving(job)) {
            self.delete(&key_of("jobs", job), Some("Foreground"));
            acted = true;
        }
        acted
    }

    /// A Service of that name that exists already is taken, whoever created it.
    fn create_service(&mut self, job_set: &Value) -> bool {
        let namespace = text(&job_set["metadata"]["namespace"]).to_owned();
        let key = ("services", namespace, subdomain_of(job_set).to_owned());
        if !has_hostnames(job_set) || self.store.get(&key).is_some() {
            return false;
        }
        self.store.put("services", service(job_set));
        true
    }

    fn create_jobs(&mut self, job_set: &Value, children: &Children) -> Result<bool, String> {
        let strategy = &job_set["spec"]["failurePolicy"]["restartStrategy"];
        if strategy == "BlockingRecreate" && !children.previous.is_empty() {
            return Ok(false);
        }
        let mut acted = false;
        for replicated_job in replicated_jobs(job_set) {
            let mut problems = Vec::new();
            for number in 0..replicas_of(replicated_job) {
                if children.has(&job_name(job_set, replicated_job, number)) {
                    continue;
                }
                let job = job(job_set, replicated_job, number);
                let key = key_of("jobs", &job);
                match self.problem_of(&key, &job) {
                    Some(problem) => {
                        problems.push(format!("job \"{}\" creation failed with error: {problem}", key.2));
                    }
                    None => {
                        self.store.put("jobs", job);
                        acted = true;
                    }
                }
            }
            if !problems.is_empty() {
                return Err(problems.join("\n"));
            }
        }
        Ok(acted)
    }

    /// Why the API server does not create a Job.
    fn problem_of(&self, key: &Key, job: &Value) -> Option<String> {
        let policy = &job["spec"]["template"]["spec"]["restartPolicy"];
        if self.store.get(key).is_some() {
            Some(format!("jobs.batch \"{}\" already exists", key.2))
        } else if policy != "Never" && policy != "OnFailure" {
            let message =
                "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"";
            Some(format!("Job.batch \"{}\" is invalid: {message}", key.2))
        } else {
            None
        }
    }

    fn suspend_jobs(&mut self, children: &Children) -> bool {
        let mut acted = false;
        for job in children.active.iter().filter(|job| !is_suspended(job)) {
            acted |= self.store.update(&key_of("jobs", job), |job| job["spec"]["suspend"] = json!(true));
        }
        acted
    }

    fn resume_jobs(&mut self, job_set: &Value, children: &Children) -> bool {
        let mut acted = false;
        for job in children.active.iter().filter(|job| is_suspended(job)) {
            let own = replicated_jobs(job_set).iter().find(|replicated_job| is_of(job, replicated_job));
            let Some(replicated_job) = own else { continue };
            acted |= self.store.update(&key_of("jobs", job), |job| resume(job, replicated_job));
        }
        acted
    }

    fn apply_failure_policy(&mut self, key: &Key, next: &mut Value, failed: &[Value]) {
        let policy = next["spec"]["failurePolicy"].clone();
        let Decision { rule, job } = decide(&policy["rules"], failed);
        let with_job =
            |message: &str| format!("{message} (first failed job: {})", text(&job["metadata"]["name"]));
        if policy.is_null() {
            let message = with_job("jobset failed due to one or more job failures");
            return self.end_job_set(key, next, &Condition::holds("Failed", "FailedJobs", &message));
        }
        let action = rule.map_or("RestartJobSet", |rule| text(&rule["action"]));
        let counted = next["status"]["restartsCountTowardsMax"].as_u64().unwrap_or(0);
        if action == "FailJobSet" {
            let message = with_job("applying FailJobSet failure policy action");
            let failed = Condition::holds("Failed", "FailJobSetFailurePolicyAction", &message);
            return self.end_job_set(key, next, &failed);
        }
        let is_counted = action == "RestartJobSet";
        if is_counted && counted >= policy["maxRestarts"].as_u64().unwrap_or(0) {
            let message = with_job("jobset failed due to reaching max number of restarts");
            return self.end_job_set(key, next, &Condition::holds("Failed", "ReachedMaxRestarts", &message));
        }
        next["status"]["restarts"] = json!(restarts_of(next) + 1);
        if is_counted {
            next["status"]["restartsCountTowardsMax"] = json!(counted + 1);
        }
        let reason = rule.map_or_else(
            || "DefaultFailurePolicy".to_owned(),
            |rule| format!("FailurePolicy_{}", text(&rule["name"])),
        );
        let message = with_job(&format!("applying {action} failure policy action"));
        self.note(key, next, &Condition::holds("RestartingJobSet", &reason, &message));
        self.record(key, "Warning", &format!("{action}FailurePolicyAction"), &message);
        self.history.push(format!("jobset {} restarts: {reason}", key.2));
    }

    fn end_job_set(&mut self, key: &Key, next: &mut Value, end: &Condition<'_>) {
        self.history.push(format!("jobset {} {}", key.2, end.kind));
        self.note(key, next, end);
        let (reason, message) = match end.kind {
            "Failed" => ("JobSetFailed", "jobset failed"),
            _ => ("JobSetCompleted", end.message),
        };
        self.note(key, next, &Condition::fails("RestartingJobSet", reason, message));
        next["status"]["terminalState"] = json!(end.kind);
    }

    /// Sets a condition of a JobSet, and says so in an event.
    fn note(&mut self, key: &Key, next: &mut Value, condition: &Condition<'_>) {
        if set_condition(next, condition, || self.store.now()) {
            let is_bad = matches!(condition.kind, "Failed" | "RestartingJobSet") && condition.is_true;
            let kind = if is_bad { "Warning" } else { "Normal" };
            self.record(key, kind, condition.reason, condition.message);
        }
    }
}

fn has_ended(job_set: &Value) -> bool {
    ["Completed", "Failed"].into_iter().any(|end| true_condition(job_set, end).is_some())
}

/// How many Jobs of each replicated Job are how, in the controller's order: the last name first.
fn replicated_jobs_status(job_set: &Value, children: &Children) -> Value {
    let mut rows: Vec<Value> = replicated_jobs(job_set)
        .iter()
        .map(|replicated_job| {
            let count = |jobs: &[Value], is_wanted: &dyn Fn(&Value) -> bool| {
                jobs.iter().filter(|job| is_of(job, replicated_job) && is_wanted(job)).count()
            };
            let all = |_: &Value| true;
            let is_active = |job: &Value| job["status"]["active"].as_u64().unwrap_or(0) > 0;
            json!({"name": replicated_job["name"],
                   "ready": count(&children.active, &is_ready),
                   "succeeded": count(&children.successful, &all),
                   "failed": count(&children.failed, &all),
                   "active": count(&children.active, &is_active),
                   "suspended": count(&children.active, &is_suspended)})
        })
        .collect();
    rows.sort_by(|one, other| text(&other["name"]).cmp(text(&one["name"])));
    json!(rows)
}

fn is_ready(job: &Value) -> bool {
    let number = |pointer: &str| job.pointer(pointer).and_then(Value::as_u64);
    let parallelism = number("/spec/parallelism").unwrap_or(1);
    let wanted = number("/spec/completions").map_or(parallelism, |completions| completions.min(parallelism));
    number("/status/ready").unwrap_or(0) + number("/status/succeeded").unwrap_or(0) >= wanted
}

fn are_all_ready(job_set: &Value) -> bool {
    let rows = job_set["status"]["replicatedJobsStatus"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap_or(0)).sum::<u64>();
    let wanted: u64 = replicated_jobs(job_set).iter().map(replicas_of).sum();
    wanted == count("ready") + count("succeeded")
}

/// Whether the success policy is met by the Jobs that completed.
fn is_successful(job_set: &Value, successful: &[Value]) -> bool {
    let policy = &job_set["spec"]["successPolicy"];
    let targets = policy["targetReplicatedJobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_target = |name: &Value| targets.is_empty() || targets.contains(name);
    let wanted: u64 = if policy["operator"] == "Any" {
        1
    } else {
        replicated_jobs(job_set).iter().filter(|job| is_target(&job["name"])).map(replicas_of).sum()
    };
    let done = successful.iter().filter(|job| is_target(&job["metadata"]["labels"][REPLICATED_JOB]));
    done.count() as u64 >= wanted
}
