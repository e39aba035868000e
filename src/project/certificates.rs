//! Which certificates a cluster needs and its directory does not have.

use super::Project;
use crate::credentials::InventoryEntry;

impl Project {
    /// The files of certificates that are missing among those on disk.
    pub(crate) fn missing_certificates(&self, on_disk: &[InventoryEntry]) -> Vec<String> {
        let identities = &self.blueprint.identities;
        let authorities = identities.authorities.iter().map(|authority| &authority.name);
        let leaves = identities.certificates.iter().map(|leaf| &leaf.name);
        let wanted = authorities.chain(leaves).map(|name| format!("{name}.pem"));
        wanted.filter(|file| on_disk.iter().all(|entry| entry.file != *file)).collect()
    }
}
