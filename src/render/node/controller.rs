//! The config of a controller: the control plane as static pods, and what every cluster runs. It does not depend on the pools.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::super::engine::RenderError;
use super::super::node_description::{NodeDescription, Owner};
use super::super::values::{EncryptionKey, TemplateValues};
use super::from_template::{READABLE, SECRET, add_template_file, add_template_unit};
use super::parts::{
    Bootstrap, certificate_text, describe_base_machine, key_text, kubeconfig_for, kubernetes_node,
};
use super::sources::NodeSources;
use crate::blueprint::PROMETHEUS_DIRECTORY;
use crate::config::PoolImage;
use crate::credentials::RotatedKey;

const SCRIPTS: [&str; 8] = [
    "apply-addons",
    "approve-nodes",
    "install-static-pods",
    "node-environment",
    "signal-node",
    "signal-stack",
    "unpack-cni",
    "watch-node",
];

/// Certificates with their keys, by the names they have among the credentials.
const PAIRS: [&str; 4] = ["apiserver", "apiserver-kubelet-client", "etcd-client", "front-proxy-client"];

/// Authorities whose certificates are enough.
const AUTHORITIES: [&str; 2] = ["etcd-ca", "front-proxy-ca"];

/// A controller talks to the API server on itself; through the load balancer it might reach itself and hang.
const API_SERVER: &str = "https://127.0.0.1:6443";

pub(super) fn describe_controller(sources: &NodeSources<'_>) -> Result<NodeDescription, RenderError> {
    let values = TemplateValues::of_controller(sources.blueprint, sources.credentials);
    let mut config = describe_base_machine(sources, &values, PoolImage::Flatcar, &SCRIPTS)?;
    let bootstrap = Bootstrap { identity: "controller-bootstrap", api_server: API_SERVER };
    kubernetes_node(&mut config, sources, &values, PoolImage::Flatcar, &bootstrap)?;
    config.directory("/etc/kubernetes/pki", 0o700, Owner::ROOT);
    config.directory("/etc/kubernetes/manifests", 0o700, Owner::ROOT);
    config.directory("/var/log/kubernetes", 0o700, Owner::ROOT);
    add_credentials(&mut config, sources)?;
    for (identity, path) in [
        ("admin", "/etc/kubernetes/admin.conf"),
        ("controller-manager", "/etc/kubernetes/controller-manager.conf"),
        ("scheduler", "/etc/kubernetes/scheduler.conf"),
    ] {
        let text = kubeconfig_for(sources, identity, API_SERVER)?;
        config.file(path, SECRET, Owner::ROOT, text.expose().as_bytes());
    }
    for path in ["/etc/kubernetes/audit-policy.yaml", "/etc/kubernetes/authentication.yaml"] {
        add_template_file(&mut config, sources, &values, path, SECRET, Owner::ROOT)?;
    }
    add_encryption(&mut config, sources, &values)?;
    for pod in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
        let text = sources.templates.render(&format!("static-pods/{pod}.yaml"), &values)?;
        config.file(&format!("/opt/infra/static-pods/{pod}.yaml"), SECRET, Owner::ROOT, text.as_bytes());
    }
    for (name, text) in sources.manifests {
        config.file(&format!("/etc/kubernetes/addons/{name}"), READABLE, Owner::ROOT, text.as_bytes());
    }
    add_template_unit(&mut config, sources, &values, "install-static-pods.service")?;
    add_template_unit(&mut config, sources, &values, "apply-addons.service")?;
    add_template_unit(&mut config, sources, &values, "approve-nodes.service")?;
    if sources.blueprint.cluster.addons.monitoring.is_some() {
        config.directory(PROMETHEUS_DIRECTORY, 0o700, Owner::NOBODY);
    }
    if sources.blueprint.cluster.addons.job_set {
        add_template_unit(&mut config, sources, &values, "jobset-certificate.service")?;
    }
    Ok(config)
}

fn add_credentials(config: &mut NodeDescription, sources: &NodeSources<'_>) -> Result<(), RenderError> {
    let place = |file: String| format!("/etc/kubernetes/pki/{file}");
    for name in PAIRS {
        let (public, secret) = (certificate_text(sources, name)?, key_text(sources, name)?);
        config.file(&place(format!("{name}.pem")), READABLE, Owner::ROOT, public.as_bytes());
        config.file(&place(format!("{name}-key.pem")), SECRET, Owner::ROOT, secret.expose().as_bytes());
    }
    let signing = RotatedKey::ServiceAccount;
    let keys = sources.credentials.keys_in_use(signing);
    for number in keys.numbers() {
        let name = signing.numbered(number);
        let public = certificate_text(sources, &name)?;
        config.file(&place(format!("{name}.pem")), READABLE, Owner::ROOT, public.as_bytes());
        // Tokens are verified by public keys; the private one is only where it signs.
        if number == keys.current {
            let secret = key_text(sources, &name)?;
            config.file(&place(format!("{name}-key.pem")), SECRET, Owner::ROOT, secret.expose().as_bytes());
        }
    }
    for name in AUTHORITIES {
        config.file(
            &place(format!("{name}.pem")),
            READABLE,
            Owner::ROOT,
            certificate_text(sources, name)?.as_bytes(),
        );
    }
    // Controllers sign the kubelets' certificates.
    config.file(
        &place("ca-key.pem".to_owned()),
        SECRET,
        Owner::ROOT,
        key_text(sources, "ca")?.expose().as_bytes(),
    );
    Ok(())
}

fn add_encryption(
    config: &mut NodeDescription,
    sources: &NodeSources<'_>,
    values: &TemplateValues<'_>,
) -> Result<(), RenderError> {
    let path = "files/etc/kubernetes/encryption.yaml";
    let mut text = Zeroizing::new(sources.templates.render(path, values)?);
    for EncryptionKey { secret: mark, file, .. } in &values.secrets_encryption_keys {
        let bytes = sources.credentials.secret(file);
        let bytes = bytes.ok_or_else(|| RenderError::NoCredential { file: file.clone() })?;
        // A team's own template that leaves out a key would lose the Secrets that it encrypted.
        if !text.contains(mark) {
            let reason = "it does not have every key of secrets_encryption_keys".to_owned();
            return Err(RenderError::Shape { document: path.to_owned(), reason });
        }
        let key = Zeroizing::new(STANDARD.encode(bytes));
        text = Zeroizing::new(text.replace(mark, &key));
    }
    config.file("/etc/kubernetes/encryption.yaml", SECRET, Owner::ROOT, text.as_bytes());
    Ok(())
}
