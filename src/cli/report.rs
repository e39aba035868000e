//! `infra report`: the cluster as a page and as a picture.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use time::OffsetDateTime;

use super::aws_access::{AwsOptions, api_address, block_on};
use super::deployment::read_lock;
use super::exit::Exit;
use super::failure::Refusal;
use super::interruption::until_interrupted;
use super::session::Session;
use super::status::{first_to_end, read_credentials};
use crate::blueprint::Blueprint;
use crate::config::PoolImage;
use crate::config::values::S3Uri;
use crate::deploy::{
    DestroyOptions, DestroyPlan, DestroyScope, ImageLock, StatusReport, StatusSources, plan_destroy,
};
use crate::durable_file::{Access, replace};
use crate::operator::{Policy, operator_policies, permissions_boundary};
use crate::project::{Project, ProjectError};
use crate::report::{
    CertificateSources, GENERATOR, LiveSources, PageImage, ReportSources, cluster_page, picture_file,
};

/// How much of a file is read to find out whether it is ours.
const BEGINNING: u64 = 4096;

/// Write a page about the cluster, with its picture; no network and no AWS account are needed
///
/// The page is one file that fetches nothing: the picture of the cluster, who may talk to whom and why, machines, stacks, the image,
/// certificates on a time line, what AWS bills for, the IAM policies, and what `infra destroy` would delete and keep. It has no
/// secrets. `--online` adds what AWS and the cluster's API report now: the status of stacks and nodes, the age of the image.
///
/// The picture is an SVG file, the same bytes for the same cluster.yaml.
#[derive(Args, Debug)]
pub(super) struct ReportArguments {
    /// Write the page to this file
    #[arg(long, value_name = "FILE.html", required_unless_present = "picture")]
    to: Option<PathBuf>,
    /// Write the picture alone to this file
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
    /// Also read AWS and the cluster's API
    #[arg(long, requires = "to")]
    online: bool,
    /// Where assets are uploaded: s3://bucket/prefix; wins over s3URI in cluster.yaml
    #[arg(long, value_name = "URI")]
    s3_uri: Option<S3Uri>,
    /// Overwrite a file that is not a report
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    aws: AwsOptions,
}

/// What a file of ours is.
#[derive(Clone, Copy)]
enum Form {
    Page,
    Picture,
}

impl Form {
    /// Whether a file begins as one that we wrote.
    fn is_beginning(self, text: &str) -> bool {
        match self {
            Self::Page => {
                text.starts_with("<!DOCTYPE html>")
                    && text.contains(&format!("<meta name=\"generator\" content=\"{GENERATOR}\"/>"))
            }
            Self::Picture => {
                text.starts_with("<?xml") && text.contains(&format!("data-generator=\"{GENERATOR}\""))
            }
        }
    }
}

pub(super) fn run(arguments: &ReportArguments, session: &Session) -> anyhow::Result<Exit> {
    let project = session.load_project_quietly()?;
    // Both are known to be writable before anything is read or written.
    let target = |file: &Option<PathBuf>, form| {
        file.as_deref().map(|file| check_target(file, form, arguments.force, session)).transpose()
    };
    let page = target(&arguments.to, Form::Page)?;
    let picture = target(&arguments.picture, Form::Picture)?;
    if page.is_some() && page == picture {
        return Err(Refusal::invalid("the page and the picture cannot be the same file").into());
    }
    if let Some(path) = &picture {
        write_page(path, &picture_file(&project.blueprint), session)?;
    }
    if let Some(path) = &page {
        write_page(path, &make_page(arguments, &project, session)?, session)?;
    }
    Ok(Exit::Done)
}

/// The file to write to; one that someone else wrote is kept.
fn check_target(file: &Path, form: Form, force: bool, session: &Session) -> anyhow::Result<PathBuf> {
    let path = session.assets.named_file(file)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        let message = format!("cannot write {}: there is no directory {}", path.display(), parent.display());
        return Err(Refusal::new(message).help("create the directory first, or name another file").into());
    }
    match session.assets.refuse_reserved(parent) {
        Err(ProjectError::Reserved { reserved, .. }) => {
            let message =
                format!("cannot write {}: infra reads or writes {reserved}/ itself", path.display());
            return Err(Refusal::invalid(message).help("name a file elsewhere").into());
        }
        other => other?,
    }
    let found = match fs::symlink_metadata(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if !found.is_file() {
        let message = format!("cannot write {}: it is not a regular file", path.display());
        return Err(Refusal::new(message).help("name another file").into());
    }
    if !force && !is_ours(&path, form).with_context(|| format!("cannot read {}", path.display()))? {
        return Err(Refusal::new(format!("{} exists, and `infra report` did not write it", path.display()))
            .help("name another file, or overwrite this one with --force")
            .into());
    }
    Ok(path)
}

fn is_ours(path: &Path, form: Form) -> io::Result<bool> {
    let mut beginning = Vec::new();
    fs::File::open(path)?.take(BEGINNING).read_to_end(&mut beginning)?;
    Ok(form.is_beginning(&String::from_utf8_lossy(&beginning)))
}

fn write_page(path: &Path, text: &str, session: &Session) -> anyhow::Result<()> {
    replace(path, text.as_bytes(), Access::Public)?;
    session.printer.note(format_args!("written: {}", path.display()));
    Ok(())
}

fn make_page(arguments: &ReportArguments, project: &Project, session: &Session) -> anyhow::Result<String> {
    let blueprint = &project.blueprint;
    let cluster = &blueprint.cluster;
    let now = OffsetDateTime::now_utc();
    let on_disk = session.assets.list_certificates(now)?;
    let missing = on_disk.as_deref().map(|list| project.missing_certificates(list)).unwrap_or_default();
    let lock = read_lock(project)?;
    let prices = lock.as_ref().and_then(|lock| lock.prices.as_ref());
    let live = if arguments.online {
        Some(block_on(Box::pin(read_live(arguments, blueprint, lock.as_ref(), session)))?)
    } else {
        None
    };
    let in_use = live.as_ref().and_then(|live| live.s3_uri.as_ref());
    let s3_uri = arguments.s3_uri.as_ref().or(in_use).or(cluster.s3_uri.as_ref());
    let policies = s3_uri.map(|s3_uri| {
        let boundary = permissions_boundary(cluster, s3_uri);
        std::iter::once(boundary).chain(operator_policies(cluster, s3_uri)).collect::<Vec<Policy>>()
    });
    Ok(cluster_page(&ReportSources {
        blueprint,
        now,
        version: env!("INFRA_VERSION"),
        s3_uri,
        certificates: CertificateSources { on_disk: on_disk.as_deref(), missing: &missing },
        images: &lock.as_ref().map(locked_images).unwrap_or_default(),
        costs: &blueprint.billed_items(&lock.as_ref().map(ImageLock::block_ids).unwrap_or_default()),
        prices,
        policies: policies.as_deref(),
        live: live.as_ref().map(|live| LiveSources { status: live.status.as_ref(), destroy: &live.destroy }),
    }))
}

/// The images that infra.lock names.
fn locked_images(lock: &ImageLock) -> Vec<PageImage> {
    let image = |system, id: &str, name: &str| PageImage { system, id: id.to_owned(), name: name.to_owned() };
    let flatcar = image(PoolImage::Flatcar, &lock.image.id, &lock.image.name);
    let deep_learning = lock.deep_learning.as_ref();
    let deep_learning = deep_learning.map(|found| image(PoolImage::DeepLearning, &found.id, &found.name));
    std::iter::once(flatcar).chain(deep_learning).collect()
}

/// What AWS and the cluster's API report.
struct LiveReport {
    /// The status; none if nothing of the cluster exists.
    status: Option<StatusReport>,
    /// What `infra destroy` would do.
    destroy: DestroyPlan,
    /// Where the cluster's assets are, if that is known.
    s3_uri: Option<S3Uri>,
}

async fn read_live(
    arguments: &ReportArguments,
    blueprint: &Blueprint,
    lock: Option<&ImageLock>,
    session: &Session,
) -> anyhow::Result<LiveReport> {
    let cluster = &blueprint.cluster;
    let credentials = read_credentials(session, blueprint)?;
    let clients = arguments.aws.connect(cluster, session).await;
    let sources = StatusSources {
        clients: &clients,
        blueprint,
        credentials: credentials.as_ref(),
        api_address: api_address()?,
        now: OffsetDateTime::now_utc(),
        certificates: first_to_end(session)?,
        blocks: lock.map_or(&[], |lock| &lock.capacity_blocks),
        prices: lock.and_then(|lock| lock.prices.as_ref()),
    };
    let status = until_interrupted(async { Ok(Box::pin(StatusReport::read(sources)).await?) }).await?;
    let options = DestroyOptions { delete_data: false, delete_foreign_mount_targets: false };
    let s3_uri = arguments.s3_uri.clone();
    let reading =
        Box::pin(DestroyScope::read(&clients, cluster.name.clone(), Some(cluster.clone()), s3_uri, options));
    let scope = until_interrupted(Box::pin(async { Ok(reading.await?) })).await?;
    Ok(LiveReport { status, destroy: plan_destroy(&scope), s3_uri: scope.target.s3_uris.into_iter().next() })
}
