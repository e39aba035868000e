//! Files and units of a machine that come from the template of the same name, and the modes of files.

use super::super::engine::RenderError;
use super::super::node_description::{NodeDescription, Owner};
use super::super::values::TemplateValues;
use super::sources::NodeSources;

/// Files that only their owner may read, and files that everybody may read.
pub(super) const SECRET: u32 = 0o600;
pub(super) const READABLE: u32 = 0o644;
pub(super) const EXECUTABLE: u32 = 0o755;

/// What containerd reads.
pub(super) const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";

/// Adds the file whose template has the same path below `files/`.
pub(super) fn add_template_file(
    config: &mut NodeDescription,
    sources: &NodeSources<'_>,
    values: &TemplateValues<'_>,
    path: &str,
    mode: u32,
    owner: Owner,
) -> Result<(), RenderError> {
    let text = sources.templates.render(&format!("files{path}"), values)?;
    config.file(path, mode, owner, text.as_bytes());
    Ok(())
}

/// Adds a unit that starts at boot.
pub(super) fn add_template_unit(
    config: &mut NodeDescription,
    sources: &NodeSources<'_>,
    values: &TemplateValues<'_>,
    name: &str,
) -> Result<(), RenderError> {
    config.unit(name, sources.templates.render(&format!("units/{name}"), values)?);
    Ok(())
}
