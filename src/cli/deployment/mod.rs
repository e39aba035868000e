//! What `up` and `plan` start from: everything rendered in memory, the lock, and what is in AWS.

pub(super) mod consent;
pub(super) mod disruption;
pub(super) mod machine_wording;
pub(super) mod preflight;
pub(super) mod prices;
pub(super) mod rotation;

use time::OffsetDateTime;

use super::session::Session;
use crate::aws::Clients;
use crate::blueprint::Blueprint;
use crate::cli::terminal::printer::Printer;
use crate::config::values::S3Uri;
use crate::credentials::Credentials;
use crate::deploy::preflight::CertificateExpiry;
use crate::deploy::{
    ChosenImage, ChosenS3Uri, ImageChoice, ImageLock, ImageNotice, Inputs, LiveCluster, PoolBlocks,
    images_in_use, s3_uri_in_use,
};
use crate::plural::count_of;
use crate::project::Project;
use crate::render::Assets;

/// A cluster and everything rendered from it.
pub(super) struct Deployment {
    pub(super) project: Project,
    pub(super) credentials: Credentials,
    pub(super) assets: Assets,
}

impl Deployment {
    /// Renders everything in memory, and warns when files on disk differ.
    pub(super) fn load(session: &Session) -> anyhow::Result<Self> {
        let project = session.load_project()?;
        let credentials = project.read_credentials(&session.open_existing_credentials()?)?;
        let rendered = project.render(&credentials)?;
        session.print_unused_snippets(&rendered);
        let assets = rendered.into_valid_assets()?;
        let outdated = project.count_outdated_files(&assets)?;
        if outdated > 0 {
            session.printer.warning(format_args!(
                "rendered files on disk are outdated; `infra render` updates {}",
                count_of(outdated, "file")
            ));
        }
        Ok(Self { project, credentials, assets })
    }

    pub(super) fn inputs(&self, s3_uri: S3Uri, image: ImageChoice, blocks: PoolBlocks) -> Inputs<'_> {
        let Self { project, credentials, assets } = self;
        Inputs { blueprint: &project.blueprint, credentials, assets, s3_uri, image, blocks }
    }
}

/// The S3 URI to upload assets to; warns when it is not the one in use.
pub(super) fn choose_s3_uri(
    flag: Option<&S3Uri>,
    blueprint: &Blueprint,
    live: &LiveCluster,
    printer: &Printer,
) -> anyhow::Result<S3Uri> {
    let chosen = ChosenS3Uri::choose(flag, &blueprint.cluster, s3_uri_in_use(live))?;
    if let Some(warning) = chosen.warning() {
        printer.warning(warning);
    }
    Ok(chosen.uri)
}

/// infra.lock, if there is one.
pub(super) fn read_lock(project: &Project) -> anyhow::Result<Option<ImageLock>> {
    let Some((path, text)) = project.read_lock()? else { return Ok(None) };
    Ok(Some(ImageLock::parse(&path, &text, &project.blueprint.cluster)?))
}

/// Writes infra.lock unless it has the same content already.
pub(super) fn write_lock(project: &Project, lock: &ImageLock, printer: &Printer) -> anyhow::Result<()> {
    if project.write_lock(&lock.text())? {
        printer.note(format_args!("infra.lock: {} ({})", lock.image.id, lock.image.name));
    }
    Ok(())
}

/// Which image machines boot; what the user should know about the choice is printed.
pub(super) async fn choose_image(
    session: &Session,
    clients: &Clients,
    project: &Project,
    live: &LiveCluster,
    upgrade: bool,
) -> anyhow::Result<ChosenImage> {
    let blueprint = &project.blueprint;
    let lock = read_lock(project)?;
    let in_use = images_in_use(&blueprint.cluster, live);
    let chosen = ChosenImage::choose(clients, &blueprint.cluster, lock, in_use, upgrade).await?;
    match &chosen.notice {
        Some(notice @ ImageNotice::AlreadyNewest(_)) => session.printer.note(notice),
        Some(notice @ ImageNotice::LockMissing(_)) => session.printer.warning(notice),
        None => {}
    }
    Ok(chosen)
}

/// The capacity blocks of pools as AWS has them now, which the lock is to say.
pub(super) async fn read_blocks(
    clients: &Clients,
    project: &Project,
    lock: &mut ImageLock,
) -> anyhow::Result<PoolBlocks> {
    let cluster = &project.blueprint.cluster;
    let now = OffsetDateTime::now_utc();
    let blocks = PoolBlocks::read(clients, cluster, &lock.capacity_blocks, now).await?;
    lock.capacity_blocks = blocks.locked();
    Ok(blocks)
}

/// When each certificate on disk ends.
pub(super) fn certificate_expiries(session: &Session) -> anyhow::Result<Vec<CertificateExpiry>> {
    let listed = session.assets.list_certificates(OffsetDateTime::now_utc())?.unwrap_or_default();
    let expiry = |entry: crate::credentials::InventoryEntry| {
        let facts = entry.certificate.ok()?;
        let name = entry.file.trim_end_matches(".pem").to_owned();
        Some(CertificateExpiry { name, days_left: facts.days_left })
    };
    Ok(listed.into_iter().filter_map(expiry).collect())
}
