//! A kubeconfig of the administrator or of a user, alone or merged into an existing one.
//!
//! It is built here and not by the template engine, which would keep copies of the key that are never wiped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::engine::RenderError;
use super::secret_document::SecretDocument;
use crate::credentials::SecretText;

/// How the API server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiEndpoint {
    /// The API server's URL.
    pub server: String,
    /// The name that its certificate must have, where that is not the host of the URL.
    pub tls_server_name: Option<String>,
}

impl ApiEndpoint {
    /// An API server whose certificate has the host of its URL.
    #[must_use]
    pub fn at(server: impl Into<String>) -> Self {
        Self { server: server.into(), tls_server_name: None }
    }
}

/// What a kubeconfig is rendered from.
#[derive(Debug)]
pub struct KubeconfigSource<'a> {
    /// The name of the cluster and the context.
    pub cluster: &'a str,
    /// The name of the user.
    pub user: &'a str,
    /// The namespace that is meant where none is named; `default` if there is none.
    pub namespace: Option<&'a str>,
    /// How the API server is reached.
    pub endpoint: &'a ApiEndpoint,
    /// The certificate of the authority that signed the API server's.
    pub certificate_authority: &'a str,
    /// The user's certificate.
    pub client_certificate: &'a str,
    /// The user's key.
    pub client_key: &'a SecretText,
}

impl KubeconfigSource<'_> {
    fn encoded_key(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.client_key.expose()))
    }
}

/// Renders a kubeconfig with everything embedded.
#[must_use]
pub fn render_kubeconfig(source: &KubeconfigSource<'_>) -> SecretText {
    let KubeconfigSource { cluster, user, endpoint, .. } = source;
    let server = &endpoint.server;
    let tls_name = endpoint.tls_server_name.as_ref();
    let tls_name = tls_name.map(|name| format!("    tls-server-name: {name}\n")).unwrap_or_default();
    let namespace = source.namespace.map(|name| format!("\n    namespace: {name}")).unwrap_or_default();
    let authority = STANDARD.encode(source.certificate_authority);
    let certificate = STANDARD.encode(source.client_certificate);
    let key = source.encoded_key();
    SecretText::new(format!(
        "\
apiVersion: v1
kind: Config
current-context: {cluster}
clusters:
- name: {cluster}
  cluster:
    server: {server}
{tls_name}    certificate-authority-data: {authority}
contexts:
- name: {cluster}
  context:
    cluster: {cluster}
    user: {user}{namespace}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
",
        key = *key
    ))
}

/// A kubeconfig's content; strings in it are wiped when it is dropped.
#[derive(Debug)]
pub struct MergedKubeconfig(SecretDocument);

impl MergedKubeconfig {
    /// The content, for writing it down.
    #[must_use]
    pub fn content(&self) -> &Value {
        &self.0.0
    }

    /// The context that kubectl uses.
    #[must_use]
    pub fn current_context(&self) -> &str {
        self.content()["current-context"].as_str().unwrap_or_default()
    }
}

/// Adds the cluster, user and context to a kubeconfig, in place of older ones of the same name. The current context is set only
/// if there is none.
pub fn merge_kubeconfig(
    existing: Value,
    source: &KubeconfigSource<'_>,
) -> Result<MergedKubeconfig, RenderError> {
    let shape = |reason: &str| RenderError::Shape {
        document: "the kubeconfig".to_owned(),
        reason: reason.to_owned(),
    };
    let mut merged = MergedKubeconfig(SecretDocument(match existing {
        Value::Null => json!({"apiVersion": "v1", "kind": "Config"}),
        other => other,
    }));
    let top = merged.0.0.as_object_mut().ok_or_else(|| shape("it is not a mapping"))?;
    let mut cluster = json!({
        "server": source.endpoint.server,
        "certificate-authority-data": STANDARD.encode(source.certificate_authority),
    });
    if let Some(name) = &source.endpoint.tls_server_name {
        cluster["tls-server-name"] = name.as_str().into();
    }
    let credentials = json!({
        "client-certificate-data": STANDARD.encode(source.client_certificate),
        "client-key-data": source.encoded_key().as_str(),
    });
    let context = json!({"cluster": source.cluster, "user": source.user});
    let entries = [
        ("clusters", source.cluster, "cluster", cluster),
        ("users", source.user, "user", credentials),
        ("contexts", source.cluster, "context", context),
    ];
    for (list, name, kind, content) in entries {
        let slot = top.entry(list).or_insert_with(|| json!([]));
        if slot.is_null() {
            *slot = json!([]);
        }
        let list = slot.as_array_mut().ok_or_else(|| shape(&format!("'{list}' is not a list")))?;
        list.retain(|entry| entry["name"] != name);
        list.push(Value::from_iter([("name", Value::from(name)), (kind, content)]));
    }
    let current = top.entry("current-context").or_insert(Value::Null);
    if current.as_str().is_none_or(str::is_empty) {
        *current = source.cluster.into();
    }
    Ok(merged)
}
