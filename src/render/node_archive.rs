//! A machine's description as a tar archive: what the Deep Learning image unpacks over its root directory.
//!
//! The same description gives the same bytes: no times, no names of users. What is downloaded and which units are started are lists in
//! files of their own, which `apply-node` reads.

use std::fmt::Write as _;

use zeroize::Zeroizing;

use super::engine::RenderError;
use super::node_description::{FileSource, NodeDescription, Owner};

const BLOCK: usize = 512;
const UNITS: &str = "etc/systemd/system";
/// What machines download: a SHA-256, a mode, a path and a URL a line.
const DOWNLOADS: &str = "etc/infra/downloads";
/// Which units are masked and which are started: a word and a unit a line.
const UNIT_LIST: &str = "etc/infra/units";

/// One entry of an archive.
enum Entry<'a> {
    Directory,
    File(&'a [u8]),
    Link(&'a str),
}

/// The description as a tar archive.
pub(super) fn node_archive(description: &NodeDescription) -> Result<Zeroizing<Vec<u8>>, RenderError> {
    let mut archive = Archive(Zeroizing::new(Vec::with_capacity(size_of_all(description))));
    for directory in &description.directories {
        archive.add(&directory.path, directory.mode, directory.owner, &Entry::Directory)?;
    }
    let (mut downloads, mut units) = (String::new(), String::new());
    for file in &description.files {
        match &file.source {
            FileSource::Embedded(bytes) => {
                archive.add(&file.path, file.mode, file.owner, &Entry::File(bytes))?;
            }
            FileSource::Download(download) => {
                let _ =
                    writeln!(downloads, "{} {:o} {} {}", download.sha256, file.mode, file.path, download.url);
            }
        }
    }
    for unit in &description.units {
        let name = &unit.name;
        if let Some(contents) = &unit.contents {
            archive.add(&format!("{UNITS}/{name}"), 0o644, Owner::ROOT, &Entry::File(contents.as_bytes()))?;
        }
        for drop_in in &unit.drop_ins {
            let path = format!("{UNITS}/{name}.d/{}", drop_in.name);
            archive.add(&path, 0o644, Owner::ROOT, &Entry::File(drop_in.contents.as_bytes()))?;
        }
        if unit.masked {
            archive.add(&format!("{UNITS}/{name}"), 0o777, Owner::ROOT, &Entry::Link("/dev/null"))?;
            let _ = writeln!(units, "mask {name}");
        }
        if unit.enabled {
            let _ = writeln!(units, "start {name}");
        }
    }
    archive.add(DOWNLOADS, 0o644, Owner::ROOT, &Entry::File(downloads.as_bytes()))?;
    archive.add(UNIT_LIST, 0o644, Owner::ROOT, &Entry::File(units.as_bytes()))?;
    archive.0.extend([0; 2 * BLOCK]);
    Ok(archive.0)
}

struct Archive(Zeroizing<Vec<u8>>);

impl Archive {
    /// An entry in the format of POSIX.1-1988, which every tar reads.
    fn add(&mut self, path: &str, mode: u32, owner: Owner, entry: &Entry<'_>) -> Result<(), RenderError> {
        let name = path.trim_start_matches('/');
        let (kind, contents, target): (u8, &[u8], &str) = match entry {
            Entry::Directory => (b'5', &[], ""),
            Entry::File(bytes) => (b'0', bytes, ""),
            Entry::Link(target) => (b'2', &[], target),
        };
        let mut header = [0_u8; BLOCK];
        if name.len() > 100 {
            let reason = format!("the path {path} has more than 100 bytes");
            return Err(RenderError::Shape { document: "a node's archive".to_owned(), reason });
        }
        write_at(&mut header, 0, name.as_bytes());
        write_at(&mut header, 100, format!("{mode:07o}").as_bytes());
        write_at(&mut header, 108, format!("{:07o}", owner.0).as_bytes());
        write_at(&mut header, 116, format!("{:07o}", owner.0).as_bytes());
        write_at(&mut header, 124, format!("{:011o}", contents.len()).as_bytes());
        write_at(&mut header, 136, b"00000000000");
        write_at(&mut header, 148, b"        ");
        header[156] = kind;
        write_at(&mut header, 157, target.as_bytes());
        write_at(&mut header, 257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        write_at(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
        self.0.extend(header);
        self.0.extend(contents);
        let rest = contents.len() % BLOCK;
        if rest > 0 {
            self.0.extend(std::iter::repeat_n(0, BLOCK - rest));
        }
        Ok(())
    }
}

fn write_at(header: &mut [u8; BLOCK], offset: usize, bytes: &[u8]) {
    header[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// At least what the archive will have: one that grows leaves copies of keys behind.
fn size_of_all(description: &NodeDescription) -> usize {
    let padded = |length: usize| (length.div_ceil(BLOCK) + 1) * BLOCK;
    let files = description.files.iter().map(|file| match &file.source {
        FileSource::Embedded(bytes) => padded(bytes.len()),
        FileSource::Download(_) => BLOCK,
    });
    let units = description.units.iter().map(|unit| {
        let drop_ins: usize = unit.drop_ins.iter().map(|drop_in| padded(drop_in.contents.len())).sum();
        padded(unit.contents.as_ref().map_or(0, String::len)) + drop_ins + 2 * BLOCK
    });
    files.sum::<usize>() + units.sum::<usize>() + (description.directories.len() + 16) * BLOCK
}
