//! Objects of S3 onto the claim: the program in the pod fetches them by links that are signed here, a batch at a time.
//!
//! In: the objects, and who signs. Out: all of them on the claim. What is there is not fetched again; a link that is no longer
//! accepted is replaced by a new one. A link goes through the channel and nowhere else.

use std::time::Duration;

use serde_json::{Value, json};

use super::channel::{Channel, RefusedObject};
use super::error::DataError;
use super::object_set::{ObjectSet, SourceObject};
use super::progress::{Moved, Progress};
use crate::job::workload::ObjectsPlan;
use crate::kube::MayPass;

/// Objects that are compared at once.
const COMPARED: usize = 500;
/// Objects whose links are handed over at once.
const FETCHED: usize = 200;
/// How long a link is accepted; a batch that takes longer gets new ones.
pub(crate) const LINK_LIFE: Duration = Duration::from_hours(1);

/// Who signs links to objects, and knows what S3 means when it refuses one.
pub(crate) trait LinkSigner {
    /// What goes wrong.
    type Error: From<DataError> + MayPass;

    /// A link to an object, which is accepted for [`LINK_LIFE`].
    async fn sign(&self, key: &str) -> Result<String, Self::Error>;

    /// Whether the links that were signed last are older than [`LINK_LIFE`].
    fn has_expired_links(&self) -> bool;

    /// Whether another link may be accepted.
    fn is_about_link(&self, code: &str, message: &str) -> bool;

    /// The refusal of an object as an error.
    fn refuse(&self, key: &str, code: &str, message: &str) -> Self::Error;
}

/// What is fetched, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchRequest<'a> {
    /// Where objects go, and where the import records that it is complete.
    pub(crate) plan: &'a ObjectsPlan,
    /// The source, as the user wrote it.
    pub(crate) source: &'a str,
    /// The objects.
    pub(crate) objects: &'a ObjectSet,
    /// Whether anything may be fetched.
    pub(crate) may_fetch: bool,
}

/// How fetching is shown.
#[derive(Clone, Copy)]
pub(crate) struct FetchView<'a> {
    /// How far it is.
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
    /// What delays it.
    pub(crate) note: &'a (dyn Fn(&str) + Sync),
}

/// Brings all objects onto the claim. After a break the same call continues.
pub(crate) async fn fetch<S: LinkSigner>(
    channel: &mut Channel,
    request: FetchRequest<'_>,
    signer: &S,
    view: FetchView<'_>,
) -> Result<Moved, S::Error> {
    let set = request.objects;
    let state = json!({"source": request.source, "objects": set.digest});
    let ObjectsPlan { directory, stamp, placed } = request.plan;
    let begin = json!({"do": "objects-begin", "directory": directory, "stamp": stamp, "placed": placed, "state": state});
    let mut fetching = Fetching {
        channel,
        signer,
        view,
        progress: Progress { files: set.files(), bytes: set.bytes, ..Progress::default() },
        moved: Moved { files: set.files(), bytes: set.bytes, ..Moved::default() },
    };
    if fetching.ask(&begin).await?.imported {
        return Ok(fetching.moved);
    }
    let needed = fetching.find_missing(set).await?;
    let bytes = needed.iter().map(|(object, arrived)| object.size().saturating_sub(*arrived)).sum();
    let files = needed.len() as u64;
    if files > 0 && !request.may_fetch {
        return Err(DataError::NotFetched { uri: request.source.to_owned(), files, bytes }.into());
    }
    fetching.ask(&json!({"do": "objects-prepare", "bytes": bytes})).await?;
    fetching.progress.done_files = set.files() - files;
    fetching.progress.done_bytes = set.bytes.saturating_sub(bytes);
    (view.progress)(fetching.progress);
    let objects: Vec<&SourceObject> = needed.into_iter().map(|(object, _)| object).collect();
    for batch in objects.chunks(FETCHED) {
        fetching.fetch_batch(batch).await?;
    }
    fetching.ask(&json!({"do": "objects-finish", "state": state})).await?;
    fetching.moved.moved_files = files;
    Ok(fetching.moved)
}

struct Fetching<'a, S> {
    channel: &'a mut Channel,
    signer: &'a S,
    view: FetchView<'a>,
    progress: Progress,
    moved: Moved,
}

impl<S: LinkSigner> Fetching<'_, S> {
    async fn ask(&mut self, request: &Value) -> Result<super::channel::Answer, DataError> {
        self.channel.send(request, &[]).await?;
        Ok(self.channel.receive().await?.0)
    }

    /// The objects that are not on the claim, each with how much of it has arrived.
    async fn find_missing<'o>(
        &mut self,
        set: &'o ObjectSet,
    ) -> Result<Vec<(&'o SourceObject, u64)>, DataError> {
        let mut needed = Vec::new();
        for batch in set.objects.chunks(COMPARED) {
            let entries: Vec<Value> = batch.iter().map(object_for_pod).collect();
            let answer = self.ask(&json!({"do": "objects-missing", "entries": entries})).await?;
            needed.extend(
                answer.needed.iter().filter_map(|(number, arrived)| Some((batch.get(*number)?, *arrived))),
            );
        }
        Ok(needed)
    }

    /// Fetches some objects, and those again whose links were no longer accepted.
    async fn fetch_batch(&mut self, batch: &[&SourceObject]) -> Result<(), S::Error> {
        let mut left = batch.to_vec();
        let mut was_renewed_early = false;
        while !left.is_empty() {
            let mut entries = Vec::new();
            for object in &left {
                let mut entry = object_for_pod(object);
                entry["link"] = Value::String(self.signer.sign(object.key()).await?);
                entries.push(entry);
            }
            let refused = self.fetch_entries(&entries).await?;
            let is_old = self.signer.has_expired_links();
            let mut again = Vec::new();
            for RefusedObject { number, code, message } in &refused {
                let Some(object) = left.get(*number) else { continue };
                let may_renew = is_old || !was_renewed_early;
                if !(may_renew && self.signer.is_about_link(code, message)) {
                    return Err(self.signer.refuse(object.key(), code, message));
                }
                again.push(*object);
            }
            was_renewed_early |= !again.is_empty() && !is_old;
            left = again;
        }
        Ok(())
    }

    async fn fetch_entries(&mut self, entries: &[Value]) -> Result<Vec<RefusedObject>, DataError> {
        self.channel.send(&json!({"do": "objects-fetch", "entries": entries}), &[]).await?;
        loop {
            let (answer, _) = self.channel.receive().await?;
            answer.notes.iter().for_each(|note| (self.view.note)(note));
            // What arrived of a small object whose transfer broke is fetched again, and taken back.
            self.progress.done_bytes = self.progress.done_bytes.saturating_add_signed(answer.bytes);
            self.progress.done_files += answer.files;
            self.moved.moved_bytes = self.moved.moved_bytes.saturating_add_signed(answer.bytes);
            (self.view.progress)(self.progress);
            if answer.end {
                return Ok(answer.refused);
            }
        }
    }
}

/// An object as the program in the pod reads it.
fn object_for_pod(object: &SourceObject) -> Value {
    json!({"path": object.path(), "size": object.size(), "etag": object.etag(), "modified": object.modified()})
}
