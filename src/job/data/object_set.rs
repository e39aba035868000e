//! Objects as S3 lists them into files on the claim: which path each gets, and what cannot be fetched at all.

use aws_lc_rs::digest::{Context, SHA256};

use super::error::DataError;
use super::size_words::bytes_in_words;
use crate::hexadecimal::hexadecimal;
use crate::job::values::{S3Source, Size};
use crate::plural::count_of;

/// More are better packed into archives: each needs a request of its own, and a comparison at every import.
pub(crate) const MOST_OBJECTS: usize = 1_000_000;
/// What a name on a Linux file system may have.
const LONGEST_NAME: usize = 255;
/// Objects that are refused are shown by name, the first of them.
const NAMES_SHOWN: usize = 5;
const ANOTHER_KEY: &str = "copy them to other keys, or name a prefix that leaves them out";

/// An object as S3 lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedObject {
    /// The key of the object.
    pub key: String,
    /// The size in bytes.
    pub size: u64,
    /// What distinguishes two versions of the object.
    pub etag: String,
    /// When it was written, in seconds since 1970.
    pub modified: u64,
    /// The storage class that it must be restored from before it can be read, if it must.
    pub archived_in: Option<String>,
}

/// An object, and the path that it gets below the directory of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceObject {
    listed: ListedObject,
    /// Where the path begins in the key.
    path_start: usize,
}

impl SourceObject {
    /// The key of the object.
    #[must_use]
    pub(crate) fn key(&self) -> &str {
        &self.listed.key
    }

    /// The path of the file.
    #[must_use]
    pub(crate) fn path(&self) -> &str {
        self.listed.key.get(self.path_start..).unwrap_or_default()
    }

    /// The size in bytes.
    #[must_use]
    pub(crate) fn size(&self) -> u64 {
        self.listed.size
    }

    pub(super) fn etag(&self) -> &str {
        &self.listed.etag
    }

    pub(super) fn modified(&self) -> u64 {
        self.listed.modified
    }
}

/// All objects of a source, each with a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectSet {
    /// The objects, in the order of their keys.
    pub(super) objects: Vec<SourceObject>,
    /// The size of all of them in bytes.
    pub(crate) bytes: u64,
    /// What distinguishes two states of the source.
    pub(super) digest: String,
}

impl ObjectSet {
    /// What is fetched of a source: the object that it names, or all that is below it.
    pub(crate) fn new(
        source: &S3Source,
        object: Option<ListedObject>,
        below: Vec<ListedObject>,
        limit: &Size,
    ) -> Result<Self, DataError> {
        let prefix = source.key_prefix();
        // Consoles create an empty object for each directory.
        let below: Vec<ListedObject> = below
            .into_iter()
            .filter(|object| object.size > 0 || !(object.key.ends_with('/') || object.key == prefix))
            .collect();
        let objects = match (object, below.is_empty()) {
            (Some(_), false) => {
                let reason = format!("{source} is an object, and there are objects below {source}/ as well");
                return Err(object_set_error(reason, format!("write {source}/ for what is below it")));
            }
            (Some(object), true) => {
                let path_start = object.key.rfind('/').map_or(0, |slash| slash + 1);
                vec![SourceObject { listed: object, path_start }]
            }
            (None, true) => {
                let reason = format!("there is no object at {source}, and none below it");
                return Err(object_set_error(
                    reason,
                    "keys are case-sensitive; `aws s3 ls` shows them".to_owned(),
                ));
            }
            (None, false) => {
                let path_start = prefix.len();
                let mut objects: Vec<SourceObject> =
                    below.into_iter().map(|listed| SourceObject { listed, path_start }).collect();
                objects.sort_by(|a, b| a.path().cmp(b.path()));
                objects
            }
        };
        let bytes = objects.iter().map(SourceObject::size).sum();
        let set = Self { digest: digest_of(&objects), objects, bytes };
        set.check_paths()?;
        set.check_classes()?;
        set.check_size(source, limit)?;
        Ok(set)
    }

    /// How many objects there are.
    #[must_use]
    pub(crate) fn files(&self) -> u64 {
        self.objects.len() as u64
    }

    fn check_paths(&self) -> Result<(), DataError> {
        let bad: Vec<String> = self
            .objects
            .iter()
            .filter(|object| !is_path(object.path()))
            .map(|object| format!("{:?}", object.path()))
            .collect();
        if !bad.is_empty() {
            let reason = format!(
                "{} cannot be a path on the claim: {}",
                count_of(bad.len(), "key"),
                first_names(&bad)
            );
            return Err(object_set_error(reason, ANOTHER_KEY.to_owned()));
        }
        let paths: std::collections::HashSet<&str> = self.objects.iter().map(SourceObject::path).collect();
        let directories = |path: &str| {
            path.match_indices('/')
                .filter_map(|(at, _)| path.get(..at).map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let mut both: Vec<String> = self
            .objects
            .iter()
            .flat_map(|object| directories(object.path()))
            .filter(|directory| paths.contains(directory.as_str()))
            .collect();
        both.sort();
        both.dedup();
        if !both.is_empty() {
            let reason = format!(
                "{} a file and a directory at the same time: {}",
                if both.len() == 1 {
                    "1 key would be".to_owned()
                } else {
                    format!("{} keys would be", both.len())
                },
                first_names(&both)
            );
            return Err(object_set_error(reason, ANOTHER_KEY.to_owned()));
        }
        Ok(())
    }

    fn check_classes(&self) -> Result<(), DataError> {
        let archived: Vec<String> = self
            .objects
            .iter()
            .filter_map(|object| Some(format!("{} ({})", object.path(), object.listed.archived_in.as_ref()?)))
            .collect();
        if archived.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "{} must be restored first: {}",
            count_of(archived.len(), "archived object"),
            first_names(&archived)
        );
        Err(object_set_error(
            reason,
            "restore them (`aws s3api restore-object`), then run the same command again".to_owned(),
        ))
    }

    fn check_size(&self, source: &S3Source, limit: &Size) -> Result<(), DataError> {
        if self.bytes <= limit.bytes() {
            return Ok(());
        }
        let (files, bytes) = (count_of(self.files(), "file"), bytes_in_words(self.bytes));
        let reason = format!("{source} has {files} with {bytes}, more than data.sizeLimit, which is {limit}");
        Err(object_set_error(reason, "if that is right, raise data.sizeLimit in the job file".to_owned()))
    }
}

/// A source that has too many objects.
pub(crate) fn too_many(source: &S3Source) -> DataError {
    object_set_error(
        format!("{source} has more than {MOST_OBJECTS} objects"),
        "pack them into larger ones, such as archives, or name a prefix below".to_owned(),
    )
}

fn object_set_error(reason: String, help: String) -> DataError {
    DataError::Source { reason, help }
}

/// Whether a path stays below its directory, and can be the name of a file.
fn is_path(path: &str) -> bool {
    path.split('/')
        .all(|part| !matches!(part, "" | "." | "..") && part.len() <= LONGEST_NAME && !part.contains('\0'))
}

/// As many names as a line holds.
fn first_names(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn digest_of(objects: &[SourceObject]) -> String {
    let mut digest = Context::new(&SHA256);
    for object in objects {
        let line =
            format!("{}\0{}\0{}\0{}\n", object.path(), object.size(), object.etag(), object.modified());
        digest.update(line.as_bytes());
    }
    hexadecimal(digest.finish().as_ref())
}

#[cfg(test)]
mod tests {
    use super::{ListedObject, ObjectSet};
    use crate::job::data::DataError;
    use crate::job::values::{S3Source, Size};

    fn listed(key: &str, size: u64) -> ListedObject {
        ListedObject { key: key.to_owned(), size, etag: "\"1\"".to_owned(), modified: 1, archived_in: None }
    }

    fn set(source: &str, object: Option<&str>, below: &[(&str, u64)]) -> Result<Vec<String>, String> {
        let source: S3Source = source.parse().map_err(|fault| format!("{fault}"))?;
        let limit: Size = "1Mi".parse().map_err(|fault| format!("{fault}"))?;
        let below = below.iter().map(|(key, size)| listed(key, *size)).collect();
        let set = ObjectSet::new(&source, object.map(|key| listed(key, 1)), below, &limit);
        let set = set.map_err(|error: DataError| error.to_string())?;
        Ok(set.objects.iter().map(|object| object.path().to_owned()).collect())
    }

    #[test]
    fn keys_become_paths_below_the_prefix() {
        assert_eq!(
            set("s3://bucket/set", None, &[("set/b/2", 1), ("set/", 0), ("set/b/", 0), ("set/a", 0)]),
            Ok(vec!["a".to_owned(), "b/2".to_owned()])
        );
        assert_eq!(set("s3://bucket/x/one.csv", Some("x/one.csv"), &[]), Ok(vec!["one.csv".to_owned()]));
        assert_eq!(set("s3://bucket", None, &[("a", 1)]), Ok(vec!["a".to_owned()]));
    }

    #[test]
    fn what_is_no_path_is_refused_by_name() {
        let refused = [
            (
                &[("set/a//b", 1), ("set/../c", 1)][..],
                "2 keys cannot be a path on the claim: \"../c\", \"a//b\"",
            ),
            (&[("set/d/", 5)], "1 key cannot be a path on the claim: \"d/\""),
            (
                &[("set/a", 1), ("set/a/b", 1), ("set/a-", 1)],
                "1 key would be a file and a directory at the same time: a",
            ),
            (
                &[("set/a", 600 << 10), ("set/b", 600 << 10)],
                "s3://bucket/set has 2 files with 1.1 MiB, more than data.sizeLimit, which is 1Mi",
            ),
            (&[], "there is no object at s3://bucket/set, and none below it"),
        ];
        for (below, reason) in refused {
            assert_eq!(set("s3://bucket/set", None, below), Err(reason.to_owned()));
        }
        assert_eq!(
            set("s3://bucket/set", Some("set"), &[("set/a", 1)]),
            Err("s3://bucket/set is an object, and there are objects below s3://bucket/set/ as well"
                .to_owned())
        );
    }
}
