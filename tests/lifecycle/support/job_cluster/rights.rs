//! Who asks the API server, and whether roles and their bindings allow it, as Kubernetes decides.

use rustls::pki_types::CertificateDer;
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::state::State;
use super::store::Place;
use crate::support::http::Message;

/// Who may do everything.
const MASTERS: &str = "system:masters";

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub user: String,
    pub groups: Vec<String>,
}

impl Client {
    /// The client of a connection and a request; nothing if it has neither a certificate nor a token that is known.
    pub fn of(certificates: Option<&[CertificateDer<'_>]>, request: &Message, state: &State) -> Option<Self> {
        if let Some(token) = request.header("authorization").and_then(|text| text.strip_prefix("Bearer ")) {
            return state.tokens.get(token).cloned();
        }
        let (_, certificate) = X509Certificate::from_der(certificates?.first()?).unwrap();
        let subject = certificate.subject();
        let user = subject.iter_common_name().next()?.as_str().unwrap().to_owned();
        let groups = subject.iter_organization().map(|group| group.as_str().unwrap().to_owned()).collect();
        Some(Self { user, groups })
    }

    pub fn administrator(user: &str) -> Self {
        Self { user: user.to_owned(), groups: vec![MASTERS.to_owned()] }
    }
}

impl State {
    /// What Kubernetes says if a client may not do this; creating by applying needs the right to create, too.
    pub fn objection(&self, client: &Client, method: &str, place: &Place) -> Option<String> {
        let is_new = method == "PATCH" && self.store.get(&place.key()).is_none();
        let verbs: &[&str] = match method {
            "GET" if place.name.is_none() => &["list"],
            // A WebSocket does what a POST did before.
            "GET" if matches!(place.below.first().map(String::as_str), Some("exec" | "portforward")) => {
                &["get", "create"]
            }
            "GET" => &["get"],
            "POST" => &["create"],
            "PATCH" if is_new => &["patch", "create"],
            "PATCH" => &["patch"],
            _ => &["delete"],
        };
        let below = place.below.first().map(|below| format!("/{below}")).unwrap_or_default();
        let resource = format!("{}{below}", place.plural);
        // A namespace is in itself.
        let namespace = if place.plural == "namespaces" {
            place.name.clone().unwrap_or_default()
        } else {
            place.namespace.clone()
        };
        let verb =
            verbs.iter().find(|verb| !self.allows(client, verb, place.api_group(), &resource, &namespace))?;
        let group = place.api_group();
        let scope = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{namespace}\"")
        };
        let kind = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        Some(format!(
            "{kind} is forbidden: User \"{}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {scope}",
            client.user
        ))
    }

    fn allows(&self, client: &Client, verb: &str, group: &str, resource: &str, namespace: &str) -> bool {
        if client.groups.iter().any(|group| group == MASTERS) {
            return true;
        }
        let bindings =
            ["clusterrolebindings", "rolebindings"].into_iter().flat_map(|plural| self.store.keys(plural));
        let bindings =
            bindings.filter(|key| key.1.is_empty() || (!namespace.is_empty() && key.1 == namespace));
        bindings.filter_map(|key| self.store.get(&key)).filter(|binding| is_bound(binding, client)).any(
            |binding| {
                let role = &binding["roleRef"];
                let (plural, at) = match role["kind"].as_str() {
                    Some("ClusterRole") => ("clusterroles", ""),
                    _ => ("roles", namespace),
                };
                let key = (plural, at.to_owned(), role["name"].as_str().unwrap().to_owned());
                let rules = self
                    .store
                    .get(&key)
                    .and_then(|role| role["rules"].as_array().cloned())
                    .unwrap_or_default();
                rules.iter().any(|rule| {
                    has(rule, "apiGroups", group)
                        && has(rule, "resources", resource)
                        && has(rule, "verbs", verb)
                })
            },
        )
    }
}

fn has(rule: &Value, list: &str, wanted: &str) -> bool {
    rule[list].as_array().unwrap().iter().any(|entry| entry == wanted || entry == "*")
}

fn is_bound(binding: &Value, client: &Client) -> bool {
    binding["subjects"].as_array().into_iter().flatten().any(|subject| match subject["kind"].as_str() {
        Some("User") => subject["name"] == client.user.as_str(),
        Some("Group") => client.groups.iter().any(|group| subject["name"] == group.as_str()),
        _ => false,
    })
}
