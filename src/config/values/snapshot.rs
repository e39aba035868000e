//! A snapshot of etcd's data, and the digest by which it is recognised.

use super::checked_text;
use crate::document::Fault;

checked_text!(
    /// The file name of a snapshot.
    SnapshotName,
    check_snapshot_name
);

checked_text!(
    /// A SHA-256 in hexadecimal digits.
    Sha256Digest,
    check_sha256
);

fn check_snapshot_name(text: &str) -> Result<(), Fault> {
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if is_plain && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.len() <= 200 {
        return Ok(());
    }
    let help = "it looks like etcd-0-20260301T120000Z.db, without the path; `aws s3 ls` of the cluster's snapshots/ lists them";
    Err(Fault::new(format!("'{text}' is not the name of a snapshot")).help(help))
}

fn check_sha256(text: &str) -> Result<(), Fault> {
    if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(());
    }
    Err(Fault::new(format!("'{text}' is not a SHA-256"))
        .help("it has 64 hexadecimal digits in lower case, as sha256sum prints them"))
}
