//! The results of one detection: which resources drifted, which changed by design, which were not checked.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::by_design::{StackContext, source_group};
use super::shape::{
    DesignedChange, DriftKind, DriftedResource, PropertyDrift, StackDrift, UncheckedResource,
};
use crate::aws::{
    Detection, DetectionStatus, DifferenceKind, PropertyDifference, ResourceDrift, ResourceDriftStatus,
    StackResource,
};
use crate::config::Cluster;
use crate::deploy::state::description::describe_resource;

/// What CloudFormation reports after a detection.
#[derive(Debug)]
pub(super) struct Results {
    /// The detection.
    pub detection: Detection,
    /// Every resource of the stack, checked or not.
    pub resources: Vec<StackResource>,
    /// What was found, of this detection and of earlier ones.
    pub drifts: Vec<ResourceDrift>,
}

/// The reason of a detection that failed, where CloudFormation gives it as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FailureReasons {
    failures: Vec<FailureReason>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FailureReason {
    resource: String,
    failure_reason: Option<String>,
}

impl Results {
    /// The security groups that rules let in which nobody expected.
    pub(super) fn added_sources(&self) -> BTreeSet<String> {
        let differences = self.drifts.iter().flat_map(|drift| &drift.differences);
        let added = differences.filter(|difference| difference.kind == DifferenceKind::Added);
        added
            .filter_map(|difference| source_group(&property_value(&difference.actual)).map(str::to_owned))
            .collect()
    }

    /// Sorts every resource of the stack.
    pub(super) fn sort(
        self,
        mut stack: StackDrift,
        cluster: &Cluster,
        context: StackContext<'_>,
    ) -> StackDrift {
        let mut failures = self.failures();
        if self.detection.status == DetectionStatus::Failed && failures.is_empty() {
            stack.problem = Some(
                self.detection.reason.clone().unwrap_or_else(|| "CloudFormation does not say why".to_owned()),
            );
        }
        let mut drifts: BTreeMap<&str, &ResourceDrift> =
            self.drifts.iter().map(|drift| (drift.logical_id.as_str(), drift)).collect();
        for resource in &self.resources {
            let id = resource.logical_id.as_str();
            let unchecked = |reason: Option<String>| UncheckedResource {
                logical_id: id.to_owned(),
                kind: resource.kind.clone(),
                reason,
            };
            if let Some(reason) = failures.remove(id) {
                stack.failed.push(unchecked(Some(reason)));
                continue;
            }
            let Some(drift) = drifts.remove(id) else {
                stack.not_checked.push(unchecked(None));
                continue;
            };
            let is_earlier =
                drift.checked.zip(self.detection.began).is_some_and(|(checked, began)| checked < began);
            if is_earlier {
                let reason = "CloudFormation has only an earlier result".to_owned();
                stack.failed.push(unchecked(Some(reason)));
                continue;
            }
            match drift.status {
                ResourceDriftStatus::InSync => stack.in_sync += 1,
                ResourceDriftStatus::NotChecked => stack.not_checked.push(unchecked(None)),
                ResourceDriftStatus::Failed => {
                    let reason = drift.reason.clone();
                    let reason = reason.unwrap_or_else(|| "CloudFormation does not say why".to_owned());
                    stack.failed.push(unchecked(Some(reason)));
                }
                ResourceDriftStatus::Deleted => {
                    stack.drifted.push(drifted_resource(
                        drift,
                        cluster,
                        context,
                        DriftKind::Deleted,
                        Vec::new(),
                    ));
                }
                ResourceDriftStatus::Modified => add_modified(&mut stack, drift, cluster, context),
            }
        }
        stack
    }

    /// Why single resources could not be checked: CloudFormation names them in JSON, or in brackets.
    fn failures(&self) -> BTreeMap<String, String> {
        let reason = self.detection.reason.as_deref().unwrap_or_default();
        if self.detection.status != DetectionStatus::Failed {
            return BTreeMap::new();
        }
        if let Ok(reasons) = serde_json::from_str::<FailureReasons>(reason) {
            let unknown = || "CloudFormation does not say why".to_owned();
            let failures = reasons.failures.into_iter();
            return failures
                .map(|failure| (failure.resource, failure.failure_reason.unwrap_or_else(unknown)))
                .collect();
        }
        let in_brackets = reason.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let names = in_brackets.map_or("", |(names, _)| names).split(',').map(str::trim);
        let known: BTreeSet<&str> =
            self.resources.iter().map(|resource| resource.logical_id.as_str()).collect();
        names.filter(|name| known.contains(name)).map(|name| (name.to_owned(), reason.to_owned())).collect()
    }
}

fn drifted_resource(
    drift: &ResourceDrift,
    cluster: &Cluster,
    context: StackContext<'_>,
    change: DriftKind,
    properties: Vec<PropertyDrift>,
) -> DriftedResource {
    DriftedResource {
        logical_id: drift.logical_id.clone(),
        physical_id: drift.physical_id.clone(),
        kind: drift.kind.clone(),
        description: describe_resource(cluster, context.part, &drift.logical_id),
        change,
        properties,
    }
}

fn add_modified(stack: &mut StackDrift, drift: &ResourceDrift, cluster: &Cluster, context: StackContext<'_>) {
    let mut properties = Vec::new();
    for difference in &drift.differences {
        let property = property_drift(difference);
        match context.cause(&drift.logical_id, &drift.kind, &property, difference.kind) {
            None => properties.push(property),
            Some(cause) => stack.by_design.push(DesignedChange {
                logical_id: drift.logical_id.clone(),
                physical_id: drift.physical_id.clone(),
                kind: drift.kind.clone(),
                description: describe_resource(cluster, context.part, &drift.logical_id),
                cause,
                property,
            }),
        }
    }
    // CloudFormation at times says that a resource differs, and not in what.
    if !properties.is_empty() || drift.differences.is_empty() {
        stack.drifted.push(drifted_resource(drift, cluster, context, DriftKind::Modified, properties));
    }
}

fn property_drift(difference: &PropertyDifference) -> PropertyDrift {
    let unescape = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let path: Vec<String> = difference.path.trim_start_matches('/').split('/').map(unescape).collect();
    PropertyDrift {
        path: path.join("."),
        expected: (difference.kind != DifferenceKind::Added).then(|| property_value(&difference.expected)),
        actual: (difference.kind != DifferenceKind::Removed).then(|| property_value(&difference.actual)),
    }
}

/// A value as CloudFormation reports it: a list or an object as JSON, anything else as plain text.
fn property_value(text: &str) -> Value {
    let is_structure = text.starts_with(['{', '[']);
    let read = is_structure.then(|| serde_json::from_str(text).ok()).flatten();
    read.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::{Value, json};
    use time::macros::datetime;

    use super::{Results, StackDrift, UncheckedResource};
    use crate::aws::{
        Detection, DetectionStatus, DifferenceKind, PropertyDifference, ResourceDrift, ResourceDriftStatus,
        StackResource,
    };
    use crate::blueprint::StackPart;
    use crate::config;
    use crate::deploy::status::drift::by_design::StackContext;

    fn resource(id: &str) -> StackResource {
        StackResource {
            logical_id: id.to_owned(),
            physical_id: format!("{id}-1"),
            kind: "AWS::EC2::Volume".to_owned(),
            status: "CREATE_COMPLETE".into(),
        }
    }

    fn drift(id: &str, status: ResourceDriftStatus) -> ResourceDrift {
        ResourceDrift {
            logical_id: id.to_owned(),
            physical_id: format!("{id}-1"),
            kind: "AWS::EC2::Volume".to_owned(),
            status,
            reason: None,
            differences: Vec::new(),
            checked: Some(datetime!(2026-03-01 12:00:05 UTC)),
        }
    }

    fn sort(
        status: DetectionStatus,
        reason: Option<&str>,
        drifts: Vec<ResourceDrift>,
    ) -> Result<StackDrift, Box<dyn std::error::Error>> {
        let text = "{clusterName: paddle, externalDNSName: a.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'}";
        let cluster = config::validate(Path::new("cluster.yaml"), text)?.value;
        let results = Results {
            detection: Detection {
                status,
                reason: reason.map(str::to_owned),
                began: Some(datetime!(2026-03-01 12:00:00 UTC)),
            },
            resources: ["A", "B", "C"].map(resource).to_vec(),
            drifts,
        };
        let context = StackContext {
            cluster: &cluster.name,
            part: &StackPart::Network,
            template: &Value::Null,
            service_groups: &BTreeSet::new(),
        };
        let stack = StackDrift::unchecked("paddle-network", &"CREATE_COMPLETE".into(), None);
        Ok(results.sort(stack, &cluster, context))
    }

    fn named(list: &[UncheckedResource]) -> Vec<(&str, Option<&str>)> {
        list.iter().map(|resource| (resource.logical_id.as_str(), resource.reason.as_deref())).collect()
    }

    #[test]
    fn what_has_no_result_was_not_checked() -> Result<(), Box<dyn std::error::Error>> {
        let drifts =
            vec![drift("A", ResourceDriftStatus::InSync), drift("B", ResourceDriftStatus::NotChecked)];
        let stack = sort(DetectionStatus::Complete, None, drifts)?;
        assert_eq!(stack.in_sync, 1);
        assert_eq!(named(&stack.not_checked), [("B", None), ("C", None)]);
        assert!(stack.failed.is_empty() && stack.drifted.is_empty() && stack.problem.is_none(), "{stack:?}");
        Ok(())
    }

    #[test]
    fn a_result_of_an_earlier_detection_says_nothing() -> Result<(), Box<dyn std::error::Error>> {
        let mut stale = drift("A", ResourceDriftStatus::InSync);
        stale.checked = Some(datetime!(2026-02-01 12:00:00 UTC));
        let stack = sort(DetectionStatus::Complete, None, vec![stale])?;
        assert_eq!(stack.in_sync, 0);
        assert_eq!(named(&stack.failed), [("A", Some("CloudFormation has only an earlier result"))]);
        Ok(())
    }

    #[test]
    fn failures_are_named_in_both_of_cloudformations_ways() -> Result<(), Box<dyn std::error::Error>> {
        let as_json = r#"{"Summary":"Failed to detect drift on resources [B]","Failures":[{"Resource":"B","FailureReason":"Internal Failure"}]}"#;
        let stack =
            sort(DetectionStatus::Failed, Some(as_json), vec![drift("A", ResourceDriftStatus::InSync)])?;
        assert_eq!(named(&stack.failed), [("B", Some("Internal Failure"))]);
        assert_eq!(named(&stack.not_checked), [("C", None)]);
        let as_text = "Failed to detect drift on resources [B, C]";
        let stack = sort(DetectionStatus::Failed, Some(as_text), Vec::new())?;
        assert_eq!(named(&stack.failed), [("B", Some(as_text)), ("C", Some(as_text))]);
        // A failure of nobody in particular is one of the stack.
        let stack = sort(DetectionStatus::Failed, Some("Throttled"), Vec::new())?;
        assert_eq!(stack.problem.as_deref(), Some("Throttled"));
        assert!(stack.failed.is_empty());
        Ok(())
    }

    #[test]
    fn differences_are_read_by_their_kind() -> Result<(), Box<dyn std::error::Error>> {
        let difference = |path: &str, kind, expected: &str, actual: &str| PropertyDifference {
            path: path.to_owned(),
            kind,
            expected: expected.to_owned(),
            actual: actual.to_owned(),
        };
        let mut modified = drift("A", ResourceDriftStatus::Modified);
        modified.differences = vec![
            difference("/Size", DifferenceKind::Changed, "20", "40"),
            difference("/Tags/1", DifferenceKind::Added, "null", r#"{"Key":"a","Value":"b"}"#),
            difference("/a~1b/2", DifferenceKind::Removed, "[1]", "null"),
        ];
        let empty = drift("B", ResourceDriftStatus::Modified);
        let gone = drift("C", ResourceDriftStatus::Deleted);
        let stack = sort(DetectionStatus::Complete, None, vec![modified, empty, gone])?;
        assert_eq!(
            json!(stack.drifted[0].properties),
            json!([
                {"path": "Size", "expected": "20", "actual": "40"},
                {"path": "Tags.1", "expected": null, "actual": {"Key": "a", "Value": "b"}},
                {"path": "a/b.2", "expected": [1], "actual": null},
            ])
        );
        // CloudFormation at times says no more.
        assert!(stack.drifted[1].properties.is_empty());
        assert_eq!(json!(stack.drifted[2].change), "deleted");
        Ok(())
    }
}
