//! `infra rollback`: continues a rollback that failed.

use std::time::Duration;

use clap::Args;

use super::aws_access::{AwsOptions, block_on};
use super::exit::Exit;
use super::failure::Refusal;
use super::interruption::until_detached;
use super::progress_view::ProgressView;
use super::session::Session;
use super::up::parse_duration;
use crate::cli::terminal::screen::Stream;
use crate::deploy::{LiveCluster, Run, roll_back};

/// Continue a rollback that failed, so that the stack can be updated again
///
/// A stack is in UPDATE_ROLLBACK_FAILED when an update failed, and then its rollback. Fix the cause that `infra up` reports, then run
/// this. `--skip` leaves a resource as it is: CloudFormation then assumes that it was rolled back, so repair it afterwards.
#[derive(Args, Debug)]
pub(super) struct RollbackArguments {
    /// Leave this resource out; may be given several times
    #[arg(long, value_name = "ID")]
    skip: Vec<String>,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &RollbackArguments, session: &Session) -> anyhow::Result<Exit> {
    let blueprint = session.load_project_quietly()?.blueprint;
    block_on(async {
        let clients = arguments.aws.connect(&blueprint.cluster, session).await;
        let live = LiveCluster::read(&clients, &blueprint.cluster.name, Some(&blueprint.cluster)).await?;
        if !live.exists() {
            return Err(Refusal::new(format!("there is no cluster {}", blueprint.cluster.name)).into());
        }
        let view =
            ProgressView::new(session.output, session.printer.clone(), session.can_redraw(Stream::Stderr));
        let (interrupter, waiting) = session.begin_waiting(Some(arguments.timeout));
        let run = Run {
            clients,
            cluster: Some(blueprint.cluster),
            progress: view.progress(),
            waiting,
            cancel_on_interrupt: false,
        };
        let rolling = Box::pin(async { Ok(roll_back(&run, &live, &arguments.skip).await?) });
        let result = until_detached(rolling, &interrupter, &view, &session.printer).await;
        view.finish(result.is_ok());
        let names = result?;
        if names.is_empty() {
            session.printer.note("no stack of this cluster needs a rollback");
        } else {
            session
                .printer
                .note(format_args!("rolled back: {}; `infra up` can update it again", names.join(", ")));
        }
        Ok(Exit::Done)
    })
}
