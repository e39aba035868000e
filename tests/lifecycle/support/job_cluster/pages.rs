//! Responses of the API server: documents, and logs that are followed.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::controller::{phase_of, role_of};
use super::exec::exec;
use super::job_set::{API_VERSION, GROUP_PATH};
use super::port_forward::forward_port;
use super::rights::Client;
use super::state::{Log, Shared, State};
use super::store::{Answer, Place};
use crate::support::api_connections::Stream;
use crate::support::http::{Message, field};
use crate::support::kubernetes::{failure, not_found, success};

/// The definition that Kueue is recognised by.
pub const LOCAL_QUEUES: &str = "localqueues.kueue.x-k8s.io";

pub fn answer(
    request: &Message,
    client: Option<&Client>,
    shared: &Arc<Shared>,
    stream: &mut Stream<'_>,
) -> io::Result<()> {
    let (method, path) = (request.method(), request.path());
    let (refusal, is_early) = {
        let mut state = shared.state.lock().unwrap();
        state.requests.push(format!("{method} {path}"));
        if state.stalled {
            state.stalled_requests += 1;
            shared.changed.notify_all();
        }
        while state.stalled {
            state = shared.changed.wait_timeout(state, Duration::from_millis(100)).unwrap().0;
        }
        let is_early = state.early_requests > 0;
        state.early_requests = state.early_requests.saturating_sub(1);
        (state.refusal, is_early)
    };
    if is_early {
        let (status, document) = failure(429, "TooManyRequests", "storage is (re)initializing");
        let headers = [("Content-Type", "application/json"), ("Retry-After", "1")];
        return Message::answer(status, &headers, document.to_string().as_bytes()).write(stream);
    }
    if let Some((status, message)) = refusal {
        return write(failure(status, "ServiceUnavailable", message), stream);
    }
    let Some(client) = client else {
        return write(failure(401, "Unauthorized", "Unauthorized"), stream);
    };
    if path.starts_with(GROUP_PATH) && !shared.state.lock().unwrap().has_job_sets {
        let text = ("Content-Type", "text/plain; charset=utf-8");
        return Message::answer(404, &[text], b"404 page not found\n").write(stream);
    }
    if path.trim_matches('/') == format!("apis/{API_VERSION}") {
        return write((200, resources()), stream);
    }
    if let Some(found) = of_kueue(path, &shared.state.lock().unwrap()) {
        return write(found, stream);
    }
    let Some(place) = Place::of(path) else {
        return write(failure(404, "NotFound", "the server could not find the requested resource"), stream);
    };
    if let Some(own) = shared.state.lock().unwrap().own_namespace
        && place.plural != "nodes"
        && place.namespace != own
    {
        let message = format!("{} is forbidden: User \"ada\" cannot {method} it here", place.plural);
        return write(failure(403, "Forbidden", &message), stream);
    }
    let objection = shared.state.lock().unwrap().objection(client, method, &place);
    if let Some(objection) = objection {
        return write(failure(403, "Forbidden", &objection), stream);
    }
    match (method, place.below.first().map(String::as_str)) {
        ("GET", Some("exec")) => return exec(&place, request, shared, stream),
        ("GET", Some("portforward")) => return forward_port(&place, request, shared, stream),
        ("GET", Some("log")) => return log(&place, request.query(), shared, stream),
        _ => {}
    }
    let wants_metadata = request.has("accept", "partialobjectmetadata");
    if place.plural == "secrets" && method == "GET" && !wants_metadata {
        return write(failure(403, "Forbidden", "nobody needs the data of Secrets here"), stream);
    }
    let mut state = shared.state.lock().unwrap();
    let answer = match method {
        "POST" if place.name.is_none() => state.store.create(&place, request),
        "GET" if place.name.is_none() => state.store.list(&place, request.query()),
        "GET" => {
            state.store.get(&place.key()).map_or_else(|| place.missing(), |object| (200, object.clone()))
        }
        "PATCH" => {
            if matches!(place.plural, "jobs" | "jobsets") && state.overtaken == place.name {
                state.overtaken = None;
                let other = serde_json::from_slice(&request.body).unwrap();
                state.store.put(place.plural, of_another_run(other));
            }
            let invalid = state.invalid.as_ref().filter(|(name, _)| Some(name) == place.name.as_ref());
            let answer = match invalid {
                Some((_, why)) => failure(422, "Invalid", why),
                None => state.store.patch(&place, request),
            };
            if answer.0 == 201 && place.plural == "pods" {
                start_bare_pod(&mut state, &place);
            }
            if request.text().contains("\"suspend\":false") {
                let kind = if place.plural == "jobsets" { "jobset" } else { "job" };
                state.history.push(format!("{kind} {} released", place.key().2));
            }
            answer
        }
        "DELETE" => delete(&mut state, &place, request),
        _ => failure(405, "MethodNotAllowed", "the server does not allow this method"),
    };
    state.reconcile();
    drop(state);
    shared.changed.notify_all();
    write(if wants_metadata { metadata_alone(answer) } else { answer }, stream)
}

/// An object, or every object of a list, without anything but its metadata.
fn metadata_alone((status, mut document): Answer) -> Answer {
    let strip = |object: &mut Value| {
        object
            .as_object_mut()
            .unwrap()
            .retain(|field, _| ["kind", "apiVersion", "metadata"].contains(&field.as_str()));
    };
    match document.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(strip),
        None if status < 300 => strip(&mut document),
        None => {}
    }
    (status, document)
}

pub(super) fn write((status, body): Answer, stream: &mut impl Write) -> io::Result<()> {
    Message::answer(status, &[("Content-Type", "application/json")], body.to_string().as_bytes())
        .write(stream)
}

/// A pod that no Job made is started at once, by its program or as the test says.
fn start_bare_pod(state: &mut State, place: &Place) {
    let key = place.key();
    let role = role_of(state.store.get(&key).unwrap());
    state.history.push(format!("pod {role}"));
    match state.fates.as_ref().map(|fate| fate(&role, 0, 0)) {
        Some(super::Fate::Run(node)) => state.run(&key, node),
        Some(super::Fate::Print(node, text)) => {
            state.run(&key, node);
            state.print(&key, text);
        }
        Some(super::Fate::Succeed(node, text)) => {
            state.run(&key, node);
            state.print(&key, text);
            state.finish(&key, 0);
        }
        Some(super::Fate::Fail(node, code, text)) => {
            state.run(&key, node);
            state.print(&key, text);
            state.finish(&key, code);
        }
        _ => state.start_program(&key),
    }
}

/// The same Job or JobSet with pods of another run.
fn of_another_run(mut object: Value) -> Value {
    let run: Value = "r-other".into();
    match object["spec"].get_mut("replicatedJobs").and_then(Value::as_array_mut) {
        None => object["spec"]["template"]["metadata"]["labels"]["infra.internal/run"] = run,
        Some(jobs) => {
            for job in jobs {
                let template = &mut job["template"]["spec"]["template"];
                template["metadata"]["labels"]["infra.internal/run"] = run.clone();
            }
        }
    }
    object
}

/// What the group of JobSets has, as clients ask before they use it.
fn resources() -> Value {
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION,
           "resources": [{"name": "jobsets", "singularName": "jobset", "namespaced": true, "kind": "JobSet",
                          "verbs": verbs},
                         {"name": "jobsets/status", "singularName": "", "namespaced": true, "kind": "JobSet",
                          "verbs": ["get", "patch", "update"]}]})
}

/// What Kueue adds to the API, if it is installed: its group, and queues that can be read.
fn of_kueue(path: &str, state: &State) -> Option<Answer> {
    let definition = ("customresourcedefinitions", String::new(), LOCAL_QUEUES.to_owned());
    state.store.get(&definition)?;
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["apis", "kueue.x-k8s.io"] => {
            let version = json!({"groupVersion": "kueue.x-k8s.io/v1beta2", "version": "v1beta2"});
            let group = json!({"kind": "APIGroup", "apiVersion": "v1", "name": "kueue.x-k8s.io",
                               "versions": [version], "preferredVersion": version});
            Some((200, group))
        }
        ["apis", "kueue.x-k8s.io", "v1beta2", "namespaces", namespace, "workloads"] => {
            let keys = state.store.keys("workloads").into_iter().filter(|(_, at, _)| at == namespace);
            let items: Vec<&Value> = keys.filter_map(|key| state.store.get(&key)).collect();
            Some((
                200,
                json!({"kind": "WorkloadList", "apiVersion": "kueue.x-k8s.io/v1beta2", "items": items}),
            ))
        }
        ["apis", "kueue.x-k8s.io", "v1beta2", "namespaces", namespace, "localqueues", name] => {
            let key = ("localqueues", (*namespace).to_owned(), (*name).to_owned());
            let queue = state.store.get(&key).map(|queue| (200, queue.clone()));
            Some(queue.unwrap_or_else(|| not_found(LOCAL_QUEUES, name)))
        }
        _ => None,
    }
}

/// The policy for dependents is part of the body, or of the query.
fn delete(state: &mut State, place: &Place, request: &Message) -> Answer {
    let key = place.key();
    let Some(object) = state.store.get(&key).cloned() else { return place.missing() };
    let options: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let (wanted, uid) = (&options["preconditions"]["uid"], &object["metadata"]["uid"]);
    if !wanted.is_null() && wanted != uid {
        let message =
            format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
        return failure(409, "Conflict", &message);
    }
    let policy = options["propagationPolicy"].as_str().map(str::to_owned);
    let policy = policy.or_else(|| field(request.query(), "propagationPolicy"));
    if place.plural == "pods" {
        state.delete_pod(&key);
        return (200, object);
    }
    state.delete(&key, policy.as_deref());
    state.store.get(&key).map_or_else(|| success(200), |object| (200, object.clone()))
}

fn log(place: &Place, query: &str, shared: &Arc<Shared>, stream: &mut impl Write) -> io::Result<()> {
    let key = place.key();
    let mut state = shared.state.lock().unwrap();
    let Some(pod) = state.store.get(&key) else { return write(not_found("pods", &key.2), stream) };
    if phase_of(pod) == "Pending" {
        let message = format!(
            "container \"{}\" in pod \"{}\" is waiting to start: ContainerCreating",
            role_of(pod),
            key.2
        );
        return write(failure(400, "BadRequest", &message), stream);
    }
    // As a real API server says it: the pod is there, and what cannot be found is its machine.
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| state.lost_nodes.contains(*node)) {
        return write(not_found("pods", node), stream);
    }
    let mut head = Message::answer(200, &[("Content-Type", "text/plain")], b"");
    head.remove_header("Content-Length");
    head.set_header("Transfer-Encoding", "chunked");
    stream.write_all(&head.head())?;
    let follows = field(query, "follow").as_deref() == Some("true");
    let breaks = state.breaks;
    let mut next = state.logs.get(&key).map_or(0, |log| log.pieces.len());
    let mut text = state.logs.get(&key).map(|log| chosen(log, query)).unwrap_or_default();
    loop {
        let has_ended = state.logs.get(&key).is_some_and(|log| log.ended) || state.store.get(&key).is_none();
        let broke = state.breaks != breaks;
        drop(state);
        if !text.is_empty() {
            stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
            stream.flush()?;
        }
        if broke {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if has_ended || !follows {
            stream.write_all(b"0\r\n\r\n")?;
            return stream.flush();
        }
        state = shared.state.lock().unwrap();
        state = shared.changed.wait_timeout(state, Duration::from_millis(200)).unwrap().0;
        let pieces = state.logs.get(&key).map(|log| log.pieces.as_slice()).unwrap_or_default();
        text = pieces[next..].iter().map(|(_, piece)| piece.as_str()).collect();
        next = pieces.len();
    }
}

/// The part of a log that was asked for.
fn chosen(log: &Log, query: &str) -> String {
    let number = |name: &str| field(query, name).and_then(|text| text.parse::<usize>().ok());
    let oldest = number("sinceSeconds")
        .and_then(|seconds| Instant::now().checked_sub(Duration::from_secs(seconds as u64)));
    let recent = log.pieces.iter().filter(|(at, _)| oldest.is_none_or(|oldest| *at >= oldest));
    let text: String = recent.map(|(_, piece)| piece.as_str()).collect();
    match number("tailLines") {
        Some(count) => {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            lines[lines.len().saturating_sub(count)..].concat()
        }
        None => text,
    }
}
