//! Which S3 URI assets are uploaded to.

use crate::config::Cluster;
use crate::config::values::S3Uri;
use crate::deploy::error::DeployError;

/// The S3 URI that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChosenS3Uri {
    /// The S3 URI.
    pub uri: S3Uri,
    /// What the live cluster uses, if that is another.
    pub replaces: Option<S3Uri>,
}

impl ChosenS3Uri {
    /// The flag's, then that of cluster.yaml, then the one that the live cluster uses.
    pub(crate) fn choose(
        flag: Option<&S3Uri>,
        cluster: &Cluster,
        in_use: Option<S3Uri>,
    ) -> Result<Self, DeployError> {
        let uri = flag.or(cluster.s3_uri.as_ref()).or(in_use.as_ref()).cloned();
        let uri = uri.ok_or(DeployError::NoS3Uri)?;
        let replaces = in_use.filter(|in_use| *in_use != uri);
        Ok(Self { uri, replaces })
    }

    /// What to warn of, if the live cluster uses another.
    #[must_use]
    pub(crate) fn warning(&self) -> Option<String> {
        let Self { uri, replaces } = self;
        replaces.as_ref().map(|replaced| {
            format!(
                "assets move from {replaced} to {uri}: every machine gets a new configuration; keep the old objects until all of them have it"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ChosenS3Uri;
    use crate::config::Cluster;
    use crate::config::values::S3Uri;

    fn cluster(s3_uri: &str) -> Result<Cluster, Box<dyn std::error::Error>> {
        let text = format!(
            "{{clusterName: paddle, externalDNSName: a.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
             kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1'{s3_uri}}}"
        );
        Ok(crate::config::validate(std::path::Path::new("cluster.yaml"), &text)?.value)
    }

    #[test]
    fn the_flag_wins_then_cluster_yaml_then_what_is_live() -> Result<(), Box<dyn std::error::Error>> {
        let (silent, says) = (cluster("")?, cluster(", s3URI: 's3://file'")?);
        let (flag, live): (S3Uri, S3Uri) = ("s3://flag".parse()?, "s3://live".parse()?);
        let chosen = |flag: Option<&S3Uri>, cluster: &Cluster, live: Option<&S3Uri>| {
            ChosenS3Uri::choose(flag, cluster, live.cloned()).map(|chosen| chosen.uri.to_string())
        };
        assert_eq!(chosen(Some(&flag), &says, Some(&live))?, "s3://flag");
        assert_eq!(chosen(None, &says, Some(&live))?, "s3://file");
        assert_eq!(chosen(None, &silent, Some(&live))?, "s3://live");
        assert!(chosen(None, &silent, None).is_err());
        Ok(())
    }

    #[test]
    fn only_a_move_of_assets_is_warned_of() -> Result<(), Box<dyn std::error::Error>> {
        let live: S3Uri = "s3://live".parse()?;
        let kept = ChosenS3Uri::choose(None, &cluster("")?, Some(live.clone()))?;
        assert!(kept.warning().is_none());
        let moved = ChosenS3Uri::choose(None, &cluster(", s3URI: 's3://file'")?, Some(live))?;
        assert!(moved.warning().is_some_and(|text| text.contains("from s3://live to s3://file")));
        Ok(())
    }
}
