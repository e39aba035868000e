//! The newest snapshot of etcd. Nothing else shows that uploads have stopped, until one is needed.

use time::{Duration, OffsetDateTime};

use super::shape::{NewestSnapshot, SnapshotState};
use super::unreadable::Unreadable;
use crate::aws::{AwsError, Clients};
use crate::blueprint::StackPart;
use crate::deploy::state::desired::s3_uri_in_use;
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::snapshots::SnapshotStore;
use crate::plural::count_of;

/// A snapshot is uploaded every hour; two may fail.
const LONGEST: Duration = Duration::hours(3);

/// Reads the newest snapshot; none if the S3 URI is not known or the bucket may not be read.
pub(crate) async fn read_snapshot(
    clients: &Clients,
    live: &LiveCluster,
    cluster: &str,
    now: OffsetDateTime,
    unreadable: &mut Unreadable,
) -> Result<Option<SnapshotState>, AwsError> {
    let Some(uri) = s3_uri_in_use(live) else { return Ok(None) };
    let store = SnapshotStore::new(&uri, cluster);
    let answer = match clients.newest_object(&store.bucket, &store.prefix).await {
        Err(error) if error.is_missing_bucket() => Ok(None),
        other => other,
    };
    let Some(newest) = unreadable.take("the age of the newest etcd snapshot", answer)? else {
        return Ok(None);
    };
    Ok(Some(SnapshotState {
        address: store.address(),
        newest: newest.map(|object| NewestSnapshot {
            key: object.key,
            uploaded: object.written,
            age_minutes: (now - object.written).whole_minutes(),
        }),
    }))
}

/// What is wrong with the snapshots of a cluster. Those of an earlier cluster of the same name may be of any age, so a control plane
/// has three hours for its first.
#[must_use]
pub(crate) fn snapshot_problem(
    snapshot: &SnapshotState,
    live: &LiveCluster,
    now: OffsetDateTime,
) -> Option<String> {
    let created = live.stacks.get(&StackPart::ControlPlane)?.stack.created?;
    is_overdue(snapshot, created, now).then(|| {
        let found = match &snapshot.newest {
            Some(newest) => format!("the newest etcd snapshot is {} old", snapshot_age_in_words(newest.age_minutes)),
            None => "there is no etcd snapshot".to_owned(),
        };
        format!("{found}, though one is uploaded every hour; `infra logs etcd-0`, and the other members', show why")
    })
}

fn is_overdue(snapshot: &SnapshotState, created: OffsetDateTime, now: OffsetDateTime) -> bool {
    let since = snapshot.newest.as_ref().map_or(created, |newest| newest.uploaded.max(created));
    now - since > LONGEST
}

/// An age in the unit that fits.
#[must_use]
pub(crate) fn snapshot_age_in_words(minutes: i64) -> String {
    let minutes = minutes.max(0);
    match minutes {
        ..120 => count_of(minutes, "minute"),
        120..2880 => count_of(minutes / 60, "hour"),
        _ => count_of(minutes / 1440, "day"),
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use time::{Duration, OffsetDateTime};

    use super::{is_overdue, snapshot_age_in_words};
    use crate::deploy::status::shape::{NewestSnapshot, SnapshotState};

    const NOW: OffsetDateTime = datetime!(2026-03-01 12:00 UTC);

    fn overdue(snapshot: Option<Duration>, control_plane: Duration) -> bool {
        let newest = snapshot.map(|age| NewestSnapshot {
            key: "etcd.db".to_owned(),
            uploaded: NOW - age,
            age_minutes: age.whole_minutes(),
        });
        is_overdue(&SnapshotState { address: String::new(), newest }, NOW - control_plane, NOW)
    }

    #[test]
    fn a_snapshot_is_due_every_three_hours_and_the_first_three_hours_after_the_creation() {
        let (hours, late) = (Duration::hours(3), Duration::seconds(1));
        assert!(!overdue(Some(hours), Duration::days(90)));
        assert!(overdue(Some(hours + late), Duration::days(90)));
        assert!(!overdue(None, hours));
        assert!(overdue(None, hours + late));
        // That of an earlier cluster.
        assert!(!overdue(Some(Duration::days(30)), Duration::minutes(5)));
        assert!(overdue(Some(Duration::days(30)), hours + late));
    }

    #[test]
    fn ages_have_the_unit_that_fits() {
        let ages = [-1, 1, 119, 120, 2879, 2880].map(snapshot_age_in_words);
        assert_eq!(ages, ["0 minutes", "1 minute", "119 minutes", "2 hours", "47 hours", "2 days"]);
    }
}
