//! The tags of a stack on its resources: CloudFormation puts them on every resource in the stack that can have tags.

use super::StackPlan;
use super::comparison::{PropertyChange, ResourceAction, ResourceChange};

/// The change of a stack's tag, as the change of a resource that it reaches.
pub(super) fn to_resource_tag(tag: &PropertyChange) -> PropertyChange {
    PropertyChange { path: format!("Tags[{}]", tag.path), ..tag.clone() }
}

impl StackPlan {
    /// Whether nothing about a resource changes but the tags that it has from the stack.
    #[must_use]
    pub(crate) fn changes_only_stack_tags_of(&self, change: &ResourceChange) -> bool {
        let is_of_stack =
            |property: &PropertyChange| self.tags.iter().any(|tag| to_resource_tag(tag) == *property);
        change.action == ResourceAction::Change
            && !change.properties.is_empty()
            && change.properties.iter().all(is_of_stack)
    }

    /// The resources of which more changes than the tags that they have from the stack.
    pub(crate) fn changes_beyond_tags(&self) -> impl Iterator<Item = &ResourceChange> {
        self.resources.iter().filter(|change| !self.changes_only_stack_tags_of(change))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ResourceAction, ResourceChange, to_resource_tag};
    use crate::blueprint::StackPart;
    use crate::deploy::plan::comparison::PropertyChange;
    use crate::deploy::plan::{StackAction, StackPlan};

    fn tag(from: &str, to: &str) -> PropertyChange {
        PropertyChange {
            path: "team".to_owned(),
            from: Some(json!(from)),
            to: Some(json!(to)),
            replaces: false,
        }
    }

    fn resource(id: &str, properties: Vec<PropertyChange>) -> ResourceChange {
        ResourceChange {
            logical_id: id.to_owned(),
            kind: "AWS::EC2::VPC".to_owned(),
            action: ResourceAction::Change,
            properties,
        }
    }

    #[test]
    fn only_the_stack_s_own_tags_are_left_out() {
        let cidr = PropertyChange { path: "CidrBlock".to_owned(), ..tag("a", "b") };
        let stack = StackPlan {
            part: StackPart::Network,
            stack: "paddle-network".to_owned(),
            action: StackAction::Update,
            resources: vec![
                resource("Same", vec![to_resource_tag(&tag("a", "b"))]),
                resource("OtherValue", vec![to_resource_tag(&tag("a", "c"))]),
                resource("More", vec![to_resource_tag(&tag("a", "b")), cidr]),
                resource("NotKnown", Vec::new()),
            ],
            tags: vec![tag("a", "b")],
            after: Vec::new(),
        };
        let left: Vec<&str> = stack.changes_beyond_tags().map(|change| change.logical_id.as_str()).collect();
        assert_eq!(left, ["OtherValue", "More", "NotKnown"]);
    }
}
