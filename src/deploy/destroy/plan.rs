//! What a destroy would delete, what it keeps, and what is in its way, before it begins.

use schemars::JsonSchema;
use serde::Serialize;

use crate::deploy::event::{DestroyItem, Resource, ResourceKind};

/// What a destroy deletes, what it keeps, and what is not the cluster's. The exit code is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DestroyPlan {
    /// What is deleted, in this order.
    pub delete: Vec<DestroyItem>,
    /// What is kept on purpose.
    pub keep: Vec<DestroyItem>,
    /// Foreign resources that block the deletion of the cluster's network.
    pub foreign: Vec<DestroyItem>,
}

impl DestroyPlan {
    /// Adds a resource that is deleted.
    pub(crate) fn delete(&mut self, kind: ResourceKind, id: impl Into<String>, why: impl Into<String>) {
        self.delete.push(destroy_item(kind, id, why));
    }

    /// Adds a resource that is kept.
    pub(crate) fn keep(&mut self, kind: ResourceKind, id: impl Into<String>, why: impl Into<String>) {
        self.keep.push(destroy_item(kind, id, why));
    }

    /// Adds a foreign resource.
    pub(crate) fn add_foreign(&mut self, kind: ResourceKind, id: impl Into<String>, why: impl Into<String>) {
        self.foreign.push(destroy_item(kind, id, why));
    }
}

fn destroy_item(kind: ResourceKind, id: impl Into<String>, why: impl Into<String>) -> DestroyItem {
    DestroyItem { resource: Resource::new(kind, id), why: why.into() }
}
