//! The cause of a failure as reports carry it: what failed, why, what machines said, and what to do next.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::aws::StackStatus;

/// The one cause of a stack's failure, in the user's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureReport {
    /// The stack.
    pub stack: String,
    /// The status of the stack now, in CloudFormation's words.
    pub status: StackStatus,
    /// The resource that failed first, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<FailedResource>,
    /// Why, in AWS's words.
    pub reason: String,
    /// What to do next, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// Output of machines that never signalled, and of their Auto Scaling group; left out if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// A resource that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailedResource {
    /// The name of the resource in the template, after those of the nested stacks that it is in.
    pub path: String,
    /// The CloudFormation type of the resource.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the resource is in terms of cluster.yaml.
    pub description: String,
}

/// Output of a machine, or activities of an Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Evidence {
    /// The machine or the Auto Scaling group.
    pub source: String,
    /// The last step that the boot scripts reported, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_step: Option<String>,
    /// The lines.
    pub lines: Vec<String>,
}

impl fmt::Display for FailureReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "stack {} failed ({}): {}", self.stack, self.status, self.cause())
    }
}

impl FailureReport {
    fn cause(&self) -> String {
        match &self.resource {
            Some(resource) => format!("{} ({}): {}", resource.description, resource.path, self.reason),
            None => self.reason.clone(),
        }
    }

    /// The text for a complete stack whose machines do not start.
    pub(crate) fn without_machines(&self) -> String {
        let Self { stack, status, .. } = self;
        format!("stack {stack} is complete ({status}), but its machines do not start: {}", self.cause())
    }
}

/// What is known about a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Hint {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What to do next.
    pub text: String,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailureKind {
    /// AWS has no such machine available here.
    Capacity,
    /// The account may not run more machines or disks of this kind.
    Quota,
    /// A permission is missing.
    Permission,
    /// A name belongs to something else.
    NameTaken,
    /// The account or the network may not have more things of this kind.
    Limit,
    /// A KMS key or a key pair cannot be used.
    Key,
    /// A role that a service needs for itself is missing.
    ServiceLinkedRole,
    /// The shared file system or its mount targets.
    FileSystem,
    /// Addresses, subnets, hosted zones and names.
    Network,
    /// The machine image is gone or does not fit the machine.
    Image,
    /// AWS does not know who is calling.
    Credentials,
    /// A machine started and did not get ready.
    Signal,
    /// Too many calls at a time.
    Throttled,
    /// CloudFormation or EC2 does not take what the template says.
    Template,
    /// Something else is in the way, or is not there yet.
    Dependency,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// Whether a launch that failed like this fails again until the user acts.
    #[must_use]
    pub(crate) fn is_permanent(self) -> bool {
        match self {
            Self::Capacity
            | Self::Quota
            | Self::Permission
            | Self::NameTaken
            | Self::Limit
            | Self::Key
            | Self::ServiceLinkedRole
            | Self::Network
            | Self::Image
            | Self::Template => true,
            Self::FileSystem
            | Self::Credentials
            | Self::Signal
            | Self::Throttled
            | Self::Dependency
            | Self::Other => false,
        }
    }
}
