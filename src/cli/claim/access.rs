//! A claim, and a pod that mounts it for as long as a command runs.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::interruption::Interrupted;
use crate::cli::session::Session;
use crate::job::data::{Channel, DataError, FilesPod, FilesTarget, with_channel};
use crate::job::{ClusterFacts, HELPER_IMAGE, Scripts, TrainingJob, Workload, tolerations_of_all_pools};
use crate::kube::{ApiServer, MayPass};

/// The pod needs a machine and an image.
const POD_TIME_LIMIT: Duration = Duration::from_mins(10);

/// Whether the claim is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Mount {
    ReadOnly,
    ReadWrite,
}

/// A cluster, what is known of it, and the programs of its pods.
pub(in crate::cli) type ClusterParts<'a> = (&'a ApiServer, ClusterFacts<'a>, &'a Scripts);

/// A claim on a cluster.
pub(in crate::cli) struct ClaimAccess<'a> {
    api: &'a ApiServer,
    facts: ClusterFacts<'a>,
    scripts: &'a Scripts,
    namespace: &'a str,
    claim: &'a str,
    /// The image of the pod, if not the usual one.
    image: Option<String>,
    /// Distinguishes the pod from others at the same time.
    mark: String,
}

impl<'a> ClaimAccess<'a> {
    /// The claim of a namespace. `image` takes the place of the pod's usual one.
    pub(in crate::cli) fn new(
        (api, facts, scripts): ClusterParts<'a>,
        namespace: &'a str,
        claim: &'a str,
        image: Option<String>,
        mark: String,
    ) -> Self {
        Self { api, facts, scripts, namespace, claim, image, mark }
    }

    /// The claim of a job, reached with the image of its import, where the usual one cannot be pulled.
    pub(in crate::cli) fn of_job(
        cluster: ClusterParts<'a>,
        job: &TrainingJob,
        workload: &'a Workload,
        mark: String,
    ) -> Self {
        let image = job.data.as_ref().and_then(|data| data.image.as_ref()).map(ToString::to_string);
        Self::new(cluster, &workload.namespace, &workload.claim, image, mark)
    }

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
            image: self.image.clone().unwrap_or_else(|| self.facts.mirrored_image(HELPER_IMAGE)),
            mark: self.mark.clone(),
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
