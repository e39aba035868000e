//! What machines on AWS's Deep Learning Base image (Ubuntu) have instead of Flatcar's own parts.

use super::super::engine::RenderError;
use super::super::node_description::{NodeDescription, Owner};
use super::super::values::TemplateValues;
use super::from_template::{CONTAINERD_CONFIG, READABLE, add_template_file, add_template_unit};
use super::sources::NodeSources;

/// The scripts that only these machines have.
pub(super) const SCRIPTS: [&str; 5] =
    ["apply-node", "check-driver", "check-shutdown", "release-drives", "reset-firewall"];

/// Units of the image that must not run.
const MASKED: [&str; 9] = [
    // Machines are replaced, not updated in place.
    "apt-daily.service",
    "apt-daily.timer",
    "apt-daily-upgrade.service",
    "apt-daily-upgrade.timer",
    "unattended-upgrades.service",
    // It sets the kernel to drop what is forwarded, as traffic between pods is.
    "docker.service",
    "docker.socket",
    // It puts the machine's own drives together at each boot, as prepare-scratch does.
    "dlami-nvme.service",
    // The kubelet does not start with swap.
    "swap.target",
];

pub(super) fn add_base(config: &mut NodeDescription) {
    for name in MASKED {
        config.mask(name);
    }
    // unattended-upgrades limits what delays a shutdown to 30 s, by a file that systemd reads after ours. An empty file of the same name
    // below /etc replaces it.
    let path = "/etc/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf";
    config.file(path, READABLE, Owner::ROOT, b"");
}

/// One configuration, which containerd reads by default, with NVIDIA's runtime of the image.
pub(super) fn add_containerd(
    config: &mut NodeDescription,
    sources: &NodeSources<'_>,
    values: &TemplateValues<'_>,
) -> Result<(), RenderError> {
    let text = sources.templates.render("files/etc/containerd/config-nvidia.toml", values)?;
    config.file(CONTAINERD_CONFIG, READABLE, Owner::ROOT, text.as_bytes());
    Ok(())
}

/// What must be true before pods run, and before the machine signals that it is ready.
pub(super) fn add_checks(
    config: &mut NodeDescription,
    sources: &NodeSources<'_>,
    values: &TemplateValues<'_>,
) -> Result<(), RenderError> {
    add_template_file(config, sources, values, "/etc/infra/gpu.env", READABLE, Owner::ROOT)?;
    add_template_file(config, sources, values, "/etc/sysctl.d/91-huge-pages.conf", READABLE, Owner::ROOT)?;
    add_template_unit(config, sources, values, "check-driver.service")?;
    for name in ["kubelet", "signal-node"] {
        let text = sources.templates.render(&format!("drop-ins/{name}-checks.conf"), values)?;
        config.drop_in(&format!("{name}.service"), "20-checks.conf", text);
    }
    Ok(())
}
