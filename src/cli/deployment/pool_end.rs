//! Pools whose end has passed, or would come too soon: `up` refuses them, `plan` and `validate` say so.

use std::fmt;

use time::OffsetDateTime;

use crate::cli::failure::Refusal;
use crate::config::values::{Expiry, PoolName};
use crate::config::{Cluster, Pool};

/// An end that AWS would not keep to: its action recurs on the same minute of every year.
struct WrongEnd<'a> {
    pool: &'a PoolName,
    end: Expiry,
    /// When AWS would end the pool instead; none if the end has passed.
    sooner: Option<Expiry>,
}

/// What is said of every pool whose end is wrong, of all or of the one that is meant.
pub(in crate::cli) fn wrong_ends(
    cluster: &Cluster,
    only: Option<&PoolName>,
    now: OffsetDateTime,
) -> Vec<String> {
    WrongEnd::all(cluster, only, now).map(|wrong| wrong.to_string()).collect()
}

/// Refuses a pool whose end is wrong, of all or of the one that is meant.
pub(in crate::cli) fn refuse_wrong_ends(
    cluster: &Cluster,
    only: Option<&PoolName>,
    now: OffsetDateTime,
) -> Result<(), Refusal> {
    match WrongEnd::all(cluster, only, now).next() {
        None => Ok(()),
        Some(wrong) => Err(Refusal::new(wrong.to_string()).help(wrong.help())),
    }
}

impl<'a> WrongEnd<'a> {
    fn all(
        cluster: &'a Cluster,
        only: Option<&'a PoolName>,
        now: OffsetDateTime,
    ) -> impl Iterator<Item = Self> {
        let pools = cluster.pools.iter().filter(move |pool| only.is_none_or(|name| pool.name == *name));
        pools.filter_map(move |pool| Self::of(pool, now))
    }

    fn of(pool: &'a Pool, now: OffsetDateTime) -> Option<Self> {
        let end = pool.schedule.expires?;
        let first = end.first_after(now);
        let wrong = |sooner| Self { pool: &pool.name, end, sooner };
        if end.time() <= now {
            Some(wrong(None))
        } else if first < end {
            Some(wrong(Some(first)))
        } else {
            None
        }
    }

    fn help(&self) -> String {
        let pool = self.pool;
        match self.sooner {
            None => format!(
                "set `expires` of pool {pool} to a later time, or remove it, to start the pool again; delete the pool from cluster.yaml if it is no longer needed"
            ),
            Some(_) => format!(
                "AWS repeats an end every year: set `expires` of pool {pool} to a date within a year, or remove it"
            ),
        }
    }
}

impl fmt::Display for WrongEnd<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, end, sooner } = self;
        match sooner {
            None => write!(formatter, "pool {pool} has ended: its expires, {end}, is in the past"),
            Some(sooner) => write!(
                formatter,
                "pool {pool} would already end on {sooner}: `expires` ({end}) is more than a year away"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use time::macros::datetime;

    use super::{refuse_wrong_ends, wrong_ends};

    #[test]
    fn only_the_pool_that_is_meant_is_judged() -> Result<(), Box<dyn std::error::Error>> {
        let text = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd', pools: [\
                    {name: over, instanceType: m5.large, expires: '2026-11-01T18:00:00Z'}, \
                    {name: good, instanceType: m5.large, expires: '2026-12-01T18:00:00Z'}, \
                    {name: far, instanceType: m5.large, expires: '2028-01-01T18:00:00Z'}]}";
        let cluster = crate::config::validate(Path::new("cluster.yaml"), text)?.value;
        let now = datetime!(2026-11-14 12:00 UTC);
        let named = |only: Option<&str>| -> Result<Vec<String>, Box<dyn std::error::Error>> {
            let only = only.map(str::parse).transpose()?;
            let found = wrong_ends(&cluster, only.as_ref(), now);
            let is_refused = refuse_wrong_ends(&cluster, only.as_ref(), now).is_err();
            assert_eq!(is_refused, !found.is_empty(), "{found:?}");
            Ok(found.iter().map(|text| text.split(' ').nth(1).unwrap_or_default().to_owned()).collect())
        };
        assert_eq!(named(None)?, ["over", "far"]);
        assert_eq!(named(Some("over"))?, ["over"]);
        assert_eq!(named(Some("far"))?, ["far"]);
        assert_eq!(named(Some("good"))?, [""; 0], "the end of another pool is no reason to refuse this one");
        Ok(())
    }
}
