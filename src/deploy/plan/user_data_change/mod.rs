//! A change of user data into the files and units of a machine that change, and how.
//!
//! User data only names configurations in S3, by their digests. Both sides are read, merged as Ignition does it, and compared. What
//! holds keys is named and never shown.

mod configs;
mod file_change;

use std::collections::BTreeMap;

use serde_json::Value;
use zeroize::Zeroizing;

pub(crate) use file_change::{FileChange, TextChange};

use self::configs::compare_configs;
use super::comparison::PropertyChange;
use crate::aws::{AwsError, Clients};
use crate::render::BootObject;

const OLD_CONFIG_DELETED: &str = "the old configuration is no longer in the bucket";
const NOT_RENDERED: &str = "the new configuration was not rendered";
const NO_DOCUMENT: &str = "the configuration is no JSON";
const ARCHIVE: &str =
    "the boot archive of machines on the Deep Learning image changes; plan does not compare its files";
const NOT_OURS: &str = "it is no user data of ours";

/// Which files change with user data: old configurations come from S3, new ones from what was rendered, by the key after the prefix.
pub(crate) async fn explain_user_data(
    clients: &Clients,
    change: &PropertyChange,
    rendered: &BTreeMap<String, BootObject<'_>>,
) -> Result<Vec<FileChange>, AwsError> {
    if is_script(change.from.as_ref()) || is_script(change.to.as_ref()) {
        return Ok(vec![unknown_change(&change.path, ARCHIVE)]);
    }
    let (Some(old_stub), Some(new_stub)) = (read_stub(change.from.as_ref()), read_stub(change.to.as_ref()))
    else {
        return Ok(vec![unknown_change(&change.path, NOT_OURS)]);
    };
    let mut unknowns = Vec::new();
    let mut old = vec![old_stub.own];
    for source in &old_stub.sources {
        match read_old(clients, source, rendered).await? {
            Ok(config) => old.push(config),
            Err(reason) => unknowns.push(unknown_change(key_behind_prefix(source), &reason)),
        }
    }
    let mut new = vec![new_stub.own];
    for source in &new_stub.sources {
        let key = key_behind_prefix(source);
        match rendered.get(key).map_or(Err(NOT_RENDERED), |object| parse_document(&object.file.bytes)) {
            Ok(config) => new.push(config),
            Err(reason) => unknowns.push(unknown_change(key, reason)),
        }
    }
    // Compared with half a configuration, everything in the other half would be new.
    if !unknowns.is_empty() {
        old.truncate(1);
        new.truncate(1);
    }
    let mut changes = compare_configs(&old, &new);
    changes.extend(unknowns);
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// The configuration in user data itself, and the S3 objects that it names.
struct Stub {
    own: Value,
    sources: Vec<String>,
}

/// Whether user data is a script that unpacks an archive.
fn is_script(user_data: Option<&Value>) -> bool {
    let text = user_data.and_then(|user_data| user_data["Fn::Base64"]["Fn::Sub"].as_str());
    text.is_some_and(|text| text.starts_with("#!"))
}

fn read_stub(user_data: Option<&Value>) -> Option<Stub> {
    let text = user_data?["Fn::Base64"]["Fn::Sub"].as_str()?;
    let mut own: Value = serde_json::from_str(text).ok()?;
    let ignition = own.as_object_mut()?.remove("ignition")?;
    let merged = ignition["config"]["merge"].as_array().into_iter().flatten();
    let sources = merged.filter_map(|item| item["source"].as_str().map(str::to_owned)).collect();
    Some(Stub { own, sources })
}

/// A configuration of running machines, or why it is not known.
async fn read_old(
    clients: &Clients,
    source: &str,
    rendered: &BTreeMap<String, BootObject<'_>>,
) -> Result<Result<Value, String>, AwsError> {
    // The key is the digest of the content: what has the same key is the same.
    if let Some(object) = rendered.get(key_behind_prefix(source)) {
        return Ok(parse_document(&object.file.bytes).map_err(str::to_owned));
    }
    let Some((bucket, key)) = source.strip_prefix("s3://").and_then(|place| place.split_once('/')) else {
        return Ok(Err(NOT_OURS.to_owned()));
    };
    judge_change(clients.object_bytes(bucket, key).await)
}

/// A plan is useful even if old configurations are deleted or may not be read; only other failures end it.
fn judge_change(
    answer: Result<Option<Zeroizing<Vec<u8>>>, AwsError>,
) -> Result<Result<Value, String>, AwsError> {
    match answer {
        Ok(Some(bytes)) => Ok(parse_document(&bytes).map_err(str::to_owned)),
        Ok(None) => Ok(Err(OLD_CONFIG_DELETED.to_owned())),
        Err(error) if error.is_missing_bucket() => Ok(Err(OLD_CONFIG_DELETED.to_owned())),
        Err(error) if error.is_denied() => {
            Ok(Err(format!("access to the old configuration is denied: {error}")))
        }
        Err(error) => Err(error),
    }
}

fn parse_document(bytes: &[u8]) -> Result<Value, &'static str> {
    serde_json::from_slice(bytes).map_err(|_| NO_DOCUMENT)
}

/// Cluster, role and digest.
fn key_behind_prefix(source: &str) -> &str {
    source.rmatch_indices('/').nth(2).map_or(source, |(slash, _)| &source[slash + 1..])
}

fn unknown_change(path: &str, reason: &str) -> FileChange {
    FileChange { path: path.to_owned(), change: TextChange::Unknown { reason: reason.to_owned() } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeroize::Zeroizing;

    use super::{NO_DOCUMENT, OLD_CONFIG_DELETED, judge_change, key_behind_prefix, read_stub};
    use crate::aws::{AwsError, Cause};

    #[test]
    fn user_data_names_its_configurations() {
        let text = r#"{"ignition": {"config": {"merge": [{"source": "s3://b/p/q/paddle/etcd-0/12.ign"}]}}, "storage": {}}"#;
        let stub = read_stub(Some(&json!({"Fn::Base64": {"Fn::Sub": text}})));
        let keys: Vec<&str> =
            stub.iter().flat_map(|stub| &stub.sources).map(|source| key_behind_prefix(source)).collect();
        assert_eq!(keys, ["paddle/etcd-0/12.ign"]);
        assert_eq!(stub.map(|stub| stub.own), Some(json!({"storage": {}})));
        assert!(read_stub(Some(&json!("IyEvYmluL3No"))).is_none());
    }

    fn refusal(code: &str) -> AwsError {
        AwsError {
            operation: "s3:GetObject",
            cause: Cause::Refused,
            code: Some(code.to_owned()),
            message: "no".to_owned(),
            request_id: None,
            clock: None,
        }
    }

    #[test]
    fn an_unreadable_configuration_is_reported_and_ends_nothing() -> Result<(), AwsError> {
        let bytes = |text: &str| Ok(Some(Zeroizing::new(text.as_bytes().to_vec())));
        assert_eq!(judge_change(bytes("{}"))?, Ok(json!({})));
        assert_eq!(judge_change(bytes("#!/bin/sh"))?, Err(NO_DOCUMENT.to_owned()));
        assert_eq!(judge_change(Ok(None))?, Err(OLD_CONFIG_DELETED.to_owned()));
        assert_eq!(judge_change(Err(refusal("NoSuchBucket")))?, Err(OLD_CONFIG_DELETED.to_owned()));
        let denied = judge_change(Err(refusal("AccessDenied")))?.err().unwrap_or_default();
        assert!(denied.ends_with("is denied: s3:GetObject: AccessDenied: no"), "{denied}");
        assert!(judge_change(Err(refusal("SlowDown"))).is_err());
        Ok(())
    }
}
