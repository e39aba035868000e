//! The stacks as cluster.yaml describes them, with everything but the outputs of other stacks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::image_parameters::image_parameters;
use super::live::{LiveCluster, LiveStack};
use super::pool_hold::Hold;
use super::pool_size::{IN_SERVICE, PoolSize};
use crate::aws::{AwsError, Clients};
use crate::blueprint::StackPart;
use crate::config::values::S3Uri;
use crate::deploy::event::PoolBlock;
use crate::deploy::inputs::Inputs;
use crate::deploy::inputs::credential_digests::CredentialDigests;
use crate::render::{StackTemplate, Template};
use crate::well_known::{CLUSTER_TAG, CREDENTIALS_TAG, S3_URI_TAG};

/// A stack as it should be.
#[derive(Clone, Debug)]
pub(crate) struct DesiredStack {
    /// Which part of the cluster it is.
    pub part: StackPart,
    /// The name of the stack in AWS.
    pub name: String,
    /// The template of the stack.
    pub template: Template,
    /// The tags of the stack.
    pub tags: BTreeMap<String, String>,
    /// Values of parameters that are no outputs of stacks.
    pub given: BTreeMap<String, String>,
    /// A pool's size.
    size: Option<PoolSize>,
    /// The live stack of a pool.
    live_stack: Option<LiveStack>,
    /// The capacity block of a pool.
    block: Option<PoolBlock>,
}

impl DesiredStack {
    /// Every stack of a cluster, in the order in which they are created. `missing_mount_targets` says for each mount target at a file system that
    /// was there before whether the cluster has to create it.
    #[must_use]
    pub(crate) fn of_cluster(
        inputs: &Inputs<'_>,
        missing_mount_targets: &BTreeMap<usize, bool>,
        live: &LiveCluster,
    ) -> Vec<Self> {
        let templates = inputs.assets.templates.iter();
        templates.map(|stack| Self::new(stack, inputs, missing_mount_targets, live)).collect()
    }

    /// Every stack of a cluster that creates all of its mount targets: the most that AWS can bill for.
    #[must_use]
    pub(crate) fn with_all_mount_targets(inputs: &Inputs<'_>, live: &LiveCluster) -> Vec<Self> {
        let count = inputs.blueprint.cluster.availability_zones.len();
        let all_missing = (0..count).map(|index| (index, true)).collect();
        Self::of_cluster(inputs, &all_missing, live)
    }

    fn new(
        StackTemplate { part, template, .. }: &StackTemplate,
        inputs: &Inputs<'_>,
        missing_mount_targets: &BTreeMap<usize, bool>,
        live: &LiveCluster,
    ) -> Self {
        let cluster = &inputs.blueprint.cluster;
        let mut tags: BTreeMap<String, String> =
            cluster.tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        tags.insert(CLUSTER_TAG.to_owned(), cluster.name.to_string());
        match part {
            StackPart::Network => {
                tags.insert(S3_URI_TAG.to_owned(), inputs.s3_uri.to_string());
            }
            StackPart::ControlPlane => {
                let digests = CredentialDigests::of(inputs.credentials);
                tags.insert(CREDENTIALS_TAG.to_owned(), digests.to_string());
            }
            StackPart::Storage | StackPart::Pool(_) => {}
        }
        let mut given = BTreeMap::from([
            ("AssetBucket".to_owned(), inputs.s3_uri.bucket().to_owned()),
            ("AssetPrefix".to_owned(), inputs.s3_uri.key_prefix()),
        ]);
        for (index, missing) in missing_mount_targets {
            given.insert(format!("MountTarget{index}Missing"), missing.to_string());
        }
        let live_stack = live.stacks.get(part).filter(|_| matches!(part, StackPart::Pool(_))).cloned();
        let pool = cluster.pools.iter().find(|pool| *part == StackPart::Pool(pool.name.clone()));
        given.extend(image_parameters(part, pool, &inputs.image, live));
        let size = pool.map(|pool| PoolSize::new(pool, live_stack.as_ref(), inputs.blocks.now(&pool.name)));
        given.extend(pool.map(|pool| inputs.blocks.parameters(pool)).unwrap_or_default());
        if let Some(size) = &size {
            given.extend(size.parameters(live.pool_group(size.pool())));
        }
        Self {
            name: part.stack_name(&cluster.name),
            part: part.clone(),
            template: template.clone(),
            tags,
            given,
            size,
            live_stack,
            block: pool.and_then(|pool| inputs.blocks.of(&pool.name)),
        }
    }

    /// What decides about the size of the pool, if the stack is a pool's.
    #[must_use]
    pub(crate) fn pool_size(&self) -> Option<&PoolSize> {
        self.size.as_ref()
    }

    /// The capacity block of the pool.
    #[must_use]
    pub(crate) fn block(&self) -> Option<&PoolBlock> {
        self.block.as_ref()
    }

    /// Who decides about the size of the pool; nobody else than cluster.yaml and the autoscaler for other stacks.
    #[must_use]
    pub(crate) fn hold(&self, live: &LiveCluster) -> Hold {
        self.size.as_ref().map_or(Hold::Free, |size| size.hold(live.pool_group(size.pool())))
    }

    /// How many machines a pool will have; none for other stacks.
    #[must_use]
    pub(crate) fn machines(&self, live: &LiveCluster) -> Option<u32> {
        self.size.as_ref().map(|size| size.machines(live.pool_group(size.pool())))
    }

    /// The template without white space for readers, as CloudFormation gets it.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        self.template.compact()
    }

    /// A value for every parameter; the names of those that no stack has as an output yet, if there are any.
    pub(crate) fn parameters(
        &self,
        outputs: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Vec<String>> {
        let mut values = BTreeMap::new();
        let mut missing = Vec::new();
        for name in self.template.parameters() {
            match self.given.get(name).or_else(|| outputs.get(name)) {
                Some(value) => drop(values.insert(name.clone(), value.clone())),
                None => missing.push(name.clone()),
            }
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        self.leave_in_service(&mut values);
        Ok(values)
    }

    /// Whether CloudFormation would find nothing to update in a live stack. It updates a template's description and metadata only
    /// along with something else.
    #[must_use]
    pub(crate) fn is_unchanged(&self, live: &LiveStack, parameters: &BTreeMap<String, String>) -> bool {
        is_same_template(live.template(), self.template.document())
            && live.stack.parameters == *parameters
            && live.stack.tags == self.tags
    }

    /// The parameters with the size that a pool has at this moment: the autoscaler may have changed it since everything was read.
    pub(crate) async fn renew_size(
        &self,
        parameters: &BTreeMap<String, String>,
        clients: &Clients,
    ) -> Result<BTreeMap<String, String>, AwsError> {
        let mut values = parameters.clone();
        let (Some(size), Some(cluster)) = (&self.size, self.tags.get(CLUSTER_TAG)) else { return Ok(values) };
        let groups = clients.groups_of_cluster(cluster).await?;
        let now = LiveCluster { groups, ..LiveCluster::default() };
        let sizes = size.parameters(now.pool_group(size.pool())).into_iter();
        values.extend(sizes.filter(|(name, _)| parameters.contains_key(name)));
        Ok(values)
    }

    /// How many stay in service follows the autoscaler, which alone is no reason to change a stack.
    fn leave_in_service(&self, values: &mut BTreeMap<String, String>) {
        let Some(live_stack) = &self.live_stack else { return };
        let stored = live_stack.stack.parameters.get(IN_SERVICE);
        let (Some(wanted), Some(stored)) = (values.get(IN_SERVICE).cloned(), stored) else { return };
        values.insert(IN_SERVICE.to_owned(), stored.clone());
        if !self.is_unchanged(live_stack, values) {
            values.insert(IN_SERVICE.to_owned(), wanted);
        }
    }
}

/// The S3 URI that the live cluster uses.
#[must_use]
pub(crate) fn s3_uri_in_use(live: &LiveCluster) -> Option<S3Uri> {
    live.tag(&StackPart::Network, S3_URI_TAG)?.parse().ok()
}

/// Whether two templates are equal apart from text for readers.
fn is_same_template(old: &Value, new: &Value) -> bool {
    let sections = |template: &Value| -> Option<BTreeMap<String, Value>> {
        let sections = template.as_object()?.iter();
        let counting = sections.filter(|(name, _)| !matches!(name.as_str(), "Description" | "Metadata"));
        Some(counting.map(|(name, section)| (name.clone(), section.clone())).collect())
    };
    match (sections(old), sections(new)) {
        (Some(old), Some(new)) => old == new,
        _ => old == new,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_same_template;

    #[test]
    fn descriptions_make_no_difference_and_everything_else_does() {
        let old =
            json!({"Description": "a", "Metadata": {"Infra": {"x": 1}}, "Resources": {"A": {"Type": "T"}}});
        let other_words = json!({"Description": "b", "Resources": {"A": {"Type": "T"}}});
        assert!(is_same_template(&old, &other_words));
        for (section, value) in [
            ("Resources", json!({"A": {"Type": "T", "Metadata": {"x": 2}}})),
            ("Outputs", json!({"O": {"Value": "1"}})),
            ("Conditions", json!({"C": {"Fn::Equals": ["a", "b"]}})),
        ] {
            let mut new = old.clone();
            new[section] = value;
            assert!(!is_same_template(&old, &new), "{section}");
        }
        assert!(!is_same_template(&serde_json::Value::Null, &old));
    }
}
