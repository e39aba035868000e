//! Volumes and their snapshots.

use aws_sdk_ec2::types::Filter;

use super::actions;
use super::{AwsError, Clients};

/// A snapshot of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The id of the snapshot.
    pub id: String,
    /// The volume that the snapshot was created from.
    pub volume: String,
    /// When it was begun.
    pub started: Option<String>,
}

/// Keys and values.
type Tags = Vec<(String, String)>;

impl Clients {
    /// The account's snapshots of some volumes, even deleted ones, and those with a tag: AWS stops listing a deleted volume long before
    /// its snapshots.
    pub(crate) async fn snapshots_of(
        &self,
        volumes: &[String],
        (tag, value): (&str, &str),
    ) -> Result<Vec<Snapshot>, AwsError> {
        let mut found = self.snapshots(&format!("tag:{tag}"), &[value.to_owned()]).await?;
        found.retain(|(_, tags)| tags.iter().any(|(key, known)| key == tag && known == value));
        if !volumes.is_empty() {
            let mut made = self.snapshots("volume-id", volumes).await?;
            made.retain(|(snapshot, _)| volumes.contains(&snapshot.volume));
            found.extend(made);
        }
        let mut found: Vec<Snapshot> = found.into_iter().map(|(snapshot, _)| snapshot).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup();
        Ok(found)
    }

    /// The account's snapshots by a filter, with their tags. What is found may be deleted, so callers apply the filter once more: a
    /// stand-in may ignore it.
    async fn snapshots(&self, name: &str, values: &[String]) -> Result<Vec<(Snapshot, Tags)>, AwsError> {
        let filter = Filter::builder().name(name).set_values(Some(values.to_vec())).build();
        let call = self.ec2.describe_snapshots().owner_ids("self").filters(filter);
        let mut pages = call.into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let snapshot = next.map_err(AwsError::of(actions::EC2_DESCRIBE_SNAPSHOTS))?;
            let tags = snapshot.tags.unwrap_or_default().into_iter();
            let tags = tags.filter_map(|tag| Some((tag.key?, tag.value?))).collect();
            let known = Snapshot {
                id: snapshot.snapshot_id.unwrap_or_default(),
                volume: snapshot.volume_id.unwrap_or_default(),
                started: snapshot.start_time.map(|time| time.to_string()),
            };
            found.push((known, tags));
        }
        Ok(found)
    }

    /// Deletes a snapshot; one that is gone is no error.
    pub(crate) async fn delete_snapshot(&self, id: &str) -> Result<(), AwsError> {
        match self
            .ec2
            .delete_snapshot()
            .snapshot_id(id)
            .send()
            .await
            .map_err(AwsError::of(actions::EC2_DELETE_SNAPSHOT))
        {
            Err(error) if error.has_code("InvalidSnapshot.NotFound") => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Whether a volume exists and is not being deleted, as a volume is for a moment after its machine terminates.
    pub(crate) async fn is_volume_kept(&self, id: &str) -> Result<bool, AwsError> {
        let answer = self.ec2.describe_volumes().volume_ids(id).send().await;
        let answer = answer.map_err(AwsError::of(actions::EC2_DESCRIBE_VOLUMES))?;
        let volumes = answer.volumes.unwrap_or_default().into_iter();
        let own = volumes.filter(|volume| volume.volume_id.as_deref() == Some(id));
        let states = own.map(|volume| volume.state.map(|state| state.as_str().to_owned()));
        Ok(states.into_iter().any(|state| !matches!(state.as_deref(), Some("deleting" | "deleted"))))
    }
}
