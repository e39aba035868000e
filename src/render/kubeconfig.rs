//! The administrator's kubeconfig, alone or merged into one that is there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::engine::{RenderError, render};
use crate::credentials::SecretText;

/// What a kubeconfig is made from.
#[derive(Debug)]
pub struct KubeconfigSource<'a> {
    /// The name of the cluster and the context.
    pub cluster: &'a str,
    /// The API server's URL.
    pub server: &'a str,
    /// The certificate of the authority that signed the API server's.
    pub certificate_authority: &'a str,
    /// The administrator's certificate.
    pub client_certificate: &'a str,
    /// The administrator's key.
    pub client_key: &'a SecretText,
}

/// A kubeconfig's text; it holds a private key.
pub type Kubeconfig = SecretText;

#[derive(Serialize)]
struct Values<'a> {
    cluster: &'a str,
    user: String,
    server: &'a str,
    certificate_authority: String,
    client_certificate: String,
    client_key: &'a str,
}

/// Renders a kubeconfig with everything embedded.
pub fn render_kubeconfig(source: &KubeconfigSource<'_>) -> Result<Kubeconfig, RenderError> {
    let key = encoded_key(source);
    let text = render("kubeconfig.yaml", &values(source, &key))?;
    Ok(SecretText::new(text))
}

/// Adds the cluster, user and context to a kubeconfig, in place of older ones of the same name. The current context is set only
/// if there is none.
pub fn merge_kubeconfig(existing: Value, source: &KubeconfigSource<'_>) -> Result<Value, RenderError> {
    let shape = |reason: &str| RenderError::Shape {
        document: "the kubeconfig".to_owned(),
        reason: reason.to_owned(),
    };
    let key = encoded_key(source);
    let values = values(source, &key);
    let mut merged = match existing {
        Value::Null => json!({"apiVersion": "v1", "kind": "Config"}),
        other => other,
    };
    let top = merged.as_object_mut().ok_or_else(|| shape("it is not a mapping"))?;
    let entries = [
        (
            "clusters",
            source.cluster,
            "cluster",
            json!({
                "server": source.server,
                "certificate-authority-data": values.certificate_authority,
            }),
        ),
        (
            "users",
            &values.user,
            "user",
            json!({
                "client-certificate-data": values.client_certificate,
                "client-key-data": values.client_key,
            }),
        ),
        ("contexts", source.cluster, "context", json!({"cluster": source.cluster, "user": values.user})),
    ];
    for (list, name, kind, content) in entries {
        let slot = top.entry(list).or_insert_with(|| json!([]));
        if slot.is_null() {
            *slot = json!([]);
        }
        let list = slot.as_array_mut().ok_or_else(|| shape(&format!("'{list}' is not a list")))?;
        list.retain(|entry| entry["name"] != name);
        list.push(json!({"name": name, kind: content}));
    }
    let current = top.entry("current-context").or_insert(Value::Null);
    if current.as_str().is_none_or(str::is_empty) {
        *current = source.cluster.into();
    }
    Ok(merged)
}

fn encoded_key(source: &KubeconfigSource<'_>) -> Zeroizing<String> {
    Zeroizing::new(STANDARD.encode(source.client_key.expose()))
}

fn values<'a>(source: &KubeconfigSource<'a>, client_key: &'a str) -> Values<'a> {
    Values {
        cluster: source.cluster,
        user: format!("{}-admin", source.cluster),
        server: source.server,
        certificate_authority: STANDARD.encode(source.certificate_authority),
        client_certificate: STANDARD.encode(source.client_certificate),
        client_key,
    }
}
