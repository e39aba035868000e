//! What `infra drift` prints, as data: the same for people and programs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::aws::StackStatus;

/// What is no longer as the templates of the stacks say. The exit code is 3 if `drifted` is true or `exists` is false, otherwise 1 if
/// `complete` is false, otherwise 0.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DriftReport {
    /// `clusterName` of cluster.yaml.
    pub cluster: String,
    /// Whether anything of the cluster exists.
    pub exists: bool,
    /// Whether a resource was deleted or changed by anything but infra, and not by design.
    pub drifted: bool,
    /// Whether everything was checked that CloudFormation can check.
    pub complete: bool,
    /// The stacks of the cluster, in the order of creation.
    pub stacks: Vec<StackDrift>,
}

/// What a report amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriftVerdict {
    /// Nothing of the cluster exists.
    Absent,
    /// There is drift.
    Drifted,
    /// There may be drift: something could not be checked.
    Unknown,
    /// There is no drift in what CloudFormation can check.
    InSync,
}

impl DriftReport {
    /// The report for a cluster of which nothing exists.
    #[must_use]
    pub(super) fn absent(cluster: &str) -> Self {
        Self { exists: false, ..Self::new(cluster, Vec::new()) }
    }

    /// The report for the stacks of a cluster.
    #[must_use]
    pub(super) fn new(cluster: &str, stacks: Vec<StackDrift>) -> Self {
        Self {
            cluster: cluster.to_owned(),
            exists: true,
            drifted: stacks.iter().any(|stack| !stack.drifted.is_empty()),
            complete: stacks.iter().all(StackDrift::is_complete),
            stacks,
        }
    }

    /// What the report amounts to.
    #[must_use]
    pub(crate) fn verdict(&self) -> DriftVerdict {
        match (self.exists, self.drifted, self.complete) {
            (false, _, _) => DriftVerdict::Absent,
            (true, true, _) => DriftVerdict::Drifted,
            (true, false, false) => DriftVerdict::Unknown,
            (true, false, true) => DriftVerdict::InSync,
        }
    }

    /// Every property in the report.
    pub(crate) fn properties_mut(&mut self) -> impl Iterator<Item = &mut PropertyDrift> {
        self.stacks.iter_mut().flat_map(|stack| {
            let drifted = stack.drifted.iter_mut().flat_map(|resource| &mut resource.properties);
            drifted.chain(stack.by_design.iter_mut().map(|change| &mut change.property))
        })
    }
}

/// What is no longer as the template of one stack says.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StackDrift {
    /// The name of the stack.
    pub stack: String,
    /// CloudFormation's status of the stack.
    pub status: StackStatus,
    /// Why the stack, or part of it, could not be checked; null if it was.
    pub problem: Option<String>,
    /// How many resources are as the template says.
    pub in_sync: usize,
    /// The resources that were deleted or changed.
    pub drifted: Vec<DriftedResource>,
    /// Properties that the cluster's controllers or AWS change, as they should.
    pub by_design: Vec<DesignedChange>,
    /// Resources whose type CloudFormation cannot check: nobody knows whether they are as the template says.
    pub not_checked: Vec<UncheckedResource>,
    /// Resources that CloudFormation tried to check, and could not.
    pub failed: Vec<UncheckedResource>,
}

impl StackDrift {
    /// A stack of which nothing was checked.
    #[must_use]
    pub(super) fn unchecked(stack: &str, status: &StackStatus, problem: Option<String>) -> Self {
        Self {
            stack: stack.to_owned(),
            status: status.clone(),
            problem,
            in_sync: 0,
            drifted: Vec::new(),
            by_design: Vec::new(),
            not_checked: Vec::new(),
            failed: Vec::new(),
        }
    }

    fn is_complete(&self) -> bool {
        self.problem.is_none() && self.failed.is_empty()
    }
}

/// A resource that is not as its template says.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DriftedResource {
    /// The logical id in the template.
    pub logical_id: String,
    /// The id in AWS.
    pub physical_id: String,
    /// The CloudFormation type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the resource is in terms of cluster.yaml.
    pub description: String,
    /// What happened to the resource.
    pub change: DriftKind,
    /// The properties that differ. The content of user data is never included, only that it differs. Empty for a deleted resource, and
    /// where CloudFormation names no property.
    pub properties: Vec<PropertyDrift>,
}

/// What happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DriftKind {
    /// The resource no longer exists.
    Deleted,
    /// Properties of the resource differ.
    Modified,
}

/// A property that is not as the template says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PropertyDrift {
    /// The property, as `SecurityGroupIngress.3`: elements of lists are counted from 0.
    pub path: String,
    /// What the template says; null for an element of a list that was added.
    pub expected: Option<Value>,
    /// What AWS has; null for what was removed.
    pub actual: Option<Value>,
}

/// A property that something changes as it should.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DesignedChange {
    /// The logical id in the template.
    pub logical_id: String,
    /// The id in AWS.
    pub physical_id: String,
    /// The CloudFormation type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the resource is in terms of cluster.yaml.
    pub description: String,
    /// Who changes the property.
    pub cause: DesignedCause,
    /// The property.
    #[serde(flatten)]
    pub property: PropertyDrift,
}

/// Who changes a property by design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DesignedCause {
    /// The autoscaler, a schedule or an operator sets the number of machines of a pool, and `infra up` keeps it.
    PoolSize,
    /// The schedule of a pool sets its limits.
    Schedule,
    /// Kubernetes opened a security group for a Service of type LoadBalancer.
    Service,
    /// AWS set a tag that nobody else can set.
    AwsTag,
}

impl fmt::Display for DesignedCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PoolSize => "the size of a pool changes with its load; `infra up` keeps it",
            Self::Schedule => "the schedule of the pool",
            Self::Service => "Kubernetes, for a Service of type LoadBalancer",
            Self::AwsTag => "AWS",
        })
    }
}

/// A resource that was not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UncheckedResource {
    /// The logical id in the template.
    pub logical_id: String,
    /// The CloudFormation type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Why, in CloudFormation's words; null if it cannot check the type.
    pub reason: Option<String>,
}
