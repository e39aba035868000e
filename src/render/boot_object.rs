//! What machines read from S3 at boot, and under which keys.

use std::collections::BTreeMap;

use super::asset::Asset;
use super::assets::{BootConfig, BootForm};
use crate::blueprint::Role;

/// A file that machines of a role read from S3 at boot.
#[derive(Clone, Copy, Debug)]
pub struct BootObject<'a> {
    /// The role.
    pub role: &'a Role,
    /// The file.
    pub file: &'a Asset,
}

/// Every object that machines read at boot, by its key after the prefix.
#[must_use]
pub fn boot_objects<'a>(
    cluster: &str,
    configs: impl IntoIterator<Item = &'a BootConfig>,
) -> BTreeMap<String, BootObject<'a>> {
    let mut objects = BTreeMap::new();
    for BootConfig { role, form, file, snippets } in configs {
        for file in std::iter::once(file).chain(snippets) {
            objects.insert(object_key(cluster, role, *form, &file.sha512()), BootObject { role, file });
        }
    }
    objects
}

/// The key of a role's config, after the bucket and the prefix.
pub(super) fn object_key(cluster: &str, role: &Role, form: BootForm, digest: &str) -> String {
    format!("{cluster}/{}/{digest}.{}", role.name(), form.extension())
}
