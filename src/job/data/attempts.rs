//! A transfer over connections that may break: each attempt continues where the one before stopped.

use super::channel::Channel;
use super::error::DataError;
use super::pod::FilesPod;
use crate::kube::{ApiServer, MayPass};
use crate::waiting::{Pace, Waiting};

/// Breaks that are accepted one after the other.
const MOST_BREAKS: usize = 6;

/// Opens a channel and runs `work` with it, and again after a break, which is reported.
pub(crate) async fn with_channel<T, E: From<DataError> + MayPass>(
    api: &ApiServer,
    pod: &FilesPod<'_>,
    script: &str,
    waiting: &Waiting,
    tell_break: &(dyn Fn(&E) + Sync),
    mut work: impl AsyncFnMut(&mut Channel) -> Result<T, E>,
) -> Result<T, E> {
    let mut pace = Pace::of_moment();
    let mut breaks = 0;
    loop {
        let attempt = async {
            let mut channel = Channel::open(api, pod, script).await?;
            work(&mut channel).await
        };
        match attempt.await {
            Err(error) if error.is_passing() && breaks < MOST_BREAKS => {
                breaks += 1;
                tell_break(&error);
                if waiting.pause(pace.next_pause()).await.is_err() {
                    return Err(error);
                }
            }
            ended => return ended,
        }
    }
}
