//! Volumes and their snapshots.

use aws_sdk_ec2::types::Filter;

use super::actions;
use super::{AwsError, Clients};

/// A snapshot of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its id.
    pub id: String,
    /// The volume it was made of.
    pub volume: String,
    /// When it was begun.
    pub started: Option<String>,
}

impl Clients {
    /// Our own snapshots of some volumes, also of volumes that are gone.
    pub async fn snapshots_of(&self, volumes: &[String]) -> Result<Vec<Snapshot>, AwsError> {
        if volumes.is_empty() {
            return Ok(Vec::new());
        }
        let filter = Filter::builder().name("volume-id").set_values(Some(volumes.to_vec())).build();
        let call = self.ec2.describe_snapshots().owner_ids("self").filters(filter);
        let mut pages = call.into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let snapshot = next.map_err(AwsError::of(actions::EC2_DESCRIBE_SNAPSHOTS))?;
            let volume = snapshot.volume_id.unwrap_or_default();
            // A stand-in may ignore the filter; deleting is too much to trust it.
            if volumes.contains(&volume) {
                found.push(Snapshot {
                    id: snapshot.snapshot_id.unwrap_or_default(),
                    volume,
                    started: snapshot.start_time.map(|time| time.to_string()),
                });
            }
        }
        Ok(found)
    }

    /// Deletes a snapshot; one that is gone is no error.
    pub async fn delete_snapshot(&self, id: &str) -> Result<(), AwsError> {
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

    /// Whether a volume is still there.
    pub async fn volume_exists(&self, id: &str) -> Result<bool, AwsError> {
        let answer = self.ec2.describe_volumes().volume_ids(id).send().await;
        match answer.map_err(AwsError::of(actions::EC2_DESCRIBE_VOLUMES)) {
            Ok(answer) => Ok(answer
                .volumes
                .unwrap_or_default()
                .iter()
                .any(|volume| volume.volume_id.as_deref() == Some(id))),
            Err(error) if error.has_code("InvalidVolume.NotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }
}
