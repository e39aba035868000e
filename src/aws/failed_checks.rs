//! The checks of CloudFormation that refused a change set. The change set itself only says that there were some.

use aws_sdk_cloudformation::types::{EventFilter, HookFailureMode, OperationEvent};

use super::actions;
use super::{AwsError, ChangeSet, Clients};

/// A check of CloudFormation that failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FailedCheck {
    /// The name of the resource in the template; none if the check is about the whole template.
    pub logical_id: Option<String>,
    /// The position in the template, if it says more than the name of the resource.
    pub path: Option<String>,
    /// The name of the validation, or the type of the Hook.
    pub check: String,
    /// Why, in CloudFormation's words.
    pub reason: String,
}

impl Clients {
    /// The checks that a change set failed, each once, by resource.
    pub(crate) async fn failed_checks(&self, change_set: &ChangeSet) -> Result<Vec<FailedCheck>, AwsError> {
        // By its name alone a change set is not found.
        let call = self.cloudformation.describe_events().change_set_name(&change_set.arn);
        let call = call.stack_name(&change_set.stack_arn);
        let call = call.filters(EventFilter::builder().failed_events(true).build());
        let mut pages = call.into_paginator().items().send();
        let mut failed = Vec::new();
        while let Some(next) = pages.next().await {
            failed.extend(to_failed_check(next.map_err(AwsError::of(actions::CFN_DESCRIBE_EVENTS))?));
        }
        failed.sort();
        failed.dedup();
        Ok(failed)
    }
}

/// Events of validations and of Hooks; not those that only warn, and not those that repeat the status of the change set.
fn to_failed_check(event: OperationEvent) -> Option<FailedCheck> {
    let (check, reason, mode) = match (event.validation_name, event.hook_type) {
        (Some(name), _) => (name, event.validation_status_reason, event.validation_failure_mode),
        (None, Some(kind)) => (format!("Hook {kind}"), event.hook_status_reason, event.hook_failure_mode),
        (None, None) => return None,
    };
    if mode == Some(HookFailureMode::Warn) {
        return None;
    }
    let path = event.validation_path;
    let logical_id = event.logical_resource_id.or_else(|| resource_in(path.as_deref()?));
    let names_more = |path: &String| logical_id.is_none() || resource_in(path) != logical_id || is_deep(path);
    Some(FailedCheck {
        path: path.filter(names_more),
        logical_id,
        reason: reason.unwrap_or_else(|| "CloudFormation gives no reason".to_owned()),
        check,
    })
}

/// The resource in a path such as `/Resources/Vpc/Properties/CidrBlock`.
fn resource_in(path: &str) -> Option<String> {
    let mut parts = path.trim_start_matches('/').split('/');
    (parts.next() == Some("Resources")).then(|| parts.next().map(str::to_owned))?
}

/// Whether a path names a part of a resource, rather than the whole resource.
fn is_deep(path: &str) -> bool {
    path.trim_matches('/').split('/').count() > 2
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::types::{HookFailureMode, OperationEvent};

    use super::{FailedCheck, to_failed_check};

    fn validation(id: Option<&str>, path: &str, mode: HookFailureMode) -> OperationEvent {
        OperationEvent::builder()
            .set_logical_resource_id(id.map(str::to_owned))
            .validation_name("PROPERTY_VALIDATION")
            .validation_failure_mode(mode)
            .validation_status_reason("no")
            .validation_path(path)
            .build()
    }

    fn failed(event: OperationEvent) -> Option<(Option<String>, Option<String>, String)> {
        let FailedCheck { logical_id, path, check, .. } = to_failed_check(event)?;
        Some((logical_id, path, check))
    }

    #[test]
    fn a_path_is_kept_if_it_is_longer_than_the_resource() {
        let text = |text: &str| Some(text.to_owned());
        let check = "PROPERTY_VALIDATION".to_owned();
        for (id, path, kept) in [
            (Some("Vpc"), "/Resources/Vpc", None),
            (None, "Resources/Vpc", None),
            (None, "/Resources/Vpc/Properties", text("/Resources/Vpc/Properties")),
            (Some("Vpc"), "/Resources/Vpc/Properties/Tags/0", text("/Resources/Vpc/Properties/Tags/0")),
        ] {
            let found = failed(validation(id, path, HookFailureMode::Fail));
            assert_eq!(found, Some((text("Vpc"), kept, check.clone())), "{path}");
        }
        let whole = failed(validation(None, "/Outputs", HookFailureMode::Fail));
        assert_eq!(whole, Some((None, text("/Outputs"), check)));
    }

    #[test]
    fn a_warning_and_the_status_of_the_change_set_are_no_failed_checks() {
        assert_eq!(failed(validation(Some("Vpc"), "/Resources/Vpc", HookFailureMode::Warn)), None);
        let status = OperationEvent::builder().resource_status_reason("validation failed").build();
        assert_eq!(failed(status), None);
    }

    #[test]
    fn a_failed_hook_is_a_failed_check() {
        let event = OperationEvent::builder().logical_resource_id("Vpc").hook_type("Acme::Ec2::Guard");
        let event = event.hook_failure_mode(HookFailureMode::Fail).hook_status_reason("needs a tag").build();
        assert_eq!(
            to_failed_check(event),
            Some(FailedCheck {
                logical_id: Some("Vpc".to_owned()),
                path: None,
                check: "Hook Acme::Ec2::Guard".to_owned(),
                reason: "needs a tag".to_owned(),
            })
        );
    }
}
