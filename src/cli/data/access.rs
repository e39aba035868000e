//! The claim that a command is about, and a pod that mounts it for as long as the command runs.

use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::blueprint::Blueprint;
use crate::cli::interruption::Interrupted;
use crate::cli::job::{random_mark, scripts_of};
use crate::cli::session::Session;
use crate::job::data::{Channel, DataError, FilesPod, FilesTarget, RemotePath, with_channel};
use crate::job::{CLUSTER_CLAIM, HELPER_IMAGE, tolerations_of_all_pools};
use crate::kube::{ApiServer, MayPass};

/// The pod needs a machine and an image.
const POD_TIME_LIMIT: Duration = Duration::from_mins(10);

/// Which claim, and the image of the pod that mounts it.
#[derive(Args, Debug)]
pub(super) struct ClaimOptions {
    /// The namespace whose claim is meant
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// The claim
    #[arg(long, value_name = "NAME", default_value = CLUSTER_CLAIM)]
    claim: String,
    /// The image of the pod that mounts the claim, if the usual one cannot be pulled; it needs python3
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

/// Whether the claim is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Mount {
    ReadOnly,
    ReadWrite,
}

impl ClaimOptions {
    /// The claim, on a cluster.
    pub(super) fn claim_on<'a>(&'a self, blueprint: &'a Blueprint, api: &'a ApiServer) -> ClaimAccess<'a> {
        ClaimAccess {
            blueprint,
            api,
            namespace: &self.namespace,
            claim: &self.claim,
            image: self.image.as_deref(),
        }
    }
}

/// A claim on a cluster.
#[derive(Clone, Copy)]
pub(in crate::cli) struct ClaimAccess<'a> {
    pub(in crate::cli) blueprint: &'a Blueprint,
    pub(in crate::cli) api: &'a ApiServer,
    pub(in crate::cli) namespace: &'a str,
    pub(in crate::cli) claim: &'a str,
    /// The image of the pod, if not the usual one.
    pub(in crate::cli) image: Option<&'a str>,
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
            image: self.image.map_or_else(|| self.blueprint.mirrored_image(HELPER_IMAGE), str::to_owned),
            mark: random_mark()?,
            tolerations: tolerations_of_all_pools(self.blueprint),
            is_read_only: mount == Mount::ReadOnly,
        };
        let script = scripts_of(session)?.file_mover();
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

/// A path on the claim, as an argument.
pub(super) fn parse_remote(text: &str) -> Result<RemotePath, String> {
    text.parse()
}

/// A path on the claim that is changed, as an argument.
pub(super) fn parse_writable_remote(text: &str) -> Result<RemotePath, String> {
    let path: RemotePath = text.parse()?;
    if path.is_of_records() {
        return Err("directories named .infra hold records of infra itself".to_owned());
    }
    Ok(path)
}
