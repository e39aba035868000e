//! Load balancers of both generations, and target groups.

use std::collections::BTreeMap;

use aws_sdk_elasticloadbalancing::types::TagDescription as ClassicTags;
use aws_sdk_elasticloadbalancingv2::types::TagDescription;

use super::actions::{self, Action};
use super::{AwsError, Clients};

/// The most load balancers whose tags one call returns.
const TAG_BATCH: usize = 20;

/// A load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadBalancer {
    /// What it is deleted by: its ARN, or its name for a classic one.
    pub id: String,
    /// The name of the load balancer.
    pub name: String,
    /// Whether it is of the first generation.
    pub classic: bool,
    /// The security groups of the load balancer.
    pub security_groups: Vec<String>,
    /// The tags of the load balancer.
    pub tags: BTreeMap<String, String>,
}

/// A target group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetGroup {
    /// The ARN of the target group.
    pub arn: String,
    /// The name of the target group.
    pub name: String,
    /// The tags of the target group.
    pub tags: BTreeMap<String, String>,
}

impl Clients {
    /// Every load balancer of a VPC.
    pub(crate) async fn load_balancers_in(&self, vpc: &str) -> Result<Vec<LoadBalancer>, AwsError> {
        let (mut newer, classic) =
            tokio::try_join!(self.newer_balancers_in(vpc), self.classic_balancers_in(vpc))?;
        newer.extend(classic);
        Ok(newer)
    }

    async fn newer_balancers_in(&self, vpc: &str) -> Result<Vec<LoadBalancer>, AwsError> {
        const OPERATION: Action = actions::ELB_DESCRIBE_LOAD_BALANCERS;
        let mut pages = self.balancers.describe_load_balancers().into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let balancer = next.map_err(AwsError::of(OPERATION))?;
            if balancer.vpc_id.as_deref() == Some(vpc) {
                found.push(LoadBalancer {
                    id: balancer.load_balancer_arn.unwrap_or_default(),
                    name: balancer.load_balancer_name.unwrap_or_default(),
                    classic: false,
                    security_groups: balancer.security_groups.unwrap_or_default(),
                    tags: BTreeMap::new(),
                });
            }
        }
        let arns: Vec<String> = found.iter().map(|balancer| balancer.id.clone()).collect();
        let mut tags = self.balancer_tags(&arns).await?;
        for balancer in &mut found {
            balancer.tags = tags.remove(&balancer.id).unwrap_or_default();
        }
        Ok(found)
    }

    async fn classic_balancers_in(&self, vpc: &str) -> Result<Vec<LoadBalancer>, AwsError> {
        const OPERATION: Action = actions::ELB_DESCRIBE_LOAD_BALANCERS;
        let mut pages = self.classic_balancers.describe_load_balancers().into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let balancer = next.map_err(AwsError::of(OPERATION))?;
            if balancer.vpc_id.as_deref() == Some(vpc) {
                let name = balancer.load_balancer_name.unwrap_or_default();
                found.push(LoadBalancer {
                    id: name.clone(),
                    name,
                    classic: true,
                    security_groups: balancer.security_groups.unwrap_or_default(),
                    tags: BTreeMap::new(),
                });
            }
        }
        for batch in found.chunks_mut(TAG_BATCH) {
            let names: Vec<String> = batch.iter().map(|balancer| balancer.name.clone()).collect();
            for described in self.described_classic_tags(&names).await? {
                let tags = described.tags.unwrap_or_default().into_iter();
                let tags = tags.map(|tag| (tag.key, tag.value.unwrap_or_default())).collect();
                if let Some(balancer) = batch
                    .iter_mut()
                    .find(|balancer| Some(&balancer.name) == described.load_balancer_name.as_ref())
                {
                    balancer.tags = tags;
                }
            }
        }
        Ok(found)
    }

    /// The tags of load balancers or target groups of the second generation, by ARN.
    async fn balancer_tags(
        &self,
        arns: &[String],
    ) -> Result<BTreeMap<String, BTreeMap<String, String>>, AwsError> {
        let mut all = BTreeMap::new();
        for batch in arns.chunks(TAG_BATCH) {
            for described in self.described_tags(batch).await? {
                let tags = described.tags.unwrap_or_default().into_iter();
                let tags = tags.filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect();
                all.insert(described.resource_arn.unwrap_or_default(), tags);
            }
        }
        Ok(all)
    }

    /// If a load balancer was deleted since it was listed, the call fails for its whole batch, which is then split.
    async fn described_tags(&self, arns: &[String]) -> Result<Vec<TagDescription>, AwsError> {
        let mut found = Vec::new();
        let mut batches = vec![arns];
        while let Some(batch) = batches.pop() {
            let call = self.balancers.describe_tags().set_resource_arns(Some(batch.to_vec()));
            match call.send().await.map_err(AwsError::of(actions::ELB_DESCRIBE_TAGS)) {
                Ok(answer) => found.extend(answer.tag_descriptions.unwrap_or_default()),
                Err(error)
                    if error.has_code("LoadBalancerNotFound") || error.has_code("TargetGroupNotFound") =>
                {
                    if batch.len() > 1 {
                        batches.extend(batch.chunks(1));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The same for the first generation.
    async fn described_classic_tags(&self, names: &[String]) -> Result<Vec<ClassicTags>, AwsError> {
        let mut found = Vec::new();
        let mut batches = vec![names];
        while let Some(batch) = batches.pop() {
            let call = self.classic_balancers.describe_tags().set_load_balancer_names(Some(batch.to_vec()));
            match call.send().await.map_err(AwsError::of(actions::ELB_DESCRIBE_TAGS)) {
                Ok(answer) => found.extend(answer.tag_descriptions.unwrap_or_default()),
                Err(error) if error.has_code("LoadBalancerNotFound") => {
                    if batch.len() > 1 {
                        batches.extend(batch.chunks(1));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Deletes a load balancer; one that is gone is no error.
    pub(crate) async fn delete_load_balancer(&self, balancer: &LoadBalancer) -> Result<(), AwsError> {
        const OPERATION: Action = actions::ELB_DELETE_LOAD_BALANCER;
        if balancer.classic {
            let call = self.classic_balancers.delete_load_balancer().load_balancer_name(&balancer.id);
            return call.send().await.map_err(AwsError::of(OPERATION)).map(|_| ());
        }
        let call = self.balancers.delete_load_balancer().load_balancer_arn(&balancer.id);
        match call.send().await.map_err(AwsError::of(OPERATION)) {
            Err(error) if error.has_code("LoadBalancerNotFound") => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Every target group of a VPC.
    pub(crate) async fn target_groups_in(&self, vpc: &str) -> Result<Vec<TargetGroup>, AwsError> {
        let mut pages = self.balancers.describe_target_groups().into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(next) = pages.next().await {
            let group = next.map_err(AwsError::of(actions::ELB_DESCRIBE_TARGET_GROUPS))?;
            if group.vpc_id.as_deref() == Some(vpc) {
                found.push(TargetGroup {
                    arn: group.target_group_arn.unwrap_or_default(),
                    name: group.target_group_name.unwrap_or_default(),
                    tags: BTreeMap::new(),
                });
            }
        }
        let arns: Vec<String> = found.iter().map(|group| group.arn.clone()).collect();
        let mut tags = self.balancer_tags(&arns).await?;
        for group in &mut found {
            group.tags = tags.remove(&group.arn).unwrap_or_default();
        }
        Ok(found)
    }

    /// Deletes a target group; one that is gone is no error.
    pub(crate) async fn delete_target_group(&self, arn: &str) -> Result<(), AwsError> {
        let call = self.balancers.delete_target_group().target_group_arn(arn);
        match call.send().await.map_err(AwsError::of(actions::ELB_DELETE_TARGET_GROUP)) {
            Err(error) if error.has_code("TargetGroupNotFound") => Ok(()),
            other => other.map(|_| ()),
        }
    }
}
