//! The stand-in for a cluster's API server, on loopback, with the cluster's credentials. A client with a certificate of that cluster finds
//! the nodes, pods and claims that a test has put there, or a node for each machine in EC2.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use super::api_connections::{serve, tls};
use super::http::{Message, Server, field};
use super::machines::{KUBELET_VERSION, Machines};

/// The API server, gone when it is dropped.
pub struct KubernetesApi {
    server: Server,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    ready: bool,
    unreachable: bool,
    refusal: Option<u16>,
    nodes: Vec<Value>,
    machines: Option<Machines>,
    gpus: BTreeMap<String, u32>,
    /// What was patched, by node or its machine: nodes of machines are created for every request, and deleted with the machines.
    patches: BTreeMap<String, Vec<Value>>,
    pods: Vec<Value>,
    blocked_evictions: usize,
    services: Vec<Value>,
    secrets: Vec<Value>,
    guarded_secret: Option<String>,
    claims: BTreeMap<String, String>,
    requests: Vec<String>,
}

impl KubernetesApi {
    /// A server that is ready and empty, with the certificate of the cluster's own.
    pub fn start(credentials: &Path) -> Self {
        let config = Arc::new(tls(credentials));
        let state = Arc::new(Mutex::new(State { ready: true, ..State::default() }));
        let shared = Arc::clone(&state);
        let server = Server::start(move |stream| {
            let is_unreachable = || shared.lock().unwrap().unreachable;
            let served = serve(stream, &config, is_unreachable, |request, stream| {
                let asked = format!("{} {}", request.method(), request.target());
                shared.lock().unwrap().requests.push(asked);
                answer(request, &shared).write(stream)
            });
            // An error is a client without the right certificate, or one that went away.
            drop(served);
        });
        Self { server, state }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn set_ready(&self, ready: bool) {
        self.state().ready = ready;
    }

    /// Connections end before anything is said.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.state().unreachable = unreachable;
    }

    /// Everything is answered with 401 or 403; or with 429 or 503, but for the question whether the server is ready.
    pub fn refuse(&self, status: Option<u16>) {
        self.state().refusal = status;
    }

    pub fn set_nodes(&self, nodes: Vec<Value>) {
        self.state().nodes = nodes;
    }

    pub fn set_pods(&self, pods: Vec<Value>) {
        self.state().pods = pods;
    }

    /// The pods that are left.
    pub fn pods(&self) -> Vec<Value> {
        self.state().pods.clone()
    }

    pub fn set_services(&self, services: Vec<Value>) {
        self.state().services = services;
    }

    /// The services that are left.
    pub fn services(&self) -> Vec<Value> {
        self.state().services.clone()
    }

    /// Secrets of these namespaces and names.
    pub fn set_secrets(&self, names: &[(&str, &str)]) {
        let secret =
            |(namespace, name): &(&str, &str)| json!({"metadata": {"namespace": namespace, "name": name}});
        self.state().secrets = names.iter().map(secret).collect();
    }

    /// The Secret of this name cannot be changed, as if a webhook of the team's refused it.
    pub fn guard_secret(&self, name: Option<&str>) {
        self.state().guarded_secret = name.map(str::to_owned);
    }

    /// This many evictions are refused, as a disruption budget does it.
    pub fn block_evictions(&self, count: usize) {
        self.state().blocked_evictions = count;
    }

    /// A claim of that name, in whatever namespace it is looked for, and its phase.
    pub fn claim(&self, name: &str, phase: &str) {
        self.state().claims.insert(name.to_owned(), phase.to_owned());
    }

    /// From now on, every running controller and pool machine of a cluster is a ready node, besides those set.
    pub fn follow_machines(&self, url: &str, account: &str, region: &str, cluster: &str) {
        self.state().machines = Some(Machines {
            url: url.to_owned(),
            account: account.to_owned(),
            region: region.to_owned(),
            cluster: cluster.to_owned(),
        });
    }

    /// How many GPUs each machine of a pool has.
    pub fn gpus(&self, pool: &str, count: u32) {
        self.state().gpus.insert(pool.to_owned(), count);
    }

    /// Changes a node as a PATCH would, also one of a machine.
    pub fn change_node(&self, name: &str, patch: Value) {
        let node = self.nodes().into_iter().find(|node| node["metadata"]["name"] == name);
        let identity = node.map_or_else(|| name.to_owned(), |node| identity(&node));
        self.state().patches.entry(identity).or_default().push(patch);
    }

    /// The nodes as they would be answered now.
    pub fn nodes(&self) -> Vec<Value> {
        nodes(&self.state).unwrap()
    }

    /// What was asked, as `GET /api/v1/pods?limit=500`.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }
}

fn answer(request: &Message, state: &Mutex<State>) -> Message {
    let refusal = state.lock().unwrap().refusal;
    let path: Vec<&str> = request.path().split('/').filter(|part| !part.is_empty()).collect();
    let (status, body) = match (request.method(), path.as_slice()) {
        _ if refusal == Some(401) => failure(401, "Unauthorized", "Unauthorized"),
        _ if refusal == Some(403) => {
            let message = format!("forbidden: User \"admin\" cannot {} {}", request.method(), request.path());
            failure(403, "Forbidden", &message)
        }
        ("GET", ["readyz"]) => {
            let (status, text) = if state.lock().unwrap().ready {
                (200, "ok")
            } else {
                (500, "[+]ping ok\n[-]etcd failed: reason withheld\n")
            };
            return Message::answer(
                status,
                &[("Content-Type", "text/plain; charset=utf-8")],
                text.as_bytes(),
            );
        }
        _ if refusal == Some(429) => failure(429, "TooManyRequests", "too many requests, try again later"),
        _ if refusal == Some(503) => failure(503, "ServiceUnavailable", "the server is shutting down"),
        ("GET", ["version"]) => (200, json!({"major": "1", "minor": "36", "gitVersion": KUBELET_VERSION})),
        ("GET", ["api", "v1", "nodes"]) => listed(nodes(state), "Node", request),
        ("GET" | "PATCH", ["api", "v1", "nodes", name]) => node(name, request, state),
        ("GET", ["api", "v1", "pods"]) => listed(Ok(state.lock().unwrap().pods.clone()), "Pod", request),
        ("GET", ["api", "v1", "namespaces", namespace, "pods"]) => {
            let mut pods = state.lock().unwrap().pods.clone();
            pods.retain(|pod| pod["metadata"]["namespace"] == *namespace);
            listed(Ok(pods), "Pod", request)
        }
        ("POST", ["api", "v1", "namespaces", namespace, "pods", pod, "eviction"]) => {
            evict(namespace, pod, state)
        }
        ("GET", ["api", "v1", "services"]) => {
            listed(Ok(state.lock().unwrap().services.clone()), "Service", request)
        }
        ("DELETE", ["api", "v1", "namespaces", namespace, "services", name]) => {
            match take(&mut state.lock().unwrap().services, namespace, name) {
                Some(_) => success(200),
                None => not_found("services", name),
            }
        }
        // Only metadata: no caller needs the data of all Secrets.
        ("GET", ["api", "v1", "secrets"]) if request.has("accept", "as=partialobjectmetadatalist") => {
            listed(Ok(state.lock().unwrap().secrets.clone()), "PartialObjectMetadata", request)
        }
        ("PATCH", ["api", "v1", "namespaces", namespace, "secrets", name]) => {
            let state = state.lock().unwrap();
            match position(&state.secrets, namespace, name) {
                None => not_found("secrets", name),
                Some(_) if state.guarded_secret.as_deref() == Some(name) => {
                    failure(403, "Forbidden", "admission webhook \"vault.example.com\" denied the request")
                }
                Some(_) if request.body != b"{}" => failure(422, "Invalid", "it would be changed"),
                Some(place) => (200, state.secrets[place].clone()),
            }
        }
        ("GET", ["api", "v1", "namespaces", namespace, "persistentvolumeclaims", name]) => {
            match state.lock().unwrap().claims.get(*name) {
                Some(phase) => (
                    200,
                    json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
                           "metadata": {"name": name, "namespace": namespace},
                           "spec": {"accessModes": ["ReadWriteMany"], "volumeName": name},
                           "status": {"phase": phase}}),
                ),
                None => not_found("persistentvolumeclaims", name),
            }
        }
        _ => failure(404, "NotFound", "the server could not find the requested resource"),
    };
    Message::answer(status, &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

pub(super) fn failure(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "message": message, "reason": reason, "details": {}, "code": code});
    (code, status)
}

pub(super) fn success(code: u16) -> (u16, Value) {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code});
    (code, status)
}

pub(super) fn not_found(kind: &str, name: &str) -> (u16, Value) {
    failure(404, "NotFound", &format!("{kind} \"{name}\" not found"))
}

fn listed(items: io::Result<Vec<Value>>, kind: &str, request: &Message) -> (u16, Value) {
    let mut items = match items {
        Ok(items) => items,
        Err(error) => return failure(500, "InternalError", &error.to_string()),
    };
    let selector = |name: &str| field(request.query(), name).unwrap_or_default();
    let (fields, labels) = (selector("fieldSelector"), selector("labelSelector"));
    let by_field = |item: &Value, key: &str| item.pointer(&format!("/{}", key.replace('.', "/"))).cloned();
    let by_label = |item: &Value, key: &str| item["metadata"]["labels"].get(key).cloned();
    items.retain(|item| {
        selects(&fields, |key| by_field(item, key)) && selects(&labels, |key| by_label(item, key))
    });
    let list = json!({"kind": format!("{kind}List"), "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items});
    (200, list)
}

/// Whether a list of `key`, `!key`, `key=value`, `key==value` and `key!=value` is true of something.
pub(super) fn selects(selector: &str, value_of: impl Fn(&str) -> Option<Value>) -> bool {
    selector.split(',').map(str::trim).filter(|part| !part.is_empty()).all(|part| {
        if let Some((key, value)) = part.split_once("!=") {
            value_of(key).is_none_or(|found| found != value)
        } else if let Some((key, value)) = part.split_once('=') {
            value_of(key).is_some_and(|found| found == value.trim_start_matches('='))
        } else if let Some(key) = part.strip_prefix('!') {
            value_of(key).is_none()
        } else {
            value_of(part).is_some()
        }
    })
}

fn node(name: &str, request: &Message, state: &Mutex<State>) -> (u16, Value) {
    let find = || nodes(state).map(|nodes| nodes.into_iter().find(|node| node["metadata"]["name"] == name));
    let identity = match find() {
        Err(error) => return failure(500, "InternalError", &error.to_string()),
        Ok(None) => return not_found("nodes", name),
        Ok(Some(node)) if request.method() == "GET" => return (200, node),
        Ok(Some(node)) => identity(&node),
    };
    if !request.has("content-type", "merge-patch+json") {
        return failure(415, "UnsupportedMediaType", "the body of the request was in an unknown format");
    }
    match serde_json::from_slice(&request.body) {
        Ok(patch) => state.lock().unwrap().patches.entry(identity).or_default().push(patch),
        Err(error) => return failure(400, "BadRequest", &error.to_string()),
    }
    find().ok().flatten().map_or_else(|| not_found("nodes", name), |node| (200, node))
}

fn position(objects: &[Value], namespace: &str, name: &str) -> Option<usize> {
    objects
        .iter()
        .map(|object| &object["metadata"])
        .position(|metadata| metadata["namespace"] == namespace && metadata["name"] == name)
}

fn take(objects: &mut Vec<Value>, namespace: &str, name: &str) -> Option<Value> {
    position(objects, namespace, name).map(|place| objects.remove(place))
}

fn evict(namespace: &str, name: &str, state: &Mutex<State>) -> (u16, Value) {
    let mut state = state.lock().unwrap();
    if state.blocked_evictions > 0 && position(&state.pods, namespace, name).is_some() {
        state.blocked_evictions -= 1;
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        return failure(429, "TooManyRequests", message);
    }
    take(&mut state.pods, namespace, name).map_or_else(|| not_found("pods", name), |_| success(201))
}

/// The machine of a node, where it has one; the next machine of that name is another node.
fn identity(node: &Value) -> String {
    let metadata = &node["metadata"];
    metadata["uid"].as_str().or(metadata["name"].as_str()).unwrap_or_default().to_owned()
}

fn nodes(state: &Mutex<State>) -> io::Result<Vec<Value>> {
    let (mut nodes, machines, gpus, patches) = {
        let state = state.lock().unwrap();
        (state.nodes.clone(), state.machines.clone(), state.gpus.clone(), state.patches.clone())
    };
    if let Some(machines) = machines {
        nodes.extend(machines.nodes(&gpus)?);
    }
    for node in &mut nodes {
        patches.get(&identity(node)).into_iter().flatten().for_each(|patch| merge(node, patch));
    }
    Ok(nodes)
}

/// As a merge patch does it. Lists are replaced, where a strategic one would mix them.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let fields = target.as_object_mut().unwrap();
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), change);
        }
    }
}
