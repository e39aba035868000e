//! Ctrl-C: what it does to work under way, and the error that a command then ends with.

use std::future::Future;

use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};

use super::progress_view::ProgressView;
use crate::cli::terminal::printer::Printer;
use crate::deploy::DeployError;
use crate::outcome::{Explain, Outcome};
use crate::waiting::Interrupter;

/// The user ended the command before it was done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Interrupted {
    #[error("interrupted; nothing was changed")]
    BeforeChanges,
    #[error("interrupted; nothing was changed, but a change set `infra-plan-…` may be left at a stack")]
    BeforeCleanup,
    #[error("interrupted; nothing was written, and the same command finds a key that was created")]
    WhileCreatingKey,
    #[error("interrupted; operations that were started continue in AWS, and the same command resumes them")]
    WhileAwsWorks,
    #[error("interrupted; the job continues, and the same command attaches to it")]
    WhileJobRuns,
    #[error("interrupted; the same command continues")]
    WhileChangingTeam,
    #[error("interrupted; the same command continues with what is missing")]
    WhileMovingFiles,
    #[error(
        "interrupted; no job was created, and the same command continues with what is missing of the code"
    )]
    WhileUploadingCode,
    #[error(
        "interrupted; no job was created, and the same command continues with what is missing of the data"
    )]
    WhileFetchingData,
    #[error("interrupted; the program in the pod may continue")]
    WhileProgramRuns,
    #[error("interrupted")]
    WhilePrinting,
}

impl Explain for Interrupted {
    fn outcome(&self) -> Outcome {
        match self {
            Self::WhileMovingFiles | Self::WhileUploadingCode | Self::WhileFetchingData => {
                Outcome::StillRunning
            }
            _ => Outcome::Interrupted,
        }
    }
}

/// Printed at the first Ctrl-C where the operation continues without the command.
pub(super) const DETACHING: &str = "detaching; a second Ctrl-C exits at once";

/// Runs what changes nothing; Ctrl-C ends it at once.
pub(super) async fn until_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    until_interrupted_with(work, Interrupted::BeforeChanges).await
}

/// Runs what can be ended at once, and leaves what the interruption says.
pub(super) async fn until_interrupted_with<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    interrupted: Interrupted,
) -> anyhow::Result<T> {
    tokio::select! {
        result = work => result,
        _ = ctrl_c() => Err(interrupted.into()),
    }
}

/// Runs what changes nothing but must delete what it created: the first Ctrl-C has it do so and end, the second ends it at once.
pub(super) async fn until_cleaned_up<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    interrupter: &Interrupter,
    printer: &Printer,
) -> anyhow::Result<T> {
    let leave = || printer.note("leaving as soon as it is tidy; a second Ctrl-C exits at once");
    let result = until_second_interruption(work, interrupter, leave, Interrupted::BeforeCleanup).await;
    let has_ended = result.as_ref().map_or_else(is_wait_ended, |_| true);
    if has_ended && interrupter.is_interrupted() {
        return Err(Interrupted::BeforeChanges.into());
    }
    result
}

/// Runs what AWS continues when the command ends; the first Ctrl-C stops waiting for it.
pub(super) async fn until_detached<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    interrupter: &Interrupter,
    view: &ProgressView,
    printer: &Printer,
) -> anyhow::Result<T> {
    let leave = || {
        view.finish(false);
        printer.note(DETACHING);
    };
    until_second_interruption(work, interrupter, leave, Interrupted::WhileAwsWorks).await
}

/// Runs what continues without the command: the first Ctrl-C stops waiting for it, after `leave`; the second exits at once.
pub(super) async fn until_second_interruption<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    interrupter: &Interrupter,
    leave: impl FnOnce(),
    abandoned: Interrupted,
) -> anyhow::Result<T> {
    let two_interruptions = async {
        // One listener for both: the second may come before a new one could listen.
        let Ok(mut interruptions) = signal(SignalKind::interrupt()) else {
            return std::future::pending().await;
        };
        interruptions.recv().await;
        leave();
        interrupter.interrupt();
        interruptions.recv().await;
    };
    tokio::select! {
        result = work => result,
        () = two_interruptions => Err(abandoned.into()),
    }
}

fn is_wait_ended(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DeployError::StillRunning { .. }))
}
