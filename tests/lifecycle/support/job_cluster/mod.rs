//! The stand-in for a cluster that runs jobs: an API server with objects of its own, the controllers of Jobs and JobSets, the garbage
//! collector and a kubelet. Clients with a certificate of the cluster apply, read and delete; a test decides how pods end.

mod conditions;
pub mod controller;
mod events;
mod exec;
mod failure_rules;
mod garbage;
mod indexes;
mod job_end;
mod job_set;
mod job_set_children;
mod job_set_controller;
mod job_sets;
mod kubelet;
mod pages;
mod pod_failures;
mod pods;
mod port_forward;
pub mod rights;
mod state;
mod store;
mod termination;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use self::controller::Fate;
use self::state::{Shared, State};
use self::store::Key;
use super::api_connections::{serve, tls_with_tokens};
use super::http::Server;
use super::kubernetes::merge;

/// How long a test waits for something that a stand-in or infra does.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct JobCluster {
    server: Server,
    shared: Arc<Shared>,
    files: TempDir,
}

impl JobCluster {
    /// A cluster with a namespace `default` and a claim `efs` that is bound, and without nodes.
    pub fn start(credentials: &Path) -> Self {
        let files = tempfile::tempdir().unwrap();
        let (claim, scripts) = (files.path().join("claim"), files.path().join("scripts"));
        std::fs::create_dir(&claim).unwrap();
        let shared = Shared::new(claim, scripts);
        let (config, for_connections) = (Arc::new(tls_with_tokens(credentials)), Arc::clone(&shared));
        let server = Server::start(move |stream| {
            let is_unreachable = || for_connections.state.lock().unwrap().unreachable;
            let served = serve(stream, &config, is_unreachable, |request, stream| {
                let client = rights::Client::of(
                    stream.conn.peer_certificates(),
                    request,
                    &for_connections.state.lock().unwrap(),
                );
                pages::answer(request, client.as_ref(), &for_connections, stream)
            });
            // An error is a client without the right certificate, or one that went away.
            drop(served);
        });
        let cluster = Self { server, shared, files };
        cluster.put("namespaces", json!({"metadata": {"name": "default"}}));
        cluster.put_claim("default", "efs", "Bound");
        cluster.install_job_sets(true);
        cluster
    }

    pub fn address(&self) -> String {
        self.server.address().to_string()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        // A test that failed with the state in its hands still clears up.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory that stands for the claim.
    pub fn claim(&self) -> PathBuf {
        self.files.path().join("claim")
    }

    /// A token by which someone may do everything.
    pub fn put_token(&self, token: &str, user: &str) {
        self.state().tokens.insert(token.to_owned(), rights::Client::administrator(user));
    }

    /// A token of a user who may do what roles allow.
    pub fn put_user_token(&self, token: &str, user: &str) {
        let client = rights::Client { user: user.to_owned(), groups: Vec::new() };
        self.state().tokens.insert(token.to_owned(), client);
    }

    /// Creates an object as another user would.
    pub fn put(&self, plural: &'static str, object: Value) {
        self.state().store.put(plural, object);
    }

    pub fn put_claim(&self, namespace: &str, name: &str, phase: &str) {
        self.put(
            "persistentvolumeclaims",
            json!({"metadata": {"name": name, "namespace": namespace}, "status": {"phase": phase}}),
        );
    }

    /// Installs Kueue, with these queues of the namespace default.
    pub fn install_kueue(&self, queues: &[&str]) {
        self.put("customresourcedefinitions", json!({"metadata": {"name": pages::LOCAL_QUEUES}}));
        for queue in queues {
            self.put_queue("default", queue);
        }
    }

    pub fn put_queue(&self, namespace: &str, queue: &str) {
        self.put("localqueues", json!({"metadata": {"name": queue, "namespace": namespace}}));
    }

    /// What Kueue says of a JobSet of the namespace default that it does not admit.
    pub fn put_workload(&self, job_set: &str, message: &str) {
        let owners = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": job_set}]);
        let metadata =
            json!({"name": format!("jobset-{job_set}"), "namespace": "default", "ownerReferences": owners});
        let condition =
            json!({"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message});
        self.put("workloads", json!({"metadata": metadata, "status": {"conditions": [condition]}}));
    }

    pub fn put_node(&self, name: &str, pool: &str, gpus: u32) {
        let taints =
            if gpus > 0 { json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]) } else { json!([]) };
        self.put(
            "nodes",
            json!({"metadata": {"name": name, "labels": {"infra.internal/pool": pool}},
                   "spec": {"taints": taints},
                   "status": {"allocatable": {"nvidia.com/gpu": gpus.to_string()},
                              "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}),
        );
    }

    /// Changes an object without a request.
    #[track_caller]
    pub fn change(&self, plural: &'static str, namespace: &str, name: &str, patch: Value) {
        let mut state = self.state();
        let key = (plural, namespace.to_owned(), name.to_owned());
        merge(state.store.get_mut(&key).expect("there is no such object"), &patch);
        state.reconcile();
        self.shared.changed.notify_all();
    }

    pub fn object(&self, plural: &'static str, namespace: &str, name: &str) -> Option<Value> {
        self.state().store.get(&(plural, namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Deletes an object without a request, and nothing that belongs to it but what belongs to a JobSet.
    pub fn take(&self, plural: &'static str, namespace: &str, name: &str) {
        self.state().store.remove(&(plural, namespace.to_owned(), name.to_owned()));
    }

    /// Says how pods fare from now on, by role, number and attempt. Those that wait run their program, or do nothing.
    pub fn decide(&self, fates: impl Fn(&str, u32, usize) -> Fate + Send + 'static) {
        self.state().fates = Some(Box::new(fates));
    }

    /// No real programs are run.
    pub fn run_no_programs(&self) {
        self.state().runs_programs = false;
    }

    pub fn run_programs(&self) {
        self.state().runs_programs = true;
    }

    /// Someone else creates a Job or a JobSet of that name just before it is applied.
    pub fn overtake(&self, name: &str) {
        self.state().overtaken = Some(name.to_owned());
    }

    /// An object of that name is refused, as one is that Kubernetes finds invalid.
    pub fn refuse_as_invalid(&self, name: &str, why: &'static str) {
        self.state().invalid = Some((name.to_owned(), why));
    }

    /// Requests are heard and not answered.
    pub fn stall(&self, stalls: bool) {
        self.state().stalled = stalls;
        self.shared.changed.notify_all();
    }

    /// Returns as soon as a request is not answered.
    pub fn wait_for_stalled(&self) {
        let state = self.state();
        let waiting = |state: &mut State| state.stalled_requests == 0;
        let (_state, result) = self.shared.changed.wait_timeout_while(state, PATIENCE, waiting).unwrap();
        assert!(!result.timed_out(), "nobody asked");
    }

    /// A Job fails for a reason of its own, and its pods go.
    pub fn end_job(&self, name: &str, reason: &str, message: &str) {
        let key = ("jobs", "default".to_owned(), name.to_owned());
        self.state().fail_job(&key, reason, message);
        self.shared.changed.notify_all();
    }

    pub fn set_unreachable(&self, unreachable: bool) {
        self.state().unreachable = unreachable;
    }

    pub fn refuse_with(&self, refusal: Option<(u16, &'static str)>) {
        self.state().refusal = refusal;
    }

    /// This many requests meet an API server that has just started, and asks for them again a second later.
    pub fn refuse_early_requests(&self, requests: u32) {
        self.state().early_requests = requests;
    }

    pub fn early_requests(&self) -> u32 {
        self.state().early_requests
    }

    /// The user may see nodes and this namespace, and nothing else.
    pub fn limit_to_namespace(&self, namespace: Option<&'static str>) {
        self.state().own_namespace = namespace;
    }

    pub fn keep_pods(&self, keeps: bool) {
        self.state().keeps_pods = keeps;
    }

    /// Refuses to make pods, and says why in an event.
    pub fn set_quota(&self, message: Option<&'static str>) {
        let mut state = self.state();
        state.quota = message;
        state.reconcile();
    }

    /// A warning about an object, as the kubelet writes it.
    #[track_caller]
    pub fn warn(&self, key: &Key, reason: &str, message: &str) {
        self.state().warn(key, reason, message);
    }

    /// What was asked, as `PATCH /apis/batch/v1/namespaces/default/jobs/train`, without queries.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// The requests that change something, without the machinery of paths: `PATCH jobs/train`.
    pub fn changes(&self) -> Vec<String> {
        let short = |request: String| {
            let (method, path) = request.split_once(' ').unwrap();
            let parts: Vec<&str> = path.rsplitn(3, '/').collect();
            format!("{method} {}/{}", parts[1], parts[0])
        };
        self.requests().into_iter().filter(|request| !request.starts_with("GET ")).map(short).collect()
    }

    pub fn history(&self) -> Vec<String> {
        self.state().history.clone()
    }

    /// Every object, every log of a pod, and every request without its body.
    pub fn everything(&self) -> Vec<String> {
        let state = self.state();
        let objects = state.store.objects().map(Value::to_string);
        let logs = state.logs.values().flat_map(|log| log.pieces.iter().map(|(_, text)| text.clone()));
        objects
            .chain(logs)
            .chain(state.requests.iter().cloned())
            .chain(state.history.iter().cloned())
            .collect()
    }

    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            if Instant::now() > deadline {
                let history = state.history.clone();
                drop(state);
                panic!("waited in vain for {what}: {history:#?}");
            }
            state = self.shared.changed.wait_timeout(state, Duration::from_millis(100)).unwrap().0;
        }
    }

    /// What listens on this port of every pod, at an address of this machine.
    pub fn serve_port(&self, port: u16, address: SocketAddr) {
        self.state().ports.insert(port, address);
    }

    /// Breaks the next connections to programs in pods, each after this many bytes.
    pub fn break_exec_after(&self, bytes: &[usize]) {
        self.state().exec_limits = bytes.iter().copied().collect();
    }

    /// How many bytes programs in pods have got since they were last taken.
    pub fn exec_bytes_sent(&self) -> u64 {
        self.state().exec_bytes.0
    }

    /// How many bytes programs in pods have got and given since this was last asked.
    pub fn take_exec_bytes(&self) -> (u64, u64) {
        std::mem::take(&mut self.state().exec_bytes)
    }
}

impl Drop for JobCluster {
    fn drop(&mut self) {
        let mut state = self.state();
        state.is_over = true;
        state.stalled = false;
        for child in state.programs.values() {
            if let Ok(mut child) = child.try_lock() {
                let _ = child.kill();
            }
        }
    }
}
