//! Objects as an API server keeps them: applied, patched, listed and deleted under its rules.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::http::{Message, field};
use super::super::kubernetes::{failure, merge, not_found, selects};
use super::job_set::{RESOURCE, refusal, set_defaults};

/// An answer of the API: status and document.
pub type Answer = (u16, Value);

const ADMISSION: &str = "apis/admissionregistration.k8s.io/v1";

/// Where each kind is, and whether in a namespace.
const KINDS: [(&str, &str, &str, bool); 23] = [
    ("nodes", "api/v1", "Node", false),
    ("namespaces", "api/v1", "Namespace", false),
    ("persistentvolumes", "api/v1", "PersistentVolume", false),
    ("persistentvolumeclaims", "api/v1", "PersistentVolumeClaim", true),
    ("configmaps", "api/v1", "ConfigMap", true),
    ("services", "api/v1", "Service", true),
    ("serviceaccounts", "api/v1", "ServiceAccount", true),
    ("secrets", "api/v1", "Secret", true),
    ("pods", "api/v1", "Pod", true),
    ("events", "api/v1", "Event", true),
    ("daemonsets", "apis/apps/v1", "DaemonSet", true),
    ("deployments", "apis/apps/v1", "Deployment", true),
    ("jobs", "apis/batch/v1", "Job", true),
    ("jobsets", "apis/jobset.x-k8s.io/v1alpha2", "JobSet", true),
    ("leases", "apis/coordination.k8s.io/v1", "Lease", true),
    ("customresourcedefinitions", "apis/apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
    ("roles", "apis/rbac.authorization.k8s.io/v1", "Role", true),
    ("rolebindings", "apis/rbac.authorization.k8s.io/v1", "RoleBinding", true),
    ("clusterroles", "apis/rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("clusterrolebindings", "apis/rbac.authorization.k8s.io/v1", "ClusterRoleBinding", false),
    ("resourcequotas", "api/v1", "ResourceQuota", true),
    ("validatingadmissionpolicies", ADMISSION, "ValidatingAdmissionPolicy", false),
    ("validatingadmissionpolicybindings", ADMISSION, "ValidatingAdmissionPolicyBinding", false),
];

/// What a path is about.
pub struct Place {
    pub plural: &'static str,
    pub kind: &'static str,
    group: &'static str,
    /// Empty for all of them, or for none.
    pub namespace: String,
    pub name: Option<String>,
    /// What follows the name, as `log`.
    pub below: Vec<String>,
}

impl Place {
    /// Nothing for a path that no API server has.
    pub fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", "v1", rest @ ..] => ("api/v1".to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("apis/{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, rest) = rest.split_first()?;
        let known = KINDS.iter().find(|(name, at, ..)| name == plural && *at == group)?;
        let (name, below) = match rest.split_first() {
            Some((name, below)) => (Some(super::super::http::percent_decode(name)), below),
            None => (None, rest),
        };
        if name.is_some() && known.3 == namespace.is_empty() {
            return None;
        }
        Some(Self {
            plural: known.0,
            kind: known.2,
            group: known.1,
            namespace: namespace.to_owned(),
            name,
            below: below.iter().map(|part| (*part).to_owned()).collect(),
        })
    }

    pub fn key(&self) -> Key {
        (self.plural, self.namespace.clone(), self.name.clone().unwrap_or_default())
    }

    /// That there is no such object, as the real API server says it.
    pub fn missing(&self) -> Answer {
        let resource = if self.plural == "jobsets" { RESOURCE } else { self.plural };
        not_found(resource, self.name.as_deref().unwrap_or_default())
    }

    /// The group of the kind, which is empty for the oldest kinds.
    pub fn api_group(&self) -> &'static str {
        let group = self.group.strip_prefix("apis/").unwrap_or_default();
        group.split('/').next().unwrap()
    }

    fn api_version(&self) -> &'static str {
        self.group.trim_start_matches("apis/").trim_start_matches("api/")
    }
}

/// Plural, namespace and name.
pub type Key = (&'static str, String, String);

#[derive(Default)]
pub struct Store {
    objects: BTreeMap<Key, Value>,
    made: u32,
}

impl Store {
    /// Every object.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values()
    }

    /// Creates an object as another user would.
    pub fn put(&mut self, plural: &'static str, mut object: Value) {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = (plural, text("/metadata/namespace"), text("/metadata/name"));
        if plural == "jobsets" {
            set_defaults(&mut object);
        }
        self.stamp(&mut object);
        self.objects.insert(key, object);
    }

    fn stamp(&mut self, object: &mut Value) {
        let now = self.now();
        object["metadata"]["uid"] = json!(format!("uid-{}", self.made));
        object["metadata"]["creationTimestamp"] = json!(now);
    }

    /// A moment later than every other.
    pub fn now(&mut self) -> String {
        self.made += 1;
        let (hour, minute, second) = (10 + self.made / 3600, self.made / 60 % 60, self.made % 60);
        format!("2026-11-16T{hour:02}:{minute:02}:{second:02}Z")
    }

    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Value> {
        self.objects.get_mut(key)
    }

    /// Changes an object as a controller does, and says whether it is another one now.
    pub fn update(&mut self, key: &Key, change: impl FnOnce(&mut Value)) -> bool {
        let Some(object) = self.objects.get_mut(key) else { return false };
        let before = object.clone();
        change(object);
        *object != before
    }

    pub fn remove(&mut self, key: &Key) -> Option<Value> {
        self.objects.remove(key)
    }

    /// Deletes everything in a namespace.
    pub fn empty_namespace(&mut self, namespace: &str) {
        self.objects.retain(|key, _| key.1 != namespace);
    }

    /// Every key of a kind.
    pub fn keys(&self, plural: &str) -> Vec<Key> {
        self.objects.keys().filter(|key| key.0 == plural).cloned().collect()
    }

    /// Lists leave the kind of their items out, as the real ones do.
    pub fn list(&self, place: &Place, query: &str) -> Answer {
        let labels = field(query, "labelSelector").unwrap_or_default();
        let fields = field(query, "fieldSelector").unwrap_or_default();
        let items: Vec<Value> = self
            .objects
            .iter()
            .filter(|(key, _)| key.0 == place.plural)
            .filter(|(key, _)| place.namespace.is_empty() || key.1 == place.namespace)
            .map(|(_, object)| object.clone())
            .filter(|object| selects(&labels, |key| object["metadata"]["labels"].get(key).cloned()))
            .filter(|object| {
                selects(&fields, |key| object.pointer(&format!("/{}", key.replace('.', "/"))).cloned())
            })
            .map(|mut object| {
                let fields = object.as_object_mut().unwrap();
                fields.remove("kind");
                fields.remove("apiVersion");
                object
            })
            .collect();
        (
            200,
            json!({"kind": format!("{}List", place.kind), "apiVersion": place.api_version(),
                     "metadata": {"resourceVersion": "1"}, "items": items}),
        )
    }

    /// Creates an object that must not be there.
    pub fn create(&mut self, place: &Place, request: &Message) -> Answer {
        let Ok(mut object) = serde_json::from_slice::<Value>(&request.body) else {
            return failure(400, "BadRequest", "the body is no document");
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let namespace = ("namespaces", String::new(), place.namespace.clone());
        if !place.namespace.is_empty() && !self.objects.contains_key(&namespace) {
            return not_found("namespaces", &place.namespace);
        }
        let key = (place.plural, place.namespace.clone(), name.clone());
        if self.objects.contains_key(&key) {
            let message = format!("{} \"{name}\" already exists", place.plural);
            return failure(409, "AlreadyExists", &message);
        }
        self.stamp(&mut object);
        self.count_version(place, &mut object);
        self.objects.insert(key, object.clone());
        (201, object)
    }

    /// Only Secrets are changed under the condition that nobody else did.
    fn count_version(&mut self, place: &Place, object: &mut Value) {
        if place.plural == "secrets" {
            self.made += 1;
            object["metadata"]["resourceVersion"] = json!(self.made.to_string());
        }
    }

    pub fn patch(&mut self, place: &Place, request: &Message) -> Answer {
        let Ok(mut body) = serde_json::from_slice::<Value>(&request.body) else {
            return failure(400, "BadRequest", "the body is no document");
        };
        if place.plural == "jobsets" {
            // The status is a resource of its own: a request changes one or the other.
            let changes_status = place.below.first().is_some_and(|below| below == "status");
            if let Some(fields) = body.as_object_mut() {
                fields.retain(|field, _| match field.as_str() {
                    "status" => changes_status,
                    "spec" => !changes_status,
                    _ => true,
                });
            }
        }
        if request.has("content-type", "apply-patch+yaml") {
            self.apply(place, request.query(), body)
        } else if request.has("content-type", "merge-patch+json") {
            let live = self.objects.get(&place.key()).map(|object| &object["metadata"]["resourceVersion"]);
            let wanted = body["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty());
            if live.is_some_and(|live| wanted.is_some_and(|wanted| live != wanted)) {
                let message = "the object has been modified; please apply your changes to the latest version";
                return failure(409, "Conflict", message);
            }
            self.change(place, |object| merge(object, &body))
        } else {
            failure(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
        }
    }

    fn apply(&mut self, place: &Place, query: &str, body: Value) -> Answer {
        let name = place.name.clone().unwrap_or_default();
        if field(query, "fieldManager").is_none_or(|manager| manager.is_empty()) {
            let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
            return failure(422, "Invalid", message);
        }
        if body["kind"] != place.kind || body["apiVersion"] != place.api_version() {
            return failure(400, "BadRequest", "the kind of the object does not match the path");
        }
        if body["metadata"]["name"] != name.as_str() {
            return failure(400, "BadRequest", "the name of the object does not match the name on the URL");
        }
        let namespace = ("namespaces", String::new(), place.namespace.clone());
        if !place.namespace.is_empty() && !self.objects.contains_key(&namespace) {
            return not_found("namespaces", &place.namespace);
        }
        if self.objects.contains_key(&place.key()) {
            if field(query, "force").as_deref() != Some("true") {
                return failure(
                    409,
                    "Conflict",
                    "Apply failed with 1 conflict: conflict with another manager",
                );
            }
            return self.change(place, |object| merge(object, &body));
        }
        let policy = &body["spec"]["template"]["spec"]["restartPolicy"];
        if place.plural == "jobs" && policy != "Never" && policy != "OnFailure" {
            let message =
                format!("Job.batch \"{name}\" is invalid: spec.template.spec.restartPolicy: Required value");
            return failure(422, "Invalid", &message);
        }
        let mut object = body;
        if place.plural == "jobsets" {
            set_defaults(&mut object);
            if let Some(refusal) = refusal(None, &object) {
                return refusal;
            }
        }
        self.stamp(&mut object);
        object["status"] = match place.plural {
            "pods" | "persistentvolumeclaims" => json!({"phase": "Pending"}),
            "persistentvolumes" => json!({"phase": "Available"}),
            _ => json!({}),
        };
        self.objects.insert(place.key(), object.clone());
        (201, object)
    }

    /// Changes an object unless that touches what cannot be changed.
    fn change(&mut self, place: &Place, change: impl FnOnce(&mut Value)) -> Answer {
        let Some(object) = self.objects.get(&place.key()) else {
            return place.missing();
        };
        let mut after = object.clone();
        change(&mut after);
        let fixed: &[&str] = match place.plural {
            "jobs" => &["completions", "completionMode", "selector", "podFailurePolicy", "template"],
            "persistentvolumeclaims" => &["accessModes", "storageClassName", "volumeName"],
            "persistentvolumes" => &["nfs"],
            _ => &[],
        };
        if let Some(part) = fixed.iter().find(|part| object["spec"][**part] != after["spec"][**part]) {
            let (kind, name) = (place.kind, place.key().2);
            let message = format!(
                "{kind} \"{name}\" is invalid: spec.{part}: Invalid value: {}: field is immutable",
                after["spec"][*part]
            );
            return failure(422, "Invalid", &message);
        }
        if place.plural == "jobsets" {
            set_defaults(&mut after);
            if let Some(refusal) = refusal(Some(object), &after) {
                return refusal;
            }
        }
        self.count_version(place, &mut after);
        self.objects.insert(place.key(), after.clone());
        (200, after)
    }
}
