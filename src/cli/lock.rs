//! `infra lock`: looks up once what later runs use.

use clap::Args;

use super::aws_access::{AwsOptions, block_on};
use super::deployment::{choose_image, read_blocks, read_lock, write_lock};
use super::exit::Exit;
use super::session::Session;
use crate::cli::deployment::prices::look_up;
use crate::cli::terminal::printer::Output;
use crate::deploy::{ImageLock, LiveCluster, RenewedLock};

/// Look up the operating system's image, capacity blocks and AWS's prices, and write them to infra.lock
///
/// The image of an existing lock is kept, so that machines that start later boot the same image; prices are those of today. Prices that
/// cannot be read are a warning. `infra up` writes the lock too, without prices; commit it.
#[derive(Args, Debug)]
pub(super) struct LockArguments {
    /// Move an existing lock to the newest image
    #[arg(long)]
    upgrade_os: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &LockArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project_quietly()?;
    let blueprint = &project.blueprint;
    block_on(async {
        let found = read_lock(&project)?;
        let clients = arguments.aws.connect(&blueprint.cluster, session).await;
        let renewed = if found.is_none() && !arguments.upgrade_os {
            // A live cluster's image wins over the newest one, or the next `up` would replace every machine.
            let live = LiveCluster::read(&clients, &blueprint.cluster.name, Some(&blueprint.cluster)).await?;
            let chosen = choose_image(session, &clients, &project, &live, false).await?;
            RenewedLock::first(&clients, &blueprint.cluster, chosen.lock).await?
        } else {
            RenewedLock::renew(&clients, &blueprint.cluster, found.as_ref(), arguments.upgrade_os).await?
        };
        if let Some(newer) = &renewed.newer {
            session
                .printer
                .note(format_args!("{} is newer; `infra up --upgrade-os` moves to it", newer.name));
        }
        for warning in &renewed.warnings {
            session.printer.warning(warning.as_str());
        }
        let mut lock = renewed.lock;
        let blocks = read_blocks(&clients, &project, &mut lock).await?;
        let prices = look_up(&clients, blueprint, lock.prices.as_ref(), session).await?;
        let lock = ImageLock { prices: prices.or(lock.prices), ..lock };
        write_lock(&project, &lock, &session.printer)?;
        match session.output {
            Output::Json => session.printer.json(&lock.image)?,
            Output::Text | Output::Markdown | Output::Html => {
                session.printer.data(format_args!("{}  {}", lock.image.id, lock.image.name))?;
                if let Some(image) = &lock.deep_learning {
                    session.printer.data(format_args!("{}  {}", image.id, image.name))?;
                }
                let pools = blueprint.cluster.pools.iter();
                for block in pools.filter_map(|pool| blocks.of(&pool.name)) {
                    let text = format_args!(
                        "{}  capacity block of pool {}: {}",
                        block.id,
                        block.pool,
                        block.times()
                    );
                    session.printer.data(text)?;
                }
            }
        }
        Ok(Exit::Done)
    })
}
