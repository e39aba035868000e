//! The state of the cluster: its objects, the logs of its pods, and how it behaves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::controller::{Fate, role_of};
use super::store::{Key, Store};

/// How long a pod takes to end.
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
    /// Counts up when every log that is followed breaks off.
    pub(super) breaks: usize,
    /// Nodes whose machines are gone.
    pub(super) lost_nodes: BTreeSet<String>,
    pub(super) fates: Option<Fates>,
    pub(super) requests: Vec<String>,
    /// What happened in the cluster, in order.
    pub(super) history: Vec<String>,
    pub(super) unreachable: bool,
    pub(super) stalled: bool,
    /// Requests that came while all were stalled.
    pub(super) stalled_requests: usize,
    pub(super) longest_page: Option<usize>,
    pub(super) overtaken: Option<String>,
    /// Every request is answered with this.
    pub(super) refusal: Option<(u16, &'static str)>,
    /// Pods that are deleted do not terminate, as those of a lost machine.
    pub(super) keeps_pods: bool,
    /// A quota: no pods are created, and an event says so.
    pub(super) quota: Option<&'static str>,
    pub(super) runs_programs: bool,
    pub(super) programs: BTreeMap<Key, Arc<Mutex<Child>>>,
    pub(super) ports: BTreeMap<Key, u16>,
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
                lost_nodes: BTreeSet::new(),
                fates: None,
                requests: Vec::new(),
                history: Vec::new(),
                unreachable: false,
                stalled: false,
                stalled_requests: 0,
                longest_page: None,
                overtaken: None,
                refusal: None,
                keeps_pods: false,
                quota: None,
                runs_programs: true,
                programs: BTreeMap::new(),
                ports: BTreeMap::new(),
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

    pub fn has_job(&self, name: &str) -> bool {
        self.store.keys("jobs").iter().any(|key| key.2 == name)
    }

    /// Tells a pod to go. It takes a moment.
    pub fn take_pod(&mut self, key: &Key) {
        let now = self.store.now();
        let Some(pod) = self.store.get_mut(key) else { return };
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        pod["metadata"]["deletionTimestamp"] = json!(now);
        self.stop_program(key);
        let (Some(shared), key) = (self.own.upgrade(), key.clone()) else { return };
        thread::spawn(move || {
            loop {
                thread::sleep(GRACE);
                let mut state = shared.state.lock().unwrap();
                if !state.keeps_pods || Arc::strong_count(&shared) == 1 {
                    state.store.remove(&key);
                    state.logs.entry(key).or_default().ended = true;
                    shared.changed.notify_all();
                    return;
                }
            }
        });
    }
}
