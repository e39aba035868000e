//! What of a cluster is in AWS now: its stacks, their templates, and their Auto Scaling groups.

use std::collections::BTreeMap;

use serde_json::Value;

use super::step::{NextStep, next_step};
use crate::aws::{AwsError, Clients, ScalingGroup, Stack, StackStatus};
use crate::blueprint::{Role, StackPart};
use crate::config::Cluster;
use crate::config::values::{ClusterName, PoolName};
use crate::deploy::error::DeployError;
use crate::well_known::{CLUSTER_TAG, ROLE_TAG};

/// A stack with its template.
#[derive(Clone, Debug)]
pub(crate) struct LiveStack {
    /// The stack.
    pub stack: Stack,
    /// The template of the stack.
    pub template: LiveTemplate,
}

/// The template of a live stack.
#[derive(Clone, Debug)]
pub(crate) enum LiveTemplate {
    /// The stack holds nothing worth comparing with, so its template is not read.
    NotRead,
    /// The template, as infra wrote it.
    Read(Value),
    /// Not the JSON that infra writes, and why: another tool has updated the stack.
    Unreadable(String),
}

impl LiveStack {
    /// Reads the template of a stack.
    pub(crate) async fn read(clients: &Clients, stack: Stack) -> Result<Self, AwsError> {
        let template = match next_step(Some(&stack.status)) {
            NextStep::DeleteAndCreate | NextStep::Create => LiveTemplate::NotRead,
            NextStep::Compare
            | NextStep::Follow
            | NextStep::RollBack
            | NextStep::FinishDeletion
            | NextStep::Inspect => match serde_json::from_str(&clients.stack_template(&stack.arn).await?) {
                Ok(template) => LiveTemplate::Read(template),
                Err(error) => LiveTemplate::Unreadable(error.to_string()),
            },
        };
        Ok(Self { stack, template })
    }

    /// The template for a caller that only reads facts from it; `Null` if it was not read or is unreadable.
    #[must_use]
    pub(crate) fn template(&self) -> &Value {
        match &self.template {
            LiveTemplate::Read(template) => template,
            LiveTemplate::NotRead | LiveTemplate::Unreadable(_) => &Value::Null,
        }
    }

    /// The template for a caller that compares with it: an unreadable one is an error.
    pub(crate) fn readable_template(&self) -> Result<&Value, DeployError> {
        match &self.template {
            LiveTemplate::Unreadable(reason) => Err(DeployError::UnreadableTemplate {
                stack: self.stack.name.clone(),
                reason: reason.clone(),
            }),
            LiveTemplate::Read(_) | LiveTemplate::NotRead => Ok(self.template()),
        }
    }
}

/// A stack that has a name of the cluster's and is not the cluster's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignStack {
    /// The name of the stack.
    pub name: String,
    /// The cluster it is of: `x-pool-network` may be the network of `x-pool`, and a pool of `x`.
    pub cluster: Option<String>,
}

/// A cluster as AWS has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveCluster {
    /// The stacks of the cluster.
    pub stacks: BTreeMap<StackPart, LiveStack>,
    /// Stacks of other clusters that have a name of this cluster's.
    pub foreign: Vec<ForeignStack>,
    /// The Auto Scaling groups of the cluster.
    pub groups: Vec<ScalingGroup>,
}

impl LiveCluster {
    /// Reads everything; changes nothing. `described` is what cluster.yaml says, unless it is lost.
    pub(crate) async fn read(
        clients: &Clients,
        cluster: &ClusterName,
        described: Option<&Cluster>,
    ) -> Result<Self, AwsError> {
        let (stacks, groups) =
            tokio::try_join!(clients.stacks(), clients.groups_of_cluster(cluster.as_str()))?;
        let mut live = Self { groups, ..Self::default() };
        let mut pending = tokio::task::JoinSet::new();
        for stack in stacks {
            let Some(part) = StackPart::from_stack_name(cluster, &stack.name) else { continue };
            if !is_of_cluster(&stack, cluster, described) {
                let cluster = stack.tags.get(CLUSTER_TAG).cloned();
                // One that is only planned, under a name that cluster.yaml does not need, is no obstacle.
                if cluster.is_some() || stack.status != StackStatus::ReviewInProgress {
                    live.foreign.push(ForeignStack { name: stack.name, cluster });
                }
                continue;
            }
            let clients = clients.clone();
            pending.spawn(async move { Ok::<_, AwsError>((part, LiveStack::read(&clients, stack).await?)) });
        }
        for (part, stack) in join_all(&mut pending).await? {
            live.stacks.insert(part, stack);
        }
        Ok(live)
    }

    /// Fails if a template cannot be compared with, because another tool has written it.
    pub(crate) fn check_templates(&self) -> Result<(), DeployError> {
        self.stacks.values().try_for_each(|live| live.readable_template().map(|_| ()))
    }

    /// Whether any part of the cluster exists.
    #[must_use]
    pub(crate) fn exists(&self) -> bool {
        !self.stacks.is_empty()
    }

    /// Whether there are stacks with machines.
    #[must_use]
    pub(crate) fn has_machines(&self) -> bool {
        self.stacks.keys().any(|part| matches!(part, StackPart::ControlPlane | StackPart::Pool(_)))
    }

    /// Whether a stack is complete, or will be, so that what it holds need not be created.
    #[must_use]
    pub(crate) fn is_or_will_be_complete(&self, part: &StackPart) -> bool {
        let Some(live) = self.stacks.get(part) else { return false };
        let status = &live.stack.status;
        let is_being_deleted =
            matches!(status, StackStatus::RollbackInProgress | StackStatus::DeleteInProgress);
        !is_being_deleted
            && matches!(next_step(Some(status)), NextStep::Compare | NextStep::Follow | NextStep::RollBack)
    }

    /// The outputs of all stacks.
    #[must_use]
    pub(crate) fn outputs(&self) -> BTreeMap<String, String> {
        let stacks = self.stacks.values().flat_map(|live| live.stack.outputs.clone());
        stacks.collect()
    }

    /// A parameter of a live stack.
    #[must_use]
    pub(crate) fn parameter(&self, part: &StackPart, name: &str) -> Option<&str> {
        self.stacks.get(part)?.stack.parameters.get(name).map(String::as_str)
    }

    /// A tag of a live stack.
    #[must_use]
    pub(crate) fn tag(&self, part: &StackPart, name: &str) -> Option<&str> {
        self.stacks.get(part)?.stack.tags.get(name).map(String::as_str)
    }

    /// The Auto Scaling group of a pool.
    #[must_use]
    pub(crate) fn pool_group(&self, pool: &PoolName) -> Option<&ScalingGroup> {
        self.group_of_role(&Role::Pool(pool.clone()))
    }

    /// The Auto Scaling group of a role.
    #[must_use]
    pub(crate) fn group_of_role(&self, role: &Role) -> Option<&ScalingGroup> {
        let role = role.name();
        self.groups.iter().find(|group| group.tags.get(ROLE_TAG) == Some(&role))
    }
}

/// Whether a stack with a name of the cluster's is the cluster's. One that is only planned may have no tags: its name decides,
/// unless it could be another cluster's.
pub(crate) fn is_of_cluster(stack: &Stack, cluster: &ClusterName, described: Option<&Cluster>) -> bool {
    if let Some(tagged) = stack.tags.get(CLUSTER_TAG) {
        return tagged == cluster.as_str();
    }
    let Some(part) = StackPart::from_stack_name(cluster, &stack.name) else { return false };
    stack.status == StackStatus::ReviewInProgress
        && (!part.has_ambiguous_name()
            || described.is_some_and(|described| StackPart::of_cluster(described).contains(&part)))
}

/// Everything that tasks found, or the first error of one.
pub(crate) async fn join_all<T: 'static>(
    pending: &mut tokio::task::JoinSet<Result<T, AwsError>>,
) -> Result<Vec<T>, AwsError> {
    let mut found = Vec::new();
    while let Some(joined) = pending.join_next().await {
        match joined {
            Ok(result) => found.push(result?),
            Err(error) => return Err(AwsError::lost(error.to_string())),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::LiveStack;
    use crate::aws::test_script::Script;
    use crate::deploy::test_stack::network_stack;

    async fn read(status: &str, template: &'static str) -> Result<LiveStack, Box<dyn std::error::Error>> {
        let script = Script::new(move |_| {
            let body = format!(
                "<GetTemplateResponse><GetTemplateResult><TemplateBody>{template}</TemplateBody></GetTemplateResult></GetTemplateResponse>"
            );
            (200, body)
        });
        Ok(LiveStack::read(&script.clients().await, network_stack(status)).await?)
    }

    #[tokio::test(start_paused = true)]
    async fn a_template_that_is_not_json_is_an_error_for_a_caller_that_compares()
    -> Result<(), Box<dyn std::error::Error>> {
        let ours = read("CREATE_COMPLETE", r#"{"Resources": {}}"#).await?;
        assert_eq!(ours.readable_template()?, &serde_json::json!({"Resources": {}}));
        for status in ["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS"] {
            let edited = read(status, "Resources:\n  Vpc: {}\n").await?;
            let error = edited.readable_template().err().ok_or("it was compared with")?.to_string();
            assert!(error.starts_with("the template of paddle-network is not the JSON"), "{error}");
            // A caller that deletes the stack, or reports its status, need not read it.
            assert!(edited.template().is_null());
        }
        assert!(read("ROLLBACK_COMPLETE", "Resources:").await?.readable_template()?.is_null());
        Ok(())
    }
}
