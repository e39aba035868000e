//! How many requests are under way: enough that nobody waits for a round trip, few enough that memory stays small.

use super::channel::{Answer, Channel};
use super::error::DataError;
use bytes::Bytes;
use serde_json::Value;

/// At most this many requests are not answered.
const MOST: usize = 8;

/// Requests that are answered with one message each, which nobody needs but as a sign that it was done.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// What each request moves when it is answered.
    under_way: std::collections::VecDeque<(u64, u64)>,
}

impl Window {
    /// Sends a request that moves this many files and bytes; returns what was moved meanwhile.
    pub(super) async fn send(
        &mut self,
        channel: &mut Channel,
        request: &Value,
        content: &[u8],
        moves: (u64, u64),
    ) -> Result<(u64, u64), DataError> {
        let done = if self.under_way.len() >= MOST { self.wait_for_one(channel).await? } else { (0, 0) };
        channel.send(request, content).await?;
        self.under_way.push_back(moves);
        Ok(done)
    }

    /// Waits for the oldest request; returns what it moved.
    pub(super) async fn wait_for_one(&mut self, channel: &mut Channel) -> Result<(u64, u64), DataError> {
        let Some(moved) = self.under_way.pop_front() else { return Ok((0, 0)) };
        let (_, _): (Answer, Bytes) = channel.receive().await?;
        Ok(moved)
    }

    /// Whether everything is answered.
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }
}
