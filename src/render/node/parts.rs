//! What several roles have in common.

use super::super::engine::RenderError;
use super::super::kubeconfig::{ApiEndpoint, KubeconfigSource, render_kubeconfig};
use super::super::node_description::{NodeDescription, Owner};
use super::super::values::TemplateValues;
use super::deep_learning;
use super::from_template::{
    CONTAINERD_CONFIG, EXECUTABLE, READABLE, SECRET, add_template_file, add_template_unit,
};
use super::sources::NodeSources;
use crate::config::PoolImage;
use crate::credentials::SecretText;

/// A description with what every machine has: no automatic updates, sessions through SSM, and the scripts it needs.
pub(super) fn describe_base_machine(
    sources: &NodeSources<'_>,
    values: &TemplateValues<'_>,
    image: PoolImage,
    scripts: &[&str],
) -> Result<NodeDescription, RenderError> {
    let mut config = NodeDescription::default();
    match image {
        PoolImage::Flatcar => {
            config.mask("locksmithd.service");
            config.enable("amazon-ssm-agent.service");
            add_template_file(
                &mut config,
                sources,
                values,
                "/etc/flatcar/update.conf",
                READABLE,
                Owner::ROOT,
            )?;
        }
        PoolImage::DeepLearning => deep_learning::add_base(&mut config),
    }
    for library in sources.templates.names_in("files/opt/infra/lib/") {
        let path = library.trim_start_matches("files").to_owned();
        add_template_file(&mut config, sources, values, &path, READABLE, Owner::ROOT)?;
    }
    for script in scripts {
        add_template_file(
            &mut config,
            sources,
            values,
            &format!("/opt/infra/bin/{script}"),
            EXECUTABLE,
            Owner::ROOT,
        )?;
    }
    Ok(config)
}

/// How a machine joins: the identity whose key it has at first, and the API server that it requests its own certificate from.
pub(super) struct Bootstrap<'a> {
    pub(super) identity: &'a str,
    pub(super) api_server: &'a str,
}

/// Adds what every Kubernetes node has: kubelet, its settings and helpers, containerd's configuration.
pub(super) fn kubernetes_node(
    config: &mut NodeDescription,
    sources: &NodeSources<'_>,
    values: &TemplateValues<'_>,
    image: PoolImage,
    bootstrap: &Bootstrap<'_>,
) -> Result<(), RenderError> {
    let components = &sources.blueprint.components;
    config.download("/opt/bin/kubelet", EXECUTABLE, &components.kubelet);
    config.download("/opt/bin/kubectl", EXECUTABLE, &components.kubectl);
    config.download("/opt/infra/archives/cni-plugins.tgz", READABLE, &components.cni_plugins);
    let provider = "/opt/infra/credential-providers/ecr-credential-provider";
    config.download(provider, EXECUTABLE, &components.ecr_credential_provider);
    add_template_file(config, sources, values, "/etc/kubernetes/kubelet.yaml", SECRET, Owner::ROOT)?;
    for path in [
        "/etc/kubernetes/credential-providers.yaml",
        CONTAINERD_CONFIG,
        "/etc/modules-load.d/kubernetes.conf",
        "/etc/sysctl.d/90-kubernetes.conf",
        "/etc/systemd/logind.conf.d/90-kubelet.conf",
    ] {
        if path == CONTAINERD_CONFIG && image == PoolImage::DeepLearning {
            deep_learning::add_containerd(config, sources, values)?;
        } else {
            add_template_file(config, sources, values, path, READABLE, Owner::ROOT)?;
        }
    }
    let authority = certificate_text(sources, "ca")?;
    config.file("/etc/kubernetes/pki/ca.pem", READABLE, Owner::ROOT, authority.as_bytes());
    let bootstrap = kubeconfig_for(sources, bootstrap.identity, bootstrap.api_server)?;
    config.file("/etc/kubernetes/bootstrap.conf", SECRET, Owner::ROOT, bootstrap.expose().as_bytes());
    if image == PoolImage::Flatcar {
        config.drop_in(
            "containerd.service",
            "10-infra.conf",
            sources.templates.render("drop-ins/containerd.conf", values)?,
        );
    }
    config.enable("containerd.service");
    for name in [
        "node-environment.service",
        "unpack-cni.service",
        "kubelet.service",
        "signal-node.service",
        "watch-node.service",
        "remove-bootstrap.path",
    ] {
        add_template_unit(config, sources, values, name)?;
    }
    let name = "remove-bootstrap.service";
    config.idle_unit(name, sources.templates.render(&format!("units/{name}"), values)?);
    Ok(())
}

/// A kubeconfig for one identity, with everything embedded.
pub(super) fn kubeconfig_for(
    sources: &NodeSources<'_>,
    identity: &str,
    server: &str,
) -> Result<SecretText, RenderError> {
    Ok(render_kubeconfig(&KubeconfigSource {
        cluster: sources.blueprint.cluster.name.as_str(),
        user: identity,
        namespace: None,
        endpoint: &ApiEndpoint::at(server),
        certificate_authority: certificate_text(sources, "ca")?,
        client_certificate: certificate_text(sources, identity)?,
        client_key: key_text(sources, identity)?,
    }))
}

/// A certificate, or the error that says which is missing.
pub(super) fn certificate_text<'a>(sources: &NodeSources<'a>, name: &str) -> Result<&'a str, RenderError> {
    let found = sources.credentials.certificate(name);
    found.ok_or_else(|| RenderError::NoCredential { file: format!("{name}.pem") })
}

/// A private key, or the error that says which is missing.
pub(super) fn key_text<'a>(sources: &NodeSources<'a>, name: &str) -> Result<&'a SecretText, RenderError> {
    sources.credentials.key(name).ok_or_else(|| RenderError::NoCredential { file: format!("{name}-key.pem") })
}
