//! Ctrl-C: the first one leaves AWS to its work, the second ends at once.

use std::cell::Cell;
use std::future::Future;

use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};

use super::exit::Exit;
use super::printer::Printer;
use super::progress_view::ProgressView;
use crate::deploy::DeployError;
use crate::waiting::Interrupter;

/// Runs what changes nothing; Ctrl-C ends it at once.
pub(super) async fn until_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    printer: &Printer,
) -> anyhow::Result<Result<T, Exit>> {
    tokio::select! {
        result = work => result.map(Ok),
        _ = ctrl_c() => {
            printer.note("interrupted; nothing was changed");
            Ok(Err(Exit::Interrupted))
        }
    }
}

/// Runs what changes nothing but must tidy up behind itself: the first Ctrl-C has it do so and end, the second ends at once.
pub(super) async fn until_tidied<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    interrupter: &Interrupter,
    printer: &Printer,
) -> anyhow::Result<Result<T, Exit>> {
    let is_interrupted = Cell::new(false);
    let two_interruptions = async {
        let Ok(mut interruptions) = signal(SignalKind::interrupt()) else {
            return std::future::pending().await;
        };
        interruptions.recv().await;
        is_interrupted.set(true);
        printer.note("leaving as soon as it is tidy; a second Ctrl-C ends at once");
        interrupter.interrupt();
        interruptions.recv().await;
    };
    tokio::select! {
        result = work => match result {
            Err(error) if !is_interrupted.get() || !is_wait_ended(&error) => Err(error),
            _ if is_interrupted.get() => {
                printer.note("interrupted; nothing was changed");
                Ok(Err(Exit::Interrupted))
            }
            result => result.map(Ok),
        },
        () = two_interruptions => {
            printer.note("interrupted; nothing was changed, but a change set `infra-plan-…` may be left at a stack");
            Ok(Err(Exit::Interrupted))
        }
    }
}

fn is_wait_ended(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DeployError::StillRunning { .. }))
}

/// Runs what the cluster does with us watching; the first Ctrl-C ends the watching, the second everything.
pub(super) async fn until_leaving(
    work: impl Future<Output = anyhow::Result<Exit>>,
    interrupter: &Interrupter,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let two_interruptions = async {
        let Ok(mut interruptions) = signal(SignalKind::interrupt()) else {
            return std::future::pending().await;
        };
        interruptions.recv().await;
        printer.note("leaving; a second Ctrl-C ends at once");
        interrupter.interrupt();
        interruptions.recv().await;
    };
    tokio::select! {
        result = work => result,
        () = two_interruptions => Ok(Exit::Interrupted),
    }
}

/// Runs what AWS does with us watching; the first Ctrl-C ends the watching, the second everything.
pub(super) async fn with_interruptions<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    interrupter: &Interrupter,
    view: &ProgressView,
    printer: &Printer,
) -> anyhow::Result<Result<T, Exit>> {
    let two_interruptions = async {
        // One listener for both: the second may come before anybody could listen anew.
        let Ok(mut interruptions) = signal(SignalKind::interrupt()) else {
            return std::future::pending().await;
        };
        interruptions.recv().await;
        view.finish();
        printer.note("leaving; a second Ctrl-C ends at once");
        interrupter.interrupt();
        interruptions.recv().await;
    };
    tokio::select! {
        result = work => result.map(Ok),
        () = two_interruptions => {
            view.finish();
            printer.note("interrupted; what AWS was told to do goes on, and the same command comes back to it");
            Ok(Err(Exit::Interrupted))
        }
    }
}
