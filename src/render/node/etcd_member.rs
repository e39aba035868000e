//! The config of an etcd member: its own volume, its own certificate, snapshots, and a signal when it is up.

use super::super::engine::RenderError;
use super::super::node_description::{NodeDescription, Owner};
use super::super::values::TemplateValues;
use super::from_template::{READABLE, SECRET, add_template_file, add_template_unit};
use super::parts::{certificate_text, describe_base_machine, key_text};
use super::sources::NodeSources;
use crate::config::PoolImage;

const SCRIPTS: [&str; 8] = [
    "claim-volume",
    "defrag-etcd",
    "etcd-state",
    "restore-etcd",
    "run-etcd",
    "signal-etcd",
    "signal-stack",
    "snapshot-etcd",
];

/// Units that start at boot.
const UNITS: [&str; 7] = [
    "claim-volume.service",
    "var-lib-etcd.mount",
    "prepare-etcd.service",
    "etcd.service",
    "signal-etcd.service",
    "snapshot-etcd.timer",
    "defrag-etcd.timer",
];

/// Units that timers start.
const TIMED: [&str; 2] = ["snapshot-etcd.service", "defrag-etcd.service"];

pub(super) fn describe_etcd_member(
    sources: &NodeSources<'_>,
    member: u32,
) -> Result<NodeDescription, RenderError> {
    let values = TemplateValues::of_etcd_member(sources.blueprint, member);
    let mut config = describe_base_machine(sources, &values, PoolImage::Flatcar, &SCRIPTS)?;
    config.directory("/etc/etcd/pki", 0o700, Owner::ETCD);
    config.directory("/var/lib/etcd", 0o700, Owner::ETCD);
    let identity = format!("etcd-{member}");
    let authority = certificate_text(sources, "etcd-ca")?;
    config.file("/etc/etcd/pki/ca.pem", READABLE, Owner::ETCD, authority.as_bytes());
    config.file(
        "/etc/etcd/pki/member.pem",
        READABLE,
        Owner::ETCD,
        certificate_text(sources, &identity)?.as_bytes(),
    );
    config.file(
        "/etc/etcd/pki/member-key.pem",
        SECRET,
        Owner::ETCD,
        key_text(sources, &identity)?.expose().as_bytes(),
    );
    add_template_file(&mut config, sources, &values, "/etc/etcd/etcd.env", READABLE, Owner::ROOT)?;
    add_template_file(&mut config, sources, &values, "/etc/infra/etcd-image.env", READABLE, Owner::ROOT)?;
    if sources.blueprint.cluster.etcd.restore.is_some() {
        add_template_file(&mut config, sources, &values, "/etc/infra/restore.env", READABLE, Owner::ROOT)?;
    }
    config.enable("docker.service");
    for name in UNITS {
        add_template_unit(&mut config, sources, &values, name)?;
    }
    for name in TIMED {
        config.idle_unit(name, sources.templates.render(&format!("units/{name}"), &values)?);
    }
    Ok(config)
}
