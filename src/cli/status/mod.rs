//! `infra status`: whether the cluster works, on one screen.

mod lines;
mod watch;

use std::time::Duration;

use clap::Args;
use time::OffsetDateTime;
use tokio::signal::unix::{SignalKind, signal};

use super::aws_access::{AwsOptions, api_address, block_on};
use super::deployment::certificate_expiries;
use super::exit::Exit;
use super::interruption::Interrupted;
use super::session::Session;
use crate::aws::Clients;
use crate::blueprint::Blueprint;
use crate::cli::deployment::prices::usable_lock;
use crate::cli::terminal::printer::Output;
use crate::credentials::Credentials;
use crate::deploy::{
    AbsentCluster, CertificateState, ImageLock, StatusDocument, StatusReport, StatusSources,
};
use lines::StatusLines;
use watch::StatusWatch;

/// How often `--watch` reads the status.
const INTERVAL: Duration = Duration::from_secs(10);

/// Show whether the cluster works: stacks, API, name, etcd, nodes by pool, image, snapshots, file system, certificates, cost
///
/// Exits with 3 if something is wrong or there is no such cluster. What is marked with ? will be wrong later, or could not be read, and is no reason for that. `infra schema status` describes what `--output json` prints.
#[derive(Args, Debug)]
pub(super) struct StatusArguments {
    /// Read the status again every ten seconds until Ctrl-C; at a terminal one screen that marks what has changed
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

pub(super) fn run(arguments: &StatusArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project_quietly()?;
    let lock = usable_lock(&project, session);
    let blueprint = project.blueprint;
    let credentials = read_credentials(session, &blueprint)?;
    let reader = StatusReader {
        session,
        blueprint: &blueprint,
        credentials: credentials.as_ref(),
        lock: lock.as_ref(),
    };
    block_on(async {
        let clients = arguments.aws.connect(&blueprint.cluster, session).await;
        if arguments.watch {
            return keep_watching(&reader, &clients).await;
        }
        print_status(reader.read(&clients).await?, &blueprint, session)
    })
}

/// What a status is read from, besides AWS.
struct StatusReader<'a> {
    session: &'a Session,
    blueprint: &'a Blueprint,
    credentials: Option<&'a Credentials>,
    lock: Option<&'a ImageLock>,
}

impl StatusReader<'_> {
    async fn read(&self, clients: &Clients) -> anyhow::Result<Option<StatusReport>> {
        let sources = StatusSources {
            clients,
            blueprint: self.blueprint,
            credentials: self.credentials,
            api_address: api_address()?,
            now: OffsetDateTime::now_utc(),
            certificates: first_to_end(self.session)?,
            blocks: self.lock.map_or(&[], |lock| &lock.capacity_blocks),
            prices: self.lock.and_then(|lock| lock.prices.as_ref()),
        };
        Ok(Box::pin(StatusReport::read(sources)).await?)
    }
}

/// Reads the status again and again until Ctrl-C, which ends with the last status.
async fn keep_watching(reader: &StatusReader<'_>, clients: &Clients) -> anyhow::Result<Exit> {
    let session = reader.session;
    let watch = StatusWatch::new(session);
    let mut last = None;
    // One listener for all of it: Ctrl-C may come while the status is read.
    let mut interruptions = signal(SignalKind::interrupt())?;
    loop {
        let report = tokio::select! {
            report = reader.read(clients) => report?,
            _ = interruptions.recv() => return last.ok_or_else(|| Interrupted::WhilePrinting.into()),
        };
        last = Some(match &watch {
            Some(watch) => {
                let exit = exit_of(report.as_ref());
                watch.show(
                    StatusLines::of(report.as_ref(), &reader.blueprint.cluster.name),
                    OffsetDateTime::now_utc(),
                );
                exit
            }
            None => print_status(report, reader.blueprint, session)?,
        });
        tokio::select! {
            () = tokio::time::sleep(session.tempo.shorten(INTERVAL)) => {}
            _ = interruptions.recv() => return last.ok_or_else(|| Interrupted::WhilePrinting.into()),
        }
    }
}

/// Without keys everything but the API can be read.
pub(super) fn read_credentials(
    session: &Session,
    blueprint: &Blueprint,
) -> anyhow::Result<Option<Credentials>> {
    if !session.assets.has_credentials()? {
        return Ok(None);
    }
    let store = session.open_existing_credentials()?;
    Ok(Some(Credentials::read(&store, &blueprint.identities)?))
}

/// The certificate on disk that expires first.
pub(super) fn first_to_end(session: &Session) -> anyhow::Result<Option<CertificateState>> {
    let first = certificate_expiries(session)?.into_iter().min_by_key(|expiry| expiry.days_left);
    Ok(first.map(|expiry| CertificateState { name: expiry.name, days_left: expiry.days_left }))
}

fn print_status(
    report: Option<StatusReport>,
    blueprint: &Blueprint,
    session: &Session,
) -> anyhow::Result<Exit> {
    let name = &blueprint.cluster.name;
    let exit = exit_of(report.as_ref());
    match (session.output, report) {
        (Output::Json, Some(report)) => session.printer.json(&StatusDocument::Report(Box::new(report)))?,
        (Output::Json, None) => {
            session.printer.json(&StatusDocument::Absent(AbsentCluster::new(name.as_str())))?;
        }
        (Output::Text | Output::Markdown | Output::Html, report) => {
            session.printer.data(StatusLines::of(report.as_ref(), name).text())?;
        }
    }
    Ok(exit)
}

fn exit_of(report: Option<&StatusReport>) -> Exit {
    if report.is_some_and(|report| report.healthy) { Exit::Done } else { Exit::Unhealthy }
}
