//! The config of a pool's node: kubelet, the shared file system, and GPUs and instance store where the pool has them.

use super::super::engine::RenderError;
use super::super::mount_unit::mount_unit;
use super::super::node_description::{NodeDescription, Owner};
use super::super::values::TemplateValues;
use super::deep_learning;
use super::from_template::{READABLE, add_template_file, add_template_unit};
use super::parts::{Bootstrap, describe_base_machine, kubernetes_node};
use super::sources::NodeSources;
use crate::blueprint::PoolNodes;
use crate::config::PoolImage;

pub(super) fn describe_worker(
    sources: &NodeSources<'_>,
    pool: &PoolNodes,
) -> Result<NodeDescription, RenderError> {
    let values = TemplateValues::of_pool(sources.blueprint, pool);
    let mut scripts = vec!["node-environment", "signal-node", "signal-stack", "unpack-cni", "watch-node"];
    if pool.spot {
        scripts.push("watch-spot");
    }
    if pool.gpu_driver.is_some() {
        scripts.push("fetch-nvidia-runtime");
    }
    if sources.blueprint.cluster.file_system.is_some() {
        scripts.push("mount-file-system");
    }
    if pool.instance_store.is_some() {
        scripts.push("prepare-scratch");
    }
    if pool.image == PoolImage::DeepLearning {
        scripts.extend(deep_learning::SCRIPTS);
    }
    let mut config = describe_base_machine(sources, &values, pool.image, &scripts)?;
    let api_server = format!("https://{}", sources.blueprint.names.internal_api);
    let bootstrap = Bootstrap { identity: "worker", api_server: &api_server };
    kubernetes_node(&mut config, sources, &values, pool.image, &bootstrap)?;
    if pool.image == PoolImage::DeepLearning {
        deep_learning::add_checks(&mut config, sources, &values)?;
    }
    if pool.efa.is_some() {
        let text = sources.templates.render("drop-ins/containerd-efa.conf", &values)?;
        config.drop_in("containerd.service", "30-efa.conf", text);
    }
    if let Some(driver) = pool.gpu_driver {
        config.file(
            "/etc/flatcar/enabled-sysext.conf",
            READABLE,
            Owner::ROOT,
            format!("{}\n", driver.extension()).as_bytes(),
        );
        add_template_file(&mut config, sources, &values, "/etc/infra/nvidia.env", READABLE, Owner::ROOT)?;
        // The runtime's extension makes containerd read this file instead of ours.
        add_template_file(
            &mut config,
            sources,
            &values,
            "/etc/containerd/config-nvidia.toml",
            READABLE,
            Owner::ROOT,
        )?;
        add_template_unit(&mut config, sources, &values, "nvidia-runtime.service")?;
    }
    if let Some(file_system) = &sources.blueprint.cluster.file_system {
        let path = file_system.mount_path.as_str();
        config.directory(path, 0o755, Owner::ROOT);
        config.idle_unit(&mount_unit(path), sources.templates.render("units/efs.mount", &values)?);
        add_template_file(
            &mut config,
            sources,
            &values,
            "/etc/infra/file-system.env",
            READABLE,
            Owner::ROOT,
        )?;
        add_template_unit(&mut config, sources, &values, "mount-file-system.service")?;
    }
    if pool.spot {
        add_template_unit(&mut config, sources, &values, "watch-spot.service")?;
    }
    if pool.instance_store.is_some() {
        add_template_unit(&mut config, sources, &values, "scratch.service")?;
        for (unit, template) in [
            ("containerd.service", "containerd-scratch"),
            ("remove-bootstrap.path", "remove-bootstrap-scratch"),
        ] {
            let text = sources.templates.render(&format!("drop-ins/{template}.conf"), &values)?;
            config.drop_in(unit, "20-scratch.conf", text);
        }
    }
    Ok(config)
}
