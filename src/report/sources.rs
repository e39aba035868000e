//! What the page about a cluster is made from.

use time::OffsetDateTime;

use super::certificates::CertificateSources;
use crate::blueprint::{BilledItem, Blueprint, Prices};
use crate::config::PoolImage;
use crate::config::values::S3Uri;
use crate::deploy::destroy::DestroyPlan;
use crate::deploy::status::shape::StatusReport;
use crate::operator::Policy;

/// Everything that the page shows.
#[derive(Clone, Debug)]
pub(crate) struct ReportSources<'a> {
    /// The cluster.
    pub blueprint: &'a Blueprint,
    /// The time, for the foot of the page.
    pub now: OffsetDateTime,
    /// The version of infra.
    pub version: &'a str,
    /// Where assets are uploaded, if that is known.
    pub s3_uri: Option<&'a S3Uri>,
    /// The certificates.
    pub certificates: CertificateSources<'a>,
    /// The images that infra.lock names; empty without one.
    pub images: &'a [PageImage],
    /// What AWS bills for.
    pub costs: &'a [BilledItem],
    /// What it costs, if infra.lock has prices.
    pub prices: Option<&'a Prices>,
    /// The IAM policies; none if no S3 URI is known.
    pub policies: Option<&'a [Policy]>,
    /// What was read in AWS; none if nothing was.
    pub live: Option<LiveSources<'a>>,
}

/// An image of the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageImage {
    /// Which of the operating systems it is.
    pub system: PoolImage,
    /// The id of the image.
    pub id: String,
    /// The name of the image.
    pub name: String,
}

/// What was read in AWS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveSources<'a> {
    /// The status; none if nothing of the cluster exists.
    pub status: Option<&'a StatusReport>,
    /// What `infra destroy` would do.
    pub destroy: &'a DestroyPlan,
}
