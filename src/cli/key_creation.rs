//! `infra init --create-key`: the one part of `init` that calls AWS.

use clap::Args;

use super::aws_access::block_on;
use super::interruption::{Interrupted, until_interrupted_with};
use super::session::Session;
use crate::aws::{AwsConnection, Clients};
use crate::config::values::{ClusterName, KmsKeyArn, Region};
use crate::operator::{KeyOrigin, ensure_cluster_key};

/// Whether the KMS key is created, and how AWS is reached for that.
#[derive(Args, Debug)]
pub(super) struct KeyCreation {
    /// Create the KMS key in your account: with yearly rotation, a policy that leaves its use to IAM, and the alias `alias/infra-NAME`;
    /// run again, it finds that key
    #[arg(long, conflicts_with = "kms_key_arn")]
    pub(super) create_key: bool,
    /// Use this profile of the AWS configuration files, for --create-key
    #[arg(long, value_name = "NAME", requires = "create_key", conflicts_with = "kms_key_arn")]
    profile: Option<String>,
    /// Reach every AWS service there, for --create-key
    #[arg(long, value_name = "URL", requires = "create_key", conflicts_with = "kms_key_arn")]
    endpoint_url: Option<String>,
}

impl KeyCreation {
    /// Stands for the key until it is created, so that everything else is checked first.
    pub(super) fn placeholder(&self, region: &Region) -> Option<KmsKeyArn> {
        let partition = region.partition();
        let arn = format!("arn:{partition}:kms:{region}:000000000000:key/00000000");
        self.create_key.then(|| arn.parse().ok()).flatten()
    }

    /// Creates the cluster's key, or finds it, and says which.
    pub(super) fn create(
        &self,
        cluster: &ClusterName,
        region: &Region,
        session: &Session,
    ) -> anyhow::Result<KmsKeyArn> {
        let connection = AwsConnection {
            profile: self.profile.clone(),
            region: Some(region.to_string()),
            endpoint_url: self.endpoint_url.clone(),
            tempo: session.tempo,
            release_server: None,
        };
        let creating = async {
            let clients = Clients::connect(&connection).await;
            Ok(Box::pin(ensure_cluster_key(&clients, cluster, region)).await?)
        };
        let key = block_on(until_interrupted_with(creating, Interrupted::WhileCreatingKey))?;
        let (arn, alias) = (&key.arn, &key.alias);
        session.printer.note(match key.origin {
            KeyOrigin::Created => format!("created KMS key {arn} ({alias}); `infra destroy` keeps it"),
            KeyOrigin::Finished => {
                format!("using KMS key {arn} ({alias}), which an earlier run created and this one finished")
            }
            KeyOrigin::Found => format!("using KMS key {arn} ({alias}), which was created earlier"),
        });
        Ok(arn.parse()?)
    }
}
