//! Builds an Ignition config: files, directories and units, in the order they were added.
//!
//! Contents are embedded; what nodes download has its SHA-256. The document has no nulls, so that it is short and stable.

use std::io::{self, Write};
use std::mem;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ignition_config::v3_3::{
    Config, Directory, Dropin, File, NodeGroup, NodeUser, Resource, Storage, Systemd, Unit, Verification,
};
use serde_json::Value;
use zeroize::Zeroizing;

use super::engine::RenderError;
use super::secret_document::{SecretConfig, SecretDocument, wipe_contents};
use crate::config::kubernetes_release::Download;

/// Who owns a file on a node; numbers, because names need not exist when Ignition runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(pub(super) u32);

impl Owner {
    pub(super) const ROOT: Self = Self(0);
    /// The user that etcd runs as on Flatcar.
    pub(super) const ETCD: Self = Self(232);
    /// The user that Prometheus runs as.
    pub(super) const NOBODY: Self = Self(65534);
}

/// What a file's embedded content begins with.
const EMBEDDED: &str = "data:;base64,";

/// A config that is being built; embedded contents, many of them keys, are wiped when it is dropped.
#[derive(Debug, Default)]
pub(super) struct IgnitionConfig {
    files: Vec<File>,
    directories: Vec<Directory>,
    units: Vec<Unit>,
}

impl IgnitionConfig {
    pub(super) fn file(&mut self, path: &str, mode: i64, owner: Owner, contents: &[u8]) {
        // Long enough from the beginning: a text that grows leaves copies behind.
        let mut source = String::with_capacity(EMBEDDED.len() + contents.len().div_ceil(3) * 4);
        source.push_str(EMBEDDED);
        STANDARD.encode_string(contents, &mut source);
        self.add_file(path, mode, owner, Resource { source: Some(source), ..Resource::default() });
    }

    pub(super) fn download(&mut self, path: &str, mode: i64, download: &Download) {
        let hash = format!("sha256-{}", download.sha256);
        let contents = Resource {
            source: Some(download.url.clone()),
            verification: Some(Verification { hash: Some(hash) }),
            ..Resource::default()
        };
        self.add_file(path, mode, Owner::ROOT, contents);
    }

    pub(super) fn directory(&mut self, path: &str, mode: i64, owner: Owner) {
        let mut directory = Directory::new(path.to_owned());
        directory.mode = Some(mode);
        (directory.user, directory.group) = owned_by(owner);
        self.directories.push(directory);
    }

    /// A unit of ours, started at boot.
    pub(super) fn unit(&mut self, name: &str, contents: String) {
        let unit = self.unit_named(name);
        unit.contents = Some(contents);
        unit.enabled = Some(true);
    }

    /// A unit of ours that another one starts.
    pub(super) fn idle_unit(&mut self, name: &str, contents: String) {
        self.unit_named(name).contents = Some(contents);
    }

    /// A unit of the operating system, started at boot.
    pub(super) fn enable(&mut self, name: &str) {
        self.unit_named(name).enabled = Some(true);
    }

    /// A unit of the operating system that must not run.
    pub(super) fn mask(&mut self, name: &str) {
        self.unit_named(name).mask = Some(true);
    }

    /// A change to a unit of the operating system.
    pub(super) fn drop_in(&mut self, unit: &str, name: &str, contents: String) {
        let mut drop_in = Dropin::new(name.to_owned());
        drop_in.contents = Some(contents);
        self.unit_named(unit).dropins.get_or_insert_default().push(drop_in);
    }

    /// The config as JSON.
    pub(super) fn finish(mut self) -> Result<Zeroizing<Vec<u8>>, RenderError> {
        let shape = |error: serde_json::Error| RenderError::Shape {
            document: "an Ignition config".to_owned(),
            reason: error.to_string(),
        };
        let config = SecretConfig(Config {
            storage: Some(Storage {
                directories: some_unless_empty(mem::take(&mut self.directories)),
                files: some_unless_empty(mem::take(&mut self.files)),
                ..Storage::default()
            }),
            systemd: Some(Systemd { units: some_unless_empty(mem::take(&mut self.units)) }),
            ..Config::default()
        });
        let mut document = SecretDocument(serde_json::to_value(&config.0).map_err(shape)?);
        remove_nulls(&mut document.0);
        let mut length = ByteCount(0);
        serde_json::to_writer_pretty(&mut length, &document.0).map_err(shape)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length.0 + 1));
        serde_json::to_writer_pretty(&mut *bytes, &document.0).map_err(shape)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn add_file(&mut self, path: &str, mode: i64, owner: Owner, contents: Resource) {
        let mut file = File::new(path.to_owned());
        file.mode = Some(mode);
        file.overwrite = Some(true);
        file.contents = Some(contents);
        (file.user, file.group) = owned_by(owner);
        self.files.push(file);
    }

    fn unit_named(&mut self, name: &str) -> &mut Unit {
        let place = self.units.iter().position(|unit| unit.name == name).unwrap_or_else(|| {
            self.units.push(Unit::new(name.to_owned()));
            self.units.len() - 1
        });
        &mut self.units[place]
    }
}

impl Drop for IgnitionConfig {
    fn drop(&mut self) {
        self.files.iter_mut().for_each(wipe_contents);
    }
}

/// Counts what is written to it.
struct ByteCount(usize);

impl Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn owned_by(owner: Owner) -> (Option<NodeUser>, Option<NodeGroup>) {
    let id = Some(i64::from(owner.0));
    match owner {
        Owner::ROOT => (None, None),
        Owner(_) => (Some(NodeUser { id, name: None }), Some(NodeGroup { id, name: None })),
    }
}

fn some_unless_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|_, entry| !entry.is_null());
            entries.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
