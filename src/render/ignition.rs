//! A machine's description as an Ignition config, which Flatcar applies before its first boot.
//!
//! Contents are embedded; what nodes download has its SHA-256. The document has no nulls, so that it is short and stable.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ignition_config::v3_3::{
    Config, Directory, Dropin, File, NodeGroup, NodeUser, Resource, Storage, Systemd, Unit, Verification,
};
use serde_json::Value;
use zeroize::Zeroizing;

use super::engine::RenderError;
use super::node_description::{FileSource, NodeDescription, NodeDirectory, NodeFile, NodeUnit, Owner};
use super::secret_document::{SecretConfig, SecretDocument};

/// What a file's embedded content begins with.
const EMBEDDED: &str = "data:;base64,";

/// The description as an Ignition config in JSON.
pub(super) fn ignition_config(description: &NodeDescription) -> Result<Zeroizing<Vec<u8>>, RenderError> {
    let shape = |error: serde_json::Error| RenderError::Shape {
        document: "an Ignition config".to_owned(),
        reason: error.to_string(),
    };
    let config = SecretConfig(Config {
        storage: Some(Storage {
            directories: some_unless_empty(description.directories.iter().map(ignition_directory).collect()),
            files: some_unless_empty(description.files.iter().map(ignition_file).collect()),
            ..Storage::default()
        }),
        systemd: Some(Systemd {
            units: some_unless_empty(description.units.iter().map(ignition_unit).collect()),
        }),
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

fn ignition_file(described: &NodeFile) -> File {
    let contents = match &described.source {
        FileSource::Embedded(bytes) => {
            // Long enough from the beginning: a text that grows leaves copies behind.
            let mut source = String::with_capacity(EMBEDDED.len() + bytes.len().div_ceil(3) * 4);
            source.push_str(EMBEDDED);
            STANDARD.encode_string(bytes, &mut source);
            Resource { source: Some(source), ..Resource::default() }
        }
        FileSource::Download(download) => Resource {
            source: Some(download.url.clone()),
            verification: Some(Verification { hash: Some(format!("sha256-{}", download.sha256)) }),
            ..Resource::default()
        },
    };
    let mut file = File::new(described.path.clone());
    file.mode = Some(i64::from(described.mode));
    file.overwrite = Some(true);
    file.contents = Some(contents);
    (file.user, file.group) = owned_by(described.owner);
    file
}

fn ignition_directory(described: &NodeDirectory) -> Directory {
    let mut directory = Directory::new(described.path.clone());
    directory.mode = Some(i64::from(described.mode));
    (directory.user, directory.group) = owned_by(described.owner);
    directory
}

fn ignition_unit(described: &NodeUnit) -> Unit {
    let mut unit = Unit::new(described.name.clone());
    unit.contents.clone_from(&described.contents);
    unit.enabled = described.enabled.then_some(true);
    unit.mask = described.masked.then_some(true);
    let drop_ins = described.drop_ins.iter().map(|described| {
        let mut drop_in = Dropin::new(described.name.clone());
        drop_in.contents = Some(described.contents.clone());
        drop_in
    });
    unit.dropins = some_unless_empty(drop_ins.collect());
    unit
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
