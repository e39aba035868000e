//! The wait for a change set, which CloudFormation computes in the background.

use crate::aws::{ChangeSet, ChangeSetStatus};
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::waiting::Pace;

/// Waits until CloudFormation has computed a change set.
pub(crate) async fn wait_for_change_set(run: &Run, name: &str, arn: &str) -> Result<ChangeSet, DeployError> {
    let mut pace = Pace::of_moment();
    loop {
        let change_set = run.clients.change_set(name, arn).await?;
        if matches!(change_set.status, ChangeSetStatus::CreateComplete | ChangeSetStatus::Failed) {
            return Ok(change_set);
        }
        if let Err(end) = run.waiting.pause(pace.next_pause()).await {
            // That the change set could not be deleted matters less than why the wait ended.
            let _ = run.clients.delete_change_set(name, arn).await;
            return Err(Run::still_running(end, name));
        }
    }
}
