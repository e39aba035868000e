//! The user data of a launch template: a few hundred bytes that point a machine at its full configuration.
//!
//! It is a value for CloudFormation, which alone knows the bucket, the volume and the stack. It never holds a secret.

use serde_json::{Value, json};

use super::asset::Asset;
use super::assets::{BootConfig, BootForm};
use super::boot_object::object_key;
use super::boot_script::boot_script;
use super::engine::RenderError;
use crate::blueprint::Role;
use crate::config::Cluster;

/// The limit of EC2, in bytes before encoding.
pub const LARGEST_USER_DATA: usize = 16 * 1024;

/// The longest text that each of CloudFormation's values can become.
const LONGEST_VALUES: [(&str, usize); 7] = [
    ("${AssetBucket}", 63),
    ("${AssetPrefix}", 513),
    ("${AWS::Region}", 24),
    ("${AWS::URLSuffix}", 24),
    ("${AWS::StackName}", 128),
    ("${EtcdVolume", 22),
    ("${", 64),
];

/// A launch template's user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserData {
    text: String,
}

impl UserData {
    /// User data that leads a role's machines to their configuration in S3, by its digest.
    pub fn new(cluster: &Cluster, config: &BootConfig) -> Result<Self, RenderError> {
        let text = match config.form {
            BootForm::Ignition => merging_config(cluster, config),
            BootForm::Archive => boot_script(
                &object_key(cluster.name.as_str(), &config.role, config.form, &config.file.sha512()),
                &config.file.sha512(),
                &stack_environment(cluster, &config.role),
            ),
        };
        let user_data = Self { text };
        let size = user_data.largest_size();
        if size > LARGEST_USER_DATA {
            return Err(RenderError::Shape {
                document: format!("the user data of {}", config.role.name()),
                reason: format!(
                    "it can grow to {size} bytes, and EC2 allows {LARGEST_USER_DATA}: use fewer snippets"
                ),
            });
        }
        Ok(user_data)
    }

    /// The value for a launch template.
    #[must_use]
    pub fn value(&self) -> Value {
        json!({"Fn::Base64": {"Fn::Sub": self.text}})
    }

    /// How many bytes the user data can have after CloudFormation has filled in its values.
    #[must_use]
    pub fn largest_size(&self) -> usize {
        let mut size = self.text.len();
        for (place, _) in self.text.match_indices("${") {
            let rest = &self.text[place..];
            let written = rest.find('}').map_or(0, |end| end + 1);
            let longest = LONGEST_VALUES.iter().find(|(value, _)| rest.starts_with(value));
            size = size + longest.map_or(0, |(_, longest)| *longest) - written;
        }
        size
    }
}

/// An Ignition config that merges a role's config and the team's snippets for it, each found in S3 by its own digest.
fn merging_config(cluster: &Cluster, config: &BootConfig) -> String {
    let role = &config.role;
    let merge = |asset: &Asset| {
        let digest = asset.sha512();
        json!({
            "source": format!("s3://${{AssetBucket}}/${{AssetPrefix}}{}", object_key(cluster.name.as_str(), role, config.form, &digest)),
            "verification": {"hash": format!("sha512-{digest}")},
        })
    };
    let merged: Vec<Value> = std::iter::once(&config.file).chain(&config.snippets).map(merge).collect();
    let document = json!({
        "ignition": {"version": "3.3.0", "config": {"merge": merged}},
        "storage": {"files": [{
            "path": "/etc/infra/stack.env",
            "mode": 0o644,
            "overwrite": true,
            "contents": {"source": format!("data:,{}", stack_environment(cluster, role).replace('\n', "%0A"))},
        }]},
    });
    document.to_string()
}

/// What only CloudFormation knows.
fn stack_environment(cluster: &Cluster, role: &Role) -> String {
    let mut lines = vec![
        format!("INFRA_CLUSTER={}", cluster.name),
        "INFRA_REGION=${AWS::Region}".to_owned(),
        "INFRA_DOMAIN=${AWS::URLSuffix}".to_owned(),
        "INFRA_STACK=${AWS::StackName}".to_owned(),
        format!("INFRA_RESOURCE={}", role.group_resource()),
        "INFRA_BUCKET=${AssetBucket}".to_owned(),
        "INFRA_PREFIX=${AssetPrefix}".to_owned(),
        format!("INFRA_KMS_KEY={}", cluster.kms_key),
    ];
    lines.extend(role.volume_resource().map(|volume| format!("INFRA_VOLUME_ID=${{{volume}}}")));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::super::asset::Asset;
    use super::super::assets::{BootConfig, BootForm};
    use super::{LARGEST_USER_DATA, UserData};
    use crate::blueprint::Role;

    fn cluster() -> Result<crate::config::Cluster, crate::document::Problems> {
        let text = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd'}";
        Ok(crate::config::validate(std::path::Path::new("cluster.yaml"), text)?.value)
    }

    fn asset(text: &str) -> Asset {
        Asset::private("userdata/x.ign".to_owned(), Zeroizing::new(text.as_bytes().to_vec()))
    }

    #[test]
    fn user_data_is_small_and_names_the_digest_of_the_config() -> Result<(), Box<dyn std::error::Error>> {
        let (config, snippet) = (asset("config"), asset("snippet"));
        let boot_config = BootConfig {
            role: Role::EtcdMember(1),
            form: BootForm::Ignition,
            file: config.clone(),
            snippets: vec![snippet.clone()],
        };
        let user_data = UserData::new(&cluster()?, &boot_config)?;
        let text = user_data.value()["Fn::Base64"]["Fn::Sub"].as_str().unwrap_or_default().to_owned();
        for part in [
            format!("s3://${{AssetBucket}}/${{AssetPrefix}}paddle/etcd-1/{}.ign", config.sha512()),
            format!("sha512-{}", snippet.sha512()),
            "INFRA_VOLUME_ID=${EtcdVolume1}%0A".to_owned(),
            "INFRA_RESOURCE=EtcdMember1%0A".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} is not in {text}");
        }
        assert!(
            !text.contains("config\"}") && !text.contains("snippet"),
            "it holds what it should point at: {text}"
        );
        assert!(user_data.largest_size() < 4096, "{}", user_data.largest_size());
        Ok(())
    }

    #[test]
    fn too_many_snippets_are_refused_with_the_number() -> Result<(), Box<dyn std::error::Error>> {
        let snippets: Vec<Asset> = (0..20).map(|n| asset(&n.to_string())).collect();
        let boot_config =
            BootConfig { role: Role::Controller, form: BootForm::Ignition, file: asset("config"), snippets };
        let refused = UserData::new(&cluster()?, &boot_config);
        let message = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(&LARGEST_USER_DATA.to_string()), "{message}");
        Ok(())
    }
}
