//! A snapshot of etcd's data, and the digest by which it is recognised.

use super::checked_text;
use crate::document::Fault;

checked_text!(
    /// The file name of a snapshot.
    SnapshotName,
    check_snapshot_name
);

impl SnapshotName {
    /// Whether members write this object every hour, so that only one of its versions is a certain snapshot.
    #[must_use]
    pub fn is_overwritten(&self) -> bool {
        self.as_str() == "etcd.db"
    }
}

checked_text!(
    /// A version of an object in S3.
    ObjectVersion,
    check_object_version
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
    let help = "it looks like etcd-20260301T120000Z.db, without the path; `aws s3 ls` of the cluster's snapshots/ lists them";
    Err(Fault::new(format!("'{text}' is not the name of a snapshot")).help(help))
}

fn check_object_version(text: &str) -> Result<(), Fault> {
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~+/=-".contains(&b));
    if is_plain && (1..=1024).contains(&text.len()) {
        return Ok(());
    }
    Err(Fault::new(format!("'{text}' is not the version of an object"))
        .help("`aws s3api list-object-versions` lists the versions of the cluster's snapshots"))
}

fn check_sha256(text: &str) -> Result<(), Fault> {
    if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(());
    }
    Err(Fault::new(format!("'{text}' is not a SHA-256"))
        .help("it has 64 hexadecimal digits in lower case, as sha256sum prints them"))
}
