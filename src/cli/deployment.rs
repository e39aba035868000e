//! What `up` and `plan` work from: everything rendered anew in memory, the lock, and what is in AWS.

use anyhow::Context;
use time::OffsetDateTime;

use super::failure::Refusal;
use super::printer::{Printer, count_of};
use super::render::render_in_memory;
use super::session::Session;
use crate::aws::Clients;
use crate::blueprint::{Blueprint, StackPart};
use crate::config::values::{PoolName, S3Uri};
use crate::credentials::{Credentials, list_certificates};
use crate::deploy::preflight::CertificateExpiry;
use crate::deploy::{
    ChosenImage, ChosenS3Uri, ImageChoice, ImageLock, ImageNotice, Inputs, LiveCluster, s3_uri_in_use,
};
use crate::document::read_text;
use crate::durable_file::{self, Access};
use crate::render::{Asset, Assets};

const LOCK_FILE: &str = "infra.lock";

/// A cluster and everything rendered from it.
pub(super) struct Deployment {
    pub(super) blueprint: Blueprint,
    pub(super) credentials: Credentials,
    pub(super) assets: Assets,
}

impl Deployment {
    /// Renders everything in memory, and says when files on disk are older.
    pub(super) fn load(session: &Session) -> anyhow::Result<Self> {
        let deployment = Self::render(session)?;
        deployment.mention_stale_files(session)?;
        Ok(deployment)
    }

    /// Renders everything in memory; what would be refused later is refused now.
    pub(super) fn render(session: &Session) -> anyhow::Result<Self> {
        let blueprint = Blueprint::new(session.assets.load_cluster(&session.printer)?)?;
        let store = session.assets.open_existing_credentials(&session.printer)?;
        let credentials = Credentials::read(&store, &blueprint.identities)?;
        let rendered = render_in_memory(&blueprint, &credentials, session)?;
        if !rendered.findings.0.is_empty() {
            return Err(rendered.findings.into());
        }
        Ok(Self { blueprint, credentials, assets: rendered.assets })
    }

    /// Refuses the name of a pool that cluster.yaml does not have.
    pub(super) fn expect_pool(&self, name: Option<&PoolName>) -> Result<(), Refusal> {
        let Some(name) = name else { return Ok(()) };
        let cluster = &self.blueprint.cluster;
        if cluster.pool(name).is_some() {
            return Ok(());
        }
        let names: Vec<&str> = cluster.pools.iter().map(|pool| pool.name.as_str()).collect();
        let known = if names.is_empty() { "no pools".to_owned() } else { names.join(", ") };
        Err(Refusal::invalid(format!("cluster.yaml has no pool '{name}'")).help(format!("it has {known}")))
    }

    pub(super) fn inputs(&self, s3_uri: S3Uri, image: ImageChoice) -> Inputs<'_> {
        let Self { blueprint, credentials, assets } = self;
        Inputs { blueprint, credentials, assets, s3_uri, image }
    }

    fn mention_stale_files(&self, session: &Session) -> anyhow::Result<()> {
        let on_disk = session.assets.rendered_files()?;
        if on_disk.is_empty() {
            return Ok(());
        }
        let differs = |asset: &&Asset| {
            std::fs::read(session.assets.file(&asset.path)).map_or(true, |bytes| bytes != *asset.bytes)
        };
        let stale = self.assets.files().filter(differs).count();
        let unknown =
            on_disk.iter().filter(|path| self.assets.files().all(|asset| asset.path != **path)).count();
        if stale + unknown > 0 {
            session.printer.warning(format_args!(
                "rendered files on disk are not what is used here; `infra render` brings {} up to date",
                count_of(stale + unknown, "file")
            ));
        }
        Ok(())
    }
}

/// Where assets go; a move of them is warned of.
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

/// The lock, if there is one; refused if it belongs to another cluster.
pub(super) fn read_lock(session: &Session, blueprint: &Blueprint) -> anyhow::Result<Option<ImageLock>> {
    let path = session.assets.file(LOCK_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let lock = ImageLock::parse(&path, &read_text(&path)?)?;
    lock.check(&blueprint.cluster)?;
    Ok(Some(lock))
}

/// Writes the lock unless it says the same already.
pub(super) fn write_lock(session: &Session, lock: &ImageLock) -> anyhow::Result<()> {
    let path = session.assets.file(LOCK_FILE);
    if durable_file::ensure(&path, lock.text().as_bytes(), Access::Public).context("writing infra.lock")? {
        session.printer.note(format_args!("infra.lock: {} ({})", lock.image.id, lock.image.name));
    }
    Ok(())
}

/// Which image machines boot; what the user should know about the choice is printed.
pub(super) async fn choose_image(
    session: &Session,
    clients: &Clients,
    blueprint: &Blueprint,
    live: &LiveCluster,
    upgrade: bool,
) -> anyhow::Result<ChosenImage> {
    let lock = read_lock(session, blueprint)?;
    let in_use = live.parameter(&StackPart::ControlPlane, "ImageId");
    let chosen = ChosenImage::choose(clients, &blueprint.cluster, lock, in_use, upgrade).await?;
    match &chosen.notice {
        Some(notice @ ImageNotice::AlreadyNewest(_)) => session.printer.note(notice),
        Some(notice @ ImageNotice::LockMissing(_)) => session.printer.warning(notice),
        None => {}
    }
    Ok(chosen)
}

/// When each certificate on disk ends.
pub(super) fn certificate_expiries(session: &Session) -> anyhow::Result<Vec<CertificateExpiry>> {
    let listed =
        list_certificates(&session.assets.credentials(), OffsetDateTime::now_utc())?.unwrap_or_default();
    let expiry = |entry: crate::credentials::InventoryEntry| {
        let facts = entry.certificate.ok()?;
        let name = entry.file.trim_end_matches(".pem").to_owned();
        Some(CertificateExpiry { name, days_left: facts.days_left })
    };
    Ok(listed.into_iter().filter_map(expiry).collect())
}
