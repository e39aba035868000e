//! Lets S3 delete old snapshots of etcd, by a rule among the bucket's own. A cluster works without it, so what S3 refuses is a warning.

use std::time::Duration;

use crate::aws::{AwsError, Cause};
use crate::config::values::S3Uri;
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::deploy::state::snapshots::SnapshotStore;

/// How often the rule is written again that another process has overwritten: S3 replaces all rules of a bucket at once, and knows no
/// condition for it.
const MOST_ATTEMPTS: usize = 3;
/// How long another process may take between its reading and its writing.
const PAUSE: Duration = Duration::from_secs(2);

/// What happened to the rule.
enum Written {
    /// The rule existed already.
    Unchanged,
    /// The rule was added, and still existed afterwards.
    Added,
    /// Other processes overwrite the rule.
    Overwritten,
}

/// Adds the rule to a bucket that keeps versions, unless it is there. In other buckets each snapshot has a key of its own, and none
/// is deleted: by its age alone a rule would delete the last good one, too.
pub(crate) async fn ensure_snapshot_rule(
    run: &Run,
    s3_uri: &S3Uri,
    cluster: &str,
) -> Result<(), DeployError> {
    let store = SnapshotStore::new(s3_uri, cluster);
    let refusal = match add_rule(run, &store).await {
        Ok(Written::Unchanged) => return Ok(()),
        Ok(Written::Added) => {
            let text =
                format!("{}: old versions of etcd's snapshots are deleted from now on", store.address());
            run.progress.note(text);
            return Ok(());
        }
        Ok(Written::Overwritten) => "other processes change the rules of the bucket meanwhile".to_owned(),
        Err(DeployError::Aws(error)) if error.cause == Cause::Refused => reason_of(&error),
        Err(error) => return Err(error),
    };
    run.progress.warn(format!(
        "old versions of etcd's snapshots in {} are never deleted: {refusal}; run `infra up` again, or add this rule to the lifecycle \
         rules of bucket {}: {}",
        store.address(),
        store.bucket,
        store.expiry().json(),
    ));
    Ok(())
}

fn reason_of(error: &AwsError) -> String {
    if error.is_denied() { format!("the caller may not {}", error.operation) } else { error.to_string() }
}

async fn add_rule(run: &Run, store: &SnapshotStore) -> Result<Written, DeployError> {
    let (bucket, expiry) = (store.bucket.as_str(), store.expiry());
    if !run.clients.keeps_versions(bucket).await? {
        return Ok(Written::Unchanged);
    }
    for attempt in 0..=MOST_ATTEMPTS {
        let rules = run.clients.lifecycle_rules(bucket).await?;
        if rules.has_rule(&expiry) {
            return Ok(if attempt == 0 { Written::Unchanged } else { Written::Added });
        }
        if attempt == MOST_ATTEMPTS {
            break;
        }
        match run.clients.put_lifecycle_rules(bucket, rules.with(&expiry)?).await {
            Err(error) if !error.is_bucket_conflict() => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        let ended = |end| Run::still_running(end, "the lifecycle rules of the bucket");
        run.waiting.pause(PAUSE).await.map_err(ended)?;
    }
    Ok(Written::Overwritten)
}
