//! Data of a job in S3 on its way to the claim: listed and signed here, fetched by a pod, and how that is shown.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use super::target::random_mark;
use crate::aws::{AwsError, DataBucket, DataObject, LinkRefusal};
use crate::cli::aws_access::AwsOptions;
use crate::cli::claim::{ClaimAccess, Direction, Mount, Subject, TransferView, write_end};
use crate::cli::failure::Refusal;
use crate::cli::interruption::{Interrupted, until_interrupted_with};
use crate::cli::session::Session;
use crate::cli::terminal::printer::Output;
use crate::job::data::{
    FetchRequest, FetchView, LINK_LIFE, LinkSigner, ListedObject, MOST_OBJECTS, Moved, ObjectSet,
    bytes_in_words, fetch, too_many,
};
use crate::job::values::S3Source;
use crate::job::{ClusterFacts, Scripts, TrainingJob, Workload};
use crate::kube::ApiServer;
use crate::outcome::Explain;
use crate::plural::count_of;

/// What the same command does after a break.
const CONTINUES: &str = "the same command continues with what is missing";

/// Brings the data of a job from S3 onto its claim, if it is there, and prints what that came to. It returns when all of it has arrived.
pub(super) async fn fetch_data(
    job: &TrainingJob,
    workload: &Workload,
    (api, facts, scripts): (&ApiServer, ClusterFacts<'_>, &Scripts),
    (aws, may_fetch): (&AwsOptions, bool),
    session: &Session,
) -> anyhow::Result<()> {
    let Some((source, limit)) = job.objects() else { return Ok(()) };
    let Some(plan) = workload.data.as_ref().and_then(|data| data.objects.as_ref()) else { return Ok(()) };
    let region = facts.blueprint().map(|blueprint| blueprint.cluster.region.as_str());
    let clients = aws.connect_to(region, session).await;
    session.printer.note(format_args!("data: listing {source}"));
    let listing = async {
        let bucket = clients.data_bucket(source.bucket()).await;
        let bucket = bucket.map_err(|error| explain_listing(error, source))?;
        let (object, below) = list_source_objects(&bucket, source).await?;
        Ok((bucket, ObjectSet::new(source, object, below, limit)?))
    };
    let (bucket, objects) = until_interrupted_with(listing, Interrupted::WhileFetchingData).await?;
    let all = format!("{}, {}", count_of(objects.files(), "file"), bytes_in_words(objects.bytes));
    session.printer.note(format_args!("data: {all}"));
    let access = ClaimAccess::of_job((api, facts, scripts), job, workload, random_mark()?);
    let signer = Signer { bucket, source, last_signed: Mutex::new(None) };
    let view = TransferView::new(Direction::Put, Subject::Data, session);
    // A reason is reported once, however many objects wait for the same.
    let told = Mutex::new(HashSet::new());
    let note = |text: &str| {
        let reason = text.split_once(": ").map_or(text, |(_, reason)| reason).to_owned();
        if told.lock().is_ok_and(|mut told| told.insert(reason)) {
            session.printer.warning(text);
        }
    };
    let uri = source.to_string();
    let request = FetchRequest { plan, source: &uri, objects: &objects, may_fetch };
    let moved = access
        .run(Mount::ReadWrite, session, Interrupted::WhileFetchingData, async |channel| {
            let view = FetchView { progress: &|progress| view.show(progress), note: &note };
            fetch(channel, request, &signer, view).await
        })
        .await;
    view.finish();
    print_end(&moved?, session);
    Ok(())
}

/// Says what is fetched from S3 where nothing is fetched.
pub(super) fn mention_objects(job: &TrainingJob, session: &Session) {
    if let Some((source, _)) = job.objects() {
        session.printer.note(format_args!(
            "data: {source} is fetched by `infra job submit`, with links that your AWS credentials sign"
        ));
    }
}

fn print_end(moved: &Moved, session: &Session) {
    if session.output == Output::Json {
        return write_end(Direction::Put, Subject::Data, moved, session);
    }
    let done = match moved.moved_files {
        0 => "all of it is there".to_owned(),
        files if files == moved.files => "fetched".to_owned(),
        files => {
            let bytes = bytes_in_words(moved.moved_bytes);
            format!("fetched {} with {bytes}; the others were there", count_of(files, "file"))
        }
    };
    session.printer.note(format_args!("data: {done}"));
}

/// The object that a source names, if there is one, and all that is below it.
async fn list_source_objects(
    bucket: &DataBucket,
    source: &S3Source,
) -> anyhow::Result<(Option<ListedObject>, Vec<ListedObject>)> {
    let refuse = |error: AwsError| explain_listing(error, source);
    let object = match source.object_key() {
        Some(key) => bucket.object(key).await.map_err(refuse)?,
        None => None,
    };
    // Whoever names an archive means nothing else.
    if source.is_archive() {
        return Ok((object.map(listed_object), Vec::new()));
    }
    let below = bucket.objects_below(&source.key_prefix(), MOST_OBJECTS).await.map_err(refuse)?;
    let below = below.ok_or_else(|| too_many(source))?;
    Ok((object.map(listed_object), below.into_iter().map(listed_object).collect()))
}

fn listed_object(object: DataObject) -> ListedObject {
    let DataObject { key, size, etag, modified, archived_in } = object;
    ListedObject { key, size, etag, modified, archived_in }
}

fn explain_listing(error: AwsError, source: &S3Source) -> anyhow::Error {
    let bucket = source.bucket();
    if error.is_missing_bucket() {
        return Refusal::new(format!("{source}: there is no bucket {bucket}")).into();
    }
    if error.is_denied() {
        let refusal = Refusal::new(format!("{source} cannot be listed: {error}"));
        return refusal
            .help(format!(
                "your credentials need s3:ListBucket on the bucket {bucket} and s3:GetObject on its objects; a bucket of another account \
                 must allow them too; one whose requester pays is not supported: copy the data to a bucket of your own"
            ))
            .into();
    }
    anyhow::Error::new(error).context(format!("{source} cannot be listed"))
}

/// Signs links to the objects of a source.
struct Signer<'a> {
    bucket: DataBucket,
    source: &'a S3Source,
    last_signed: Mutex<Option<Instant>>,
}

impl LinkSigner for Signer<'_> {
    type Error = anyhow::Error;

    async fn sign(&self, key: &str) -> Result<String, anyhow::Error> {
        let link = self.bucket.sign_link(key, LINK_LIFE).await;
        let link = link.map_err(|error| {
            let help = error.help().unwrap_or_default();
            Refusal::of_credentials(format!("links cannot be signed: {error}")).help(help)
        })?;
        if let Ok(mut last) = self.last_signed.lock() {
            *last = Some(Instant::now());
        }
        Ok(link.reveal())
    }

    fn has_expired_links(&self) -> bool {
        let last = self.last_signed.lock().ok().and_then(|last| *last);
        last.is_some_and(|signed| signed.elapsed() >= LINK_LIFE)
    }

    fn is_about_link(&self, code: &str, message: &str) -> bool {
        matches!(LinkRefusal::of(code, message), LinkRefusal::Expired | LinkRefusal::Credentials)
    }

    fn refuse(&self, key: &str, code: &str, message: &str) -> anyhow::Error {
        let object = format!("s3://{}/{key}", self.source.bucket());
        let refusal = match LinkRefusal::of(code, message) {
            LinkRefusal::Expired => Refusal::new(format!("{object}: S3 takes new links for expired ones: {message}"))
                .help("set this machine's clock (`timedatectl set-ntp true`, or chrony), then run the same command again"),
            LinkRefusal::Credentials => {
                Refusal::of_credentials(format!("{object}: {code}: {message}")).help(format!(
                    "your AWS credentials sign the links; renew them (`aws sso login`, a fresh session), or name a profile with --profile; \
                     {CONTINUES}"
                ))
            }
            LinkRefusal::Archived => {
                Refusal::new(format!("{object} is archived and must be restored first: {code}: {message}"))
                    .help("restore it (`aws s3api restore-object`), then run the same command again")
            }
            LinkRefusal::Denied => Refusal::new(format!("{object} cannot be read: {code}: {message}")).help(
                "your credentials need s3:GetObject on it and, if it is encrypted with a KMS key, kms:Decrypt with that key; policies of \
                 its bucket and of the cluster's S3 endpoint must allow it too",
            ),
            LinkRefusal::Other if code == "PreconditionFailed" => {
                Refusal::new(format!("{object} was changed or deleted while it was fetched"))
                    .help("run the same command again: it fetches what is there now, and keeps what has not changed")
            }
            LinkRefusal::Other => Refusal::new(format!("{object} cannot be fetched: {code}: {message}"))
                .help(format!("see that machines of the cluster reach S3; {CONTINUES}")),
        };
        refusal.into()
    }
}
