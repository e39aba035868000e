//! Finds everything in the account that would make a deployment fail, before anything is created.
//!
//! In: a blueprint and the answers of AWS to many small calls. Out: findings in an order that does not change. Nothing is
//! created or changed.

mod account;
mod bucket;
mod certificates;
mod driver;
mod existing_vpc;
mod file_system;
mod finding;
mod hosted_zone;
mod image;
mod join_all;
mod key;
mod key_policy;
#[cfg(test)]
mod key_policy_tests;
mod machines;
mod quotas;
mod reservations;
mod subject;

pub(crate) use super::event::{Finding, Severity};
pub(crate) use subject::{CertificateExpiry, Preflight};

use crate::aws::{AwsError, Clients};
use account::{check_account, check_service_roles};
use bucket::check_bucket;
use certificates::check_certificates;
use existing_vpc::check_existing_vpc;
use file_system::check_adopted_file_system;
use hosted_zone::check_hosted_zone;
use image::check_os_image;
use key::check_disk_key;
use machines::check_machine_offers;
use quotas::check_quotas;
use reservations::check_reservations;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreflightReport {
    /// The account.
    pub account: String,
    /// The ARN of the caller.
    pub caller: String,
    /// What was found, by subject.
    pub findings: Vec<Finding>,
}

impl PreflightReport {
    /// Whether a finding refuses the run.
    #[must_use]
    pub(crate) fn has_refusal(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Refused)
    }
}

impl Preflight<'_> {
    /// Runs all checks in parallel.
    pub(crate) async fn run(&self, clients: &Clients) -> Result<PreflightReport, AwsError> {
        let caller = clients.caller_identity().await?;
        let mut findings = check_account(self, &caller, clients.region());
        // What is or is not in another region says nothing about the cluster's.
        if clients.region() == Some(self.blueprint.cluster.region.as_str()) {
            findings.extend(self.read_account(clients, &caller.account).await?);
        }
        findings.extend(check_certificates(self.certificates));
        Ok(PreflightReport { account: caller.account, caller: caller.arn, findings })
    }

    async fn read_account(&self, clients: &Clients, account: &str) -> Result<Vec<Finding>, AwsError> {
        // Boxed, because each holds the futures of several calls and all of them live in this one.
        let (roles, bucket, key, machines, reservations, quotas, image, network, file_system, zone) = tokio::join!(
            Box::pin(check_service_roles(self, clients)),
            Box::pin(check_bucket(self, clients, account)),
            Box::pin(check_disk_key(self, clients, account)),
            Box::pin(check_machine_offers(self, clients)),
            Box::pin(check_reservations(self, clients)),
            Box::pin(check_quotas(self, clients)),
            Box::pin(check_os_image(self, clients)),
            Box::pin(check_existing_vpc(self, clients)),
            Box::pin(check_adopted_file_system(self, clients)),
            Box::pin(check_hosted_zone(self, clients)),
        );
        let mut findings = Vec::new();
        for answer in [roles, bucket, key, machines, reservations, quotas, image, network, file_system, zone]
        {
            findings.extend(answer?);
        }
        Ok(findings)
    }
}
