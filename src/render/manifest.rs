//! The Kubernetes objects that controllers apply: ours, then the team's own.

use std::collections::BTreeMap;

use super::engine::{RenderError, Templates};
use super::values::TemplateValues;
use crate::blueprint::Blueprint;
use crate::credentials::Credentials;

/// Every manifest by file name; names give the order they are applied in.
pub(super) fn render_manifests(
    blueprint: &Blueprint,
    credentials: &Credentials,
    templates: &Templates,
) -> Result<BTreeMap<String, String>, RenderError> {
    let values = TemplateValues::of_manifests(blueprint, credentials);
    let mut manifests = BTreeMap::new();
    for template in templates.names_in("manifests/") {
        let name = template.trim_start_matches("manifests/").to_owned();
        let text = templates.render(&template, &values)?;
        // A manifest that is empty for this cluster is left out.
        if !text.trim().is_empty() {
            manifests.insert(name, text);
        }
    }
    Ok(manifests)
}
