//! The data that a job file wants to have imported.

use super::optional::require_valid;
use crate::document::{At, Fault, Position, Problems};
use crate::job::file::{DataFile, JobFile};
use crate::job::framework::Framework;
use crate::job::training::{Data, DataSource, Split, Storage};
use crate::job::values::{ARCHIVE_ENDINGS, ClaimPath, S3Source, is_archive, parse_url};

/// The data to import.
pub(super) fn build_data(
    data: &At<DataFile>,
    file: &JobFile,
    storage: Option<&Storage>,
    problems: &mut Problems,
) -> Option<Data> {
    let written = &data.value;
    let source = match (&written.archive, &written.url) {
        (Some(archive), None) => problems.parse(archive).map(DataSource::Archive),
        (None, Some(url)) if S3Source::is_meant(&url.value) => problems.parse(url).map(DataSource::Objects),
        (None, Some(url)) => problems.take(url.position, parse_url(&url.value)).map(DataSource::Url),
        (Some(_), Some(url)) => {
            let fault = Fault::new("data comes from an archive on the claim or from a URL, not from both");
            problems.add(url.position, fault.help("remove one of them"));
            None
        }
        (None, None) => {
            let fault = Fault::new("the source of the data is missing");
            problems.add(
                data.position,
                fault.help("write archive: import/data.tar.gz, url: https://… or url: s3://…"),
            );
            None
        }
    };
    let at = written.archive.as_ref().or(written.url.as_ref()).and_then(|text| text.position);
    if let Some(source) = &source {
        check_archive(source, at, problems);
    }
    if let (Some(DataSource::Archive(archive)), Some(storage)) = (&source, storage) {
        check_archive_is_safe(archive, storage, written.split.value, at, problems);
    }
    if written.split.value == Split::None && file.framework.value == Framework::PaddleV0 {
        let fault = Fault::new("paddle-v0 trainers read a part of the data each: split is lines or files");
        problems.add(written.split.position.or(data.position), fault.help("write split: lines"));
    }
    let image = written.image.as_ref().map(|image| problems.parse(image));
    let size_limit = problems.parse(&written.size_limit);
    Some(Data {
        source: source?,
        split: written.split.value,
        size_limit: size_limit?,
        image: require_valid(image)?,
    })
}

fn check_archive(source: &DataSource, at: Option<Position>, problems: &mut Problems) {
    let place = match source {
        DataSource::Archive(path) => path.as_str(),
        DataSource::Url(url) => url.split(['?', '#']).next().unwrap_or(url),
        // Whatever is no archive is used as it is.
        DataSource::Objects(_) => return,
    };
    if !is_archive(place) {
        let fault = Fault::new(format!("'{place}' is not an archive that can be unpacked"));
        problems.add(at, fault.help(format!("archives end with {}", ARCHIVE_ENDINGS.join(", "))));
    }
}

/// The import replaces directories of the job; an archive in one of them would be deleted.
fn check_archive_is_safe(
    archive: &ClaimPath,
    storage: &Storage,
    split: Split,
    at: Option<Position>,
    problems: &mut Problems,
) {
    let below = archive.as_str().strip_prefix(storage.path.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let Some((first, _)) = below.and_then(|rest| rest.split_once('/')) else { return };
    let is_shard = first.chars().all(|c| c.is_ascii_digit());
    let is_replaced = match split {
        _ if first == ".infra" => true,
        Split::None => first == "data",
        Split::Lines | Split::Files => is_shard,
    };
    if is_replaced {
        let fault =
            Fault::new(format!("'{archive}' is in {}/{first}, which the import replaces", storage.path));
        problems
            .add(at, fault.help("keep archives outside of the job's directory, such as import/data.tar.gz"));
    }
}
