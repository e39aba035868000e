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
use crate::deploy::{ImageChoice, ImageLock, LiveCluster, LockedImage, Sources, live_place};
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

    pub(super) fn sources(&self) -> Sources<'_> {
        Sources { blueprint: &self.blueprint, credentials: &self.credentials, assets: &self.assets }
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

/// Where assets go: what the flag says, then cluster.yaml, then what the live cluster uses.
pub(super) fn choose_place(
    flag: Option<&S3Uri>,
    blueprint: &Blueprint,
    live: &LiveCluster,
    printer: &Printer,
) -> anyhow::Result<S3Uri> {
    let now = live_place(live);
    let place = flag.or(blueprint.cluster.s3_uri.as_ref()).or(now.as_ref()).cloned();
    if let (Some(place), Some(now)) = (&place, &now)
        && place != now
    {
        printer.warning(format_args!(
            "assets move from {now} to {place}: every machine gets a new configuration, and the old place must stay until all have it"
        ));
    }
    Ok(place.ok_or_else(|| {
        Refusal::new("there is no place to upload to")
            .help("`--s3-uri s3://bucket/prefix`, or s3URI in cluster.yaml; `--create-bucket` makes a missing bucket")
    })?)
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

/// Which image machines boot, and the lock to write for it.
pub(super) struct ChosenImage {
    pub(super) choice: ImageChoice,
    pub(super) lock: Option<ImageLock>,
}

impl ChosenImage {
    /// The image of the control plane.
    pub(super) fn id(&self) -> Option<&str> {
        match &self.choice {
            ImageChoice::Locked(id) => Some(id),
            ImageChoice::Live => self.lock.as_ref().map(|lock| lock.image.id.as_str()),
        }
    }
}

/// The lock's image; without a lock that of the live cluster; without that the newest.
pub(super) async fn choose_image(
    session: &Session,
    clients: &Clients,
    blueprint: &Blueprint,
    live: &LiveCluster,
    upgrade: bool,
) -> anyhow::Result<ChosenImage> {
    let lock = read_lock(session, blueprint)?;
    let in_use = live.parameter(&StackPart::ControlPlane, "ImageId").map(str::to_owned);
    if upgrade {
        let newest = ImageLock::resolve(clients, &blueprint.cluster).await?;
        let before = lock.map(|lock| lock.image.id).or(in_use);
        if before.as_deref() == Some(&newest.image.id) {
            session.printer.note(format_args!("{} is the newest image already", newest.image.name));
        }
        let choice = ImageChoice::Locked(newest.image.id.clone());
        return Ok(ChosenImage { choice, lock: Some(newest) });
    }
    if let Some(lock) = lock {
        return Ok(ChosenImage { choice: ImageChoice::Locked(lock.image.id.clone()), lock: Some(lock) });
    }
    let Some(id) = in_use else {
        let lock = ImageLock::resolve(clients, &blueprint.cluster).await?;
        return Ok(ChosenImage { choice: ImageChoice::Locked(lock.image.id.clone()), lock: Some(lock) });
    };
    let name = clients.image(&id).await?.map_or_else(|| "unknown".to_owned(), |image| image.name);
    session
        .printer
        .warning(format_args!("infra.lock is missing; machines keep the image of the live stacks, {id}"));
    let cluster = &blueprint.cluster;
    let lock = ImageLock {
        cluster: cluster.name.to_string(),
        region: cluster.region.to_string(),
        image: LockedImage { id, name },
    };
    Ok(ChosenImage { choice: ImageChoice::Live, lock: Some(lock) })
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
