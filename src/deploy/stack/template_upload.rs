//! A template into something that a call can carry: itself while it fits, else its place in S3.

use zeroize::Zeroizing;

use crate::aws::TemplateSource;
use crate::deploy::error::DeployError;
use crate::deploy::up::upload::{put_object, sha256_hexadecimal};
use crate::deploy::work::Work;

/// What CloudFormation takes in a call.
pub(crate) const LARGEST_INLINE: usize = 51_200;

/// The template itself, or where it was uploaded.
pub(crate) async fn template_source(work: &Work, text: &str) -> Result<TemplateSource, DeployError> {
    if text.len() <= LARGEST_INLINE {
        return Ok(TemplateSource::Inline(text.to_owned()));
    }
    let bytes = Zeroizing::new(text.as_bytes().to_vec());
    let digest = sha256_hexadecimal(&bytes);
    let key = format!("{}{}/stacks/{digest}.json", work.place.key_prefix(), work.blueprint.cluster.name);
    put_object(work, &key, &bytes, "application/json").await?;
    let suffix = work.blueprint.cluster.region.partition().dns_suffix();
    Ok(TemplateSource::Url(work.run.clients.object_url(work.place.bucket(), &key, suffix)))
}
