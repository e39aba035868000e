//! Everything that would stop a cluster and can be known before anything is made: all of it at once, with what to do.
//!
//! In: a blueprint and the answers of AWS to many small questions. Out: findings in an order that does not change. It makes and
//! changes nothing.

mod account;
mod bucket;
mod certificates;
mod existing_vpc;
mod file_system;
mod finding;
mod hosted_zone;
mod image;
mod key;
mod machines;
mod quotas;

use std::future::poll_fn;
use std::task::Poll;

pub use super::event::{Finding, Severity};

use super::state::live::LiveCluster;
use crate::aws::{AwsError, Clients};
use crate::blueprint::Blueprint;
use crate::config::values::S3Uri;

/// What is looked at before a cluster comes up.
#[derive(Clone, Copy, Debug)]
pub struct Preflight<'a> {
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// Where assets will be uploaded.
    pub s3_uri: Option<&'a S3Uri>,
    /// Whether a bucket that is missing will be made.
    pub create_bucket: bool,
    /// The image that machines are to start from, if one is locked.
    pub image: Option<&'a str>,
    /// When certificates end.
    pub certificates: &'a [CertificateExpiry],
    /// What of the cluster is there already: that has its capacity, and a file system with its tag is its own.
    pub live: &'a LiveCluster,
}

/// When a certificate ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateExpiry {
    /// Its name.
    pub name: String,
    /// How many whole days it has left; less than zero once it has ended.
    pub days_left: i64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The account.
    pub account: String,
    /// The user or role that asked.
    pub caller: String,
    /// Findings, by subject.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether anything stands in the way.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Refused)
    }
}

impl Preflight<'_> {
    /// Asks everything, all at once.
    pub async fn run(&self, clients: &Clients) -> Result<Report, AwsError> {
        let caller = clients.caller_identity().await?;
        let mut findings = account::check(self, &caller, clients.region());
        // What is or is not in another region says nothing about the cluster's.
        if clients.region() == Some(self.blueprint.cluster.region.as_str()) {
            findings.extend(self.look_around(clients, &caller.account).await?);
        }
        findings.extend(certificates::check(self.certificates));
        Ok(Report { account: caller.account, caller: caller.arn, findings })
    }

    async fn look_around(&self, clients: &Clients, account: &str) -> Result<Vec<Finding>, AwsError> {
        // Boxed, because each holds the futures of several calls and all of them live in this one.
        let (roles, bucket, key, machines, quotas, image, network, file_system, zone) = tokio::join!(
            Box::pin(account::check_service_roles(self, clients)),
            Box::pin(bucket::check(self, clients)),
            Box::pin(key::check(self, clients, account)),
            Box::pin(machines::check(self, clients)),
            Box::pin(quotas::check(self, clients)),
            Box::pin(image::check(self, clients)),
            Box::pin(existing_vpc::check(self, clients)),
            Box::pin(file_system::check(self, clients)),
            Box::pin(hosted_zone::check(self, clients)),
        );
        let mut findings = Vec::new();
        for answer in [roles, bucket, key, machines, quotas, image, network, file_system, zone] {
            findings.extend(answer?);
        }
        Ok(findings)
    }
}

/// Waits for all of them at once.
async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, answer) in &mut pending {
            if answer.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *answer = Some(value);
            }
        }
        if pending.iter().all(|(_, answer)| answer.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::all;

    #[tokio::test]
    async fn answers_come_in_the_order_of_the_questions() {
        let question = |number: u32| async move {
            for _ in number..5 {
                tokio::task::yield_now().await;
            }
            number
        };
        assert_eq!(all((0..5).map(question)).await, [0, 1, 2, 3, 4]);
        assert_eq!(all(Vec::<std::future::Ready<u32>>::new()).await, Vec::<u32>::new());
    }
}
