//! The bucket that assets are uploaded to.

use super::finding::SubjectFindings;
use super::{Finding, Preflight};
use crate::aws::{AwsError, BucketFacts, Clients};

pub(crate) async fn check_bucket(
    preflight: &Preflight<'_>,
    clients: &Clients,
    account: &str,
) -> Result<Vec<Finding>, AwsError> {
    let mut findings = SubjectFindings::about("bucket");
    let Some(uri) = preflight.s3_uri else {
        findings.refuse(
            "no S3 URI is given",
            "machines read their configuration from a bucket, and templates are too large to be sent in a request",
            "pass --s3-uri s3://bucket/prefix, or set s3URI in cluster.yaml",
        );
        return Ok(findings.into_list());
    };
    let bucket = uri.bucket();
    let region = preflight.blueprint.cluster.region.as_str();
    match findings.take(clients.read_bucket(bucket).await)? {
        Some(BucketFacts::Missing) if preflight.create_bucket => {}
        Some(BucketFacts::Missing) => findings.refuse(
            format!("there is no bucket {bucket}"),
            "machines read their configuration from it",
            "run `infra up --create-bucket` to create a private one, or name another",
        ),
        Some(BucketFacts::Foreign) => findings.refuse(
            format!("the bucket {bucket} belongs to another account than {account}, the caller's"),
            "who owns a bucket can read and replace what CloudFormation and machines read from it, the cluster's keys included",
            format!("name a bucket of account {account}; `infra up --create-bucket` creates a private one"),
        ),
        Some(BucketFacts::Forbidden) => findings.refuse(
            format!("the bucket {bucket} is not yours, or the caller may not read it (403)"),
            "bucket names are shared by all accounts, and the cluster's secrets would be in this one",
            "name another bucket, or allow s3:ListBucket on this one if it is yours",
        ),
        Some(BucketFacts::Elsewhere { region: other }) => {
            refuse_region(&mut findings, bucket, &other, region);
        }
        Some(BucketFacts::Found { region: other, .. }) if other != region => {
            refuse_region(&mut findings, bucket, &other, region);
        }
        None | Some(BucketFacts::Found { public_access_blocked: true, .. }) => {}
        Some(BucketFacts::Found { public_access_blocked: false, .. }) => findings.warn(
            format!("the bucket {bucket} does not block public access"),
            "a policy or an access list could make its objects public; they are encrypted nevertheless",
            format!(
                "aws s3api put-public-access-block --bucket {bucket} --public-access-block-configuration \
                 BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true"
            ),
        ),
    }
    Ok(findings.into_list())
}

fn refuse_region(findings: &mut SubjectFindings, bucket: &str, other: &str, region: &str) {
    findings.refuse(
        format!("the bucket {bucket} is in {other}, but the cluster is in {region}"),
        "CloudFormation reads templates from its own region only, and so do machines without internet access",
        format!("name a bucket in {region}"),
    );
}
