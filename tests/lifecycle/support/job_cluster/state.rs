//! The state of the cluster: its objects, the logs of its pods, and how it behaves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::controller::{Fate, phase_of, role_of};
use super::job_set::RESTART_ATTEMPT;
use super::rights::Client;
use super::store::{Key, Store};

/// How long a pod takes to end, unless a test says otherwise.
const GRACE: Duration = Duration::from_millis(300);

type Fates = Box<dyn Fn(&str, u32, usize) -> Fate + Send>;

pub struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

/// A pod's log: each piece with the moment it was printed.
#[derive(Default)]
pub struct Log {
    pub(super) pieces: Vec<(Instant, String)>,
    pub(super) ended: bool,
}

pub struct State {
    pub(super) store: Store,
    pub(super) logs: BTreeMap<Key, Log>,
    /// Counts up when every log that is followed, every program and every port breaks off.
    pub(super) breaks: usize,
    /// What listens on the ports of pods.
    pub(super) ports: BTreeMap<u16, SocketAddr>,
    /// Nodes whose machines are gone.
    pub(super) lost_nodes: BTreeSet<String>,
    pub(super) fates: Option<Fates>,
    pub(super) requests: Vec<String>,
    /// What happened in the cluster, in order.
    pub(super) history: Vec<String>,
    /// The test has ended.
    pub(super) is_over: bool,
    pub(super) unreachable: bool,
    pub(super) stalled: bool,
    /// Requests that came while all were stalled.
    pub(super) stalled_requests: usize,
    /// After how many bytes the next connections to programs break.
    pub(super) exec_limits: VecDeque<usize>,
    /// What programs got, and gave.
    pub(super) exec_bytes: (u64, u64),
    pub(super) overtaken: Option<String>,
    /// The name of an object that is invalid, and why.
    pub(super) invalid: Option<(String, &'static str)>,
    /// Who has which token.
    pub(super) tokens: BTreeMap<String, Client>,
    /// Every request is answered with this.
    pub(super) refusal: Option<(u16, &'static str)>,
    /// How many requests are still answered by a server that has just started.
    pub(super) early_requests: u32,
    /// The only namespace that the user may see.
    pub(super) own_namespace: Option<&'static str>,
    /// Pods that are deleted do not terminate, as those of a lost machine.
    pub(super) keeps_pods: bool,
    /// How long a pod takes to end.
    pub(super) grace: Duration,
    /// How many pods Jobs have created.
    pub(super) created_pods: u32,
    /// Failed pods that are gone, by the uid of their Job.
    pub(super) gone_failures: BTreeMap<String, u64>,
    /// Whether the API server knows JobSets.
    pub(super) has_job_sets: bool,
    /// Whether the JobSet controller runs.
    pub(super) has_job_set_controller: bool,
    /// A quota: no pods are created, and an event says so.
    pub(super) quota: Option<&'static str>,
    pub(super) runs_programs: bool,
    pub(super) programs: BTreeMap<Key, Arc<Mutex<Child>>>,
    pub(super) claim: PathBuf,
    pub(super) scripts: PathBuf,
    pub(super) own: Weak<Shared>,
}

impl Shared {
    /// A cluster without objects, whose claim and scripts are in these directories.
    pub(super) fn new(claim: PathBuf, scripts: PathBuf) -> Arc<Self> {
        Arc::new_cyclic(|own: &Weak<Shared>| Shared {
            state: Mutex::new(State {
                store: Store::default(),
                logs: BTreeMap::new(),
                breaks: 0,
                ports: BTreeMap::new(),
                lost_nodes: BTreeSet::new(),
                fates: None,
                requests: Vec::new(),
                history: Vec::new(),
                is_over: false,
                unreachable: false,
                stalled: false,
                stalled_requests: 0,
                exec_limits: VecDeque::new(),
                exec_bytes: (0, 0),
                overtaken: None,
                invalid: None,
                tokens: BTreeMap::new(),
                refusal: None,
                early_requests: 0,
                own_namespace: None,
                keeps_pods: false,
                grace: GRACE,
                created_pods: 0,
                gone_failures: BTreeMap::new(),
                has_job_sets: true,
                has_job_set_controller: true,
                quota: None,
                runs_programs: true,
                programs: BTreeMap::new(),
                claim,
                scripts,
                own: own.clone(),
            }),
            changed: Condvar::new(),
        })
    }
}

impl State {
    pub fn print(&mut self, key: &Key, text: &str) {
        self.logs.entry(key.clone()).or_default().pieces.push((Instant::now(), text.to_owned()));
    }

    pub fn has_pod_of(&self, role: &str) -> bool {
        self.store.keys("pods").iter().any(|key| role_of(self.store.get(key).unwrap()) == role)
    }

    /// The name of a pod that begins and ends so.
    pub fn pod_named(&self, begin: &str, end: &str) -> Option<String> {
        let mut names = self.store.keys("pods").into_iter().map(|key| key.2);
        names.find(|name| name.starts_with(begin) && name.ends_with(end))
    }

    /// The attempts of the pods of a role, by the names of the pods.
    pub fn attempts(&self, role: &str) -> Vec<u64> {
        let keys = self.store.keys("pods");
        let pods = keys.iter().filter_map(|key| self.store.get(key)).filter(|pod| role_of(pod) == role);
        let attempt = |pod: &Value| pod["metadata"]["labels"][RESTART_ATTEMPT].as_str()?.parse().ok();
        pods.filter_map(attempt).collect()
    }

    /// The phases of the pods of a role, by the names of the pods.
    pub fn phases(&self, role: &str) -> Vec<String> {
        let keys = self.store.keys("pods");
        let pods = keys.iter().filter_map(|key| self.store.get(key)).filter(|pod| role_of(pod) == role);
        pods.map(|pod| phase_of(pod).to_owned()).collect()
    }

    /// What happened in the cluster, in order.
    pub fn history(&self) -> &[String] {
        &self.history
    }

    pub fn has_job_set(&self, name: &str) -> bool {
        self.store.keys("jobsets").iter().any(|key| key.2 == name)
    }

    pub fn has_job(&self, name: &str) -> bool {
        self.store.keys("jobs").iter().any(|key| key.2 == name)
    }
}
