//! A claim, and a pod that mounts it for as long as a command runs.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::job::data::{Channel, DataError, FilesPod, FilesTarget, with_channel};
use crate::job::{ClusterFacts, HELPER_IMAGE, Scripts, tolerations_of_all_pools};
use crate::kube::{ApiServer, MayPass};

/// The pod needs a machine and an image.
const POD_TIME_LIMIT: Duration = Duration::from_mins(10);

/// Whether the claim is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Mount {
    ReadOnly,
    ReadWrite,
}

/// A claim on a cluster.
#[derive(Clone, Copy)]
pub(in crate::cli) struct ClaimAccess<'a> {
    pub(in crate::cli) facts: ClusterFacts<'a>,
    pub(in crate::cli) api: &'a ApiServer,
    pub(in crate::cli) namespace: &'a str,
    pub(in crate::cli) claim: &'a str,
    /// The image of the pod, if not the usual one.
    pub(in crate::cli) image: Option<&'a str>,
    /// The programs of pods.
    pub(in crate::cli) scripts: &'a Scripts,
    /// Distinguishes the pod from others at the same time.
    pub(in crate::cli) mark: &'a str,
}

impl ClaimAccess<'_> {
    /// Runs `work` with a channel to the claim, and again after a connection that broke. The pod is deleted at the end, also when the user
    /// interrupts; then the error is `interrupted`.
    pub(in crate::cli) async fn run<T>(
        &self,
        mount: Mount,
        session: &Session,
        interrupted: Interrupted,
        work: impl AsyncFnMut(&mut Channel) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let target = FilesTarget {
            namespace: self.namespace.to_owned(),
            claim: self.claim.to_owned(),
            image: self.image.map_or_else(|| self.facts.mirrored_image(HELPER_IMAGE), str::to_owned),
            mark: self.mark.to_owned(),
            tolerations: tolerations_of_all_pools(self.facts),
            is_read_only: mount == Mount::ReadOnly,
        };
        let script = self.scripts.file_mover();
        // Listens before the pod exists, so that an early Ctrl-C leaves none behind.
        let mut interruptions = signal(SignalKind::interrupt())?;
        let pod = FilesPod::start(self.api, &target).await?;
        let (_interrupter, waiting) = session.begin_waiting(None);
        let tell =
            |detail: String| session.printer.note(format_args!("the pod for the files is waiting: {detail}"));
        let tell_break = |error: &anyhow::Error| session.printer.warning(format_args!("{error}; continuing"));
        let moving = async {
            pod.wait_until_ready(&waiting.at_most(POD_TIME_LIMIT), &tell).await?;
            with_channel(self.api, &pod, &script, &waiting, &tell_break, work).await
        };
        let result = tokio::select! {
            moved = moving => moved,
            _ = interruptions.recv() => Err(interrupted.into()),
        };
        if let Err(error) = pod.remove().await {
            session.printer.warning(format_args!("the pod for the files could not be deleted: {error}"));
        }
        result
    }
}

impl MayPass for anyhow::Error {
    fn is_passing(&self) -> bool {
        self.downcast_ref::<DataError>().is_some_and(DataError::is_passing)
    }
}
