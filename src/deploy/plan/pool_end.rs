//! Pools whose end has passed, or would come too soon: `up` refuses them, `plan` and `validate` warn of them.

use std::fmt;

use time::OffsetDateTime;

use crate::config::values::{Expiry, PoolName};
use crate::config::{Cluster, Pool};

/// A pool with an end that AWS would not keep to: the action that ends a pool recurs every year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongPoolEnd {
    pool: PoolName,
    end: Expiry,
    /// When AWS would end the pool instead; none if the end has passed.
    sooner: Option<Expiry>,
}

/// The pools whose end is wrong: of all, or `only` of this one.
#[must_use]
pub(crate) fn find_wrong_pool_ends(
    cluster: &Cluster,
    only: Option<&PoolName>,
    now: OffsetDateTime,
) -> Vec<WrongPoolEnd> {
    let pools = cluster.pools.iter().filter(|pool| only.is_none_or(|name| pool.name == *name));
    pools.filter_map(|pool| WrongPoolEnd::of_pool(pool, now)).collect()
}

impl WrongPoolEnd {
    fn of_pool(pool: &Pool, now: OffsetDateTime) -> Option<Self> {
        let end = pool.schedule.expires?;
        let first = end.first_after(now);
        let wrong = |sooner| Self { pool: pool.name.clone(), end, sooner };
        if end.time() <= now {
            Some(wrong(None))
        } else if first < end {
            Some(wrong(Some(first)))
        } else {
            None
        }
    }

    /// What to do about it.
    #[must_use]
    pub(crate) fn fix(&self) -> String {
        let pool = &self.pool;
        match self.sooner {
            None => format!(
                "set `expires` of pool {pool} to a later time or remove it to start the pool again, or delete the pool from cluster.yaml"
            ),
            Some(_) => format!(
                "AWS repeats an end every year: set `expires` of pool {pool} to a date within a year, or remove it"
            ),
        }
    }
}

impl fmt::Display for WrongPoolEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, end, sooner } = self;
        match sooner {
            None => write!(formatter, "pool {pool} has ended: its `expires` ({end}) is in the past"),
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

    use time::OffsetDateTime;
    use time::macros::datetime;

    use super::find_wrong_pool_ends;
    use crate::config::Cluster;
    use crate::config::values::PoolName;

    fn cluster() -> Result<Cluster, Box<dyn std::error::Error>> {
        let text = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd', pools: [\
                    {name: open, instanceType: m5.large}, \
                    {name: soon, instanceType: m5.large, expires: '2026-12-01T12:00:00Z'}, \
                    {name: far, instanceType: m5.large, expires: '2028-03-01T12:00:00Z'}]}";
        Ok(crate::config::validate(Path::new("cluster.yaml"), text)?.value)
    }

    fn found(only: Option<&str>, now: OffsetDateTime) -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let only = only.map(PoolName::of_test);
        let ends = find_wrong_pool_ends(&cluster()?, only.as_ref(), now);
        Ok(ends.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_end_that_has_passed_or_is_more_than_a_year_away_is_wrong() -> Result<(), Box<dyn std::error::Error>>
    {
        let before = found(None, datetime!(2026-11-01 12:00 UTC))?;
        assert_eq!(before.len(), 1, "{before:?}");
        assert!(before[0].starts_with("pool far would already end on 2027-03-01"), "{before:?}");
        let after = found(None, datetime!(2026-12-01 12:00 UTC))?;
        assert_eq!(after.len(), 2, "{after:?}");
        assert!(after[0].starts_with("pool soon has ended"), "{after:?}");
        Ok(())
    }

    #[test]
    fn only_the_pool_that_is_meant_is_looked_at() -> Result<(), Box<dyn std::error::Error>> {
        let now = datetime!(2026-12-01 12:00 UTC);
        assert_eq!(found(Some("open"), now)?, [""; 0]);
        assert_eq!(found(Some("soon"), now)?.len(), 1);
        Ok(())
    }
}
