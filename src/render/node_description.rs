//! What a machine is made of, whatever its image: files, directories and units, in the order they were added.
//!
//! A renderer turns it into what the image's first boot understands: `ignition` for Flatcar, `node_archive` for the Deep Learning image.

use zeroize::Zeroizing;

use crate::config::kubernetes_release::Download;

/// Who owns a file on a node; numbers, because names need not exist when files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(pub(super) u32);

impl Owner {
    pub(super) const ROOT: Self = Self(0);
    /// The user that etcd runs as on Flatcar.
    pub(super) const ETCD: Self = Self(232);
    /// The user that Prometheus runs as.
    pub(super) const NOBODY: Self = Self(65534);
}

/// Files, directories and units of a machine; contents, many of them keys, are wiped when it is dropped.
#[derive(Debug, Default)]
pub(super) struct NodeDescription {
    pub(super) files: Vec<NodeFile>,
    pub(super) directories: Vec<NodeDirectory>,
    pub(super) units: Vec<NodeUnit>,
}

/// A file of a machine.
#[derive(Debug)]
pub(super) struct NodeFile {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) owner: Owner,
    pub(super) source: FileSource,
}

/// Where the bytes of a file come from.
#[derive(Debug)]
pub(super) enum FileSource {
    Embedded(Zeroizing<Vec<u8>>),
    /// The machine downloads the file and compares its SHA-256.
    Download(Download),
}

/// A directory of a machine.
#[derive(Debug)]
pub(super) struct NodeDirectory {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) owner: Owner,
}

/// A unit of ours, or a change to one of the operating system.
#[derive(Debug)]
pub(super) struct NodeUnit {
    pub(super) name: String,
    pub(super) contents: Option<String>,
    /// Started at boot.
    pub(super) enabled: bool,
    /// Must not run.
    pub(super) masked: bool,
    pub(super) drop_ins: Vec<DropIn>,
}

/// A change to a unit.
#[derive(Debug)]
pub(super) struct DropIn {
    pub(super) name: String,
    pub(super) contents: String,
}

impl NodeDescription {
    pub(super) fn file(&mut self, path: &str, mode: u32, owner: Owner, contents: &[u8]) {
        let source = FileSource::Embedded(Zeroizing::new(contents.to_vec()));
        self.files.push(NodeFile { path: path.to_owned(), mode, owner, source });
    }

    pub(super) fn download(&mut self, path: &str, mode: u32, download: &Download) {
        let source = FileSource::Download(download.clone());
        self.files.push(NodeFile { path: path.to_owned(), mode, owner: Owner::ROOT, source });
    }

    pub(super) fn directory(&mut self, path: &str, mode: u32, owner: Owner) {
        self.directories.push(NodeDirectory { path: path.to_owned(), mode, owner });
    }

    /// A unit of ours, started at boot.
    pub(super) fn unit(&mut self, name: &str, contents: String) {
        let unit = self.unit_named(name);
        unit.contents = Some(contents);
        unit.enabled = true;
    }

    /// A unit of ours that another one starts.
    pub(super) fn idle_unit(&mut self, name: &str, contents: String) {
        self.unit_named(name).contents = Some(contents);
    }

    /// A unit of the operating system, started at boot.
    pub(super) fn enable(&mut self, name: &str) {
        self.unit_named(name).enabled = true;
    }

    /// A unit of the operating system that must not run.
    pub(super) fn mask(&mut self, name: &str) {
        self.unit_named(name).masked = true;
    }

    /// A change to a unit.
    pub(super) fn drop_in(&mut self, unit: &str, name: &str, contents: String) {
        self.unit_named(unit).drop_ins.push(DropIn { name: name.to_owned(), contents });
    }

    fn unit_named(&mut self, name: &str) -> &mut NodeUnit {
        let place = self.units.iter().position(|unit| unit.name == name).unwrap_or_else(|| {
            let name = name.to_owned();
            self.units.push(NodeUnit {
                name,
                contents: None,
                enabled: false,
                masked: false,
                drop_ins: Vec::new(),
            });
            self.units.len() - 1
        });
        &mut self.units[place]
    }
}
