//! Creates the bucket for assets, if the user asks for it.

use crate::aws::BucketFacts;
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;

/// Creates the bucket unless it exists.
pub(crate) async fn ensure_bucket(run: &Run, cluster: &Cluster, bucket: &str) -> Result<(), DeployError> {
    let is_ready = match run.clients.read_bucket(bucket).await {
        Ok(BucketFacts::Missing) => false,
        // An empty bucket may be left by a run that was killed while it created it.
        Ok(BucketFacts::Found { .. }) => !run.clients.is_bucket_empty(bucket).await?,
        Ok(BucketFacts::Elsewhere { .. }) => true,
        Ok(BucketFacts::Foreign) => return Err(DeployError::ForeignBucket { bucket: bucket.to_owned() }),
        Ok(BucketFacts::Forbidden) => {
            run.progress.warn(format!("{bucket} is assumed to be ready: the caller may not s3:ListBucket"));
            true
        }
        Err(error) if error.is_denied() => true,
        Err(error) => return Err(error.into()),
    };
    if is_ready {
        return Ok(());
    }
    let partition = cluster.region.partition().as_str();
    run.clients.create_private_bucket(bucket, cluster.kms_key.as_str(), partition).await?;
    run.progress.note(format!("created bucket {bucket}: encrypted, versioned, private, TLS only"));
    Ok(())
}
