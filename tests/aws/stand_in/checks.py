"""What CloudFormation checks before it accepts a change set, and where it says what it found."""

import re

from ministack.core.responses import new_uuid, now_iso
from ministack.services import cloudformation
from ministack.services.cloudformation import handlers, helpers

from stand_in.control import control, names_of
from stand_in.insides import xml

ACTIONS = handlers._ACTION_HANDLERS
REFUSED = ("The following hook(s)/validation failed: [{}]. To troubleshoot Early Validation errors, use the DescribeEvents API for "
           "detailed failure information.")
# What the status of a change set calls the validations whose events have these names.
OFFICIAL = {"PROPERTY_VALIDATION": "AWS::EarlyValidation::PropertyValidation",
            "NAME_CONFLICT_VALIDATION": "AWS::EarlyValidation::ResourceExistenceCheck"}
PAGE = 2

make_change_set = ACTIONS["CreateChangeSet"]


def create_checked_change_set(parameters):
    answer = make_change_set(parameters)
    made = re.search(rb"<Id>(.+?)</Id>", answer[2]) if answer[0] == 200 else None
    change_set = cloudformation._change_sets.get(made[1].decode()) if made else None
    if change_set and change_set["Status"] == "CREATE_COMPLETE":
        check(change_set)
    return answer


def check(change_set):
    failures = control().get("fail_checks", {})
    operation = new_uuid()
    events, names = [], []
    for change in (change["ResourceChange"] for change in change_set["Changes"]):
        for key in names_of(change_set["StackName"], change["LogicalResourceId"]):
            for name, path, reason in failures.get(key, []):
                events.append(event_of(change_set, operation, change, name, path, reason))
                names.append(OFFICIAL.get(name, name))
    if events:
        change_set.update(Status="FAILED", ExecutionStatus="UNAVAILABLE", Changes=[],
                          StatusReason=REFUSED.format(", ".join(dict.fromkeys(names))))
        change_set["_events"] = [dict(common(change_set, operation), EventType="STACK_EVENT", OperationStatus="IN_PROGRESS"), *events]


def common(change_set, operation):
    return {"EventId": new_uuid(), "StackId": change_set["StackId"], "OperationId": operation,
            "OperationType": "CREATE_CHANGESET", "Timestamp": now_iso()}


def event_of(change_set, operation, change, name, path, reason):
    event = dict(common(change_set, operation), OperationStatus="FAILED", LogicalResourceId=change["LogicalResourceId"],
                 PhysicalResourceId="", ResourceType=change["ResourceType"])
    if "::" in name:
        return dict(event, EventType="HOOK_INVOCATION_ERROR", HookType=name, HookStatus="HOOK_COMPLETE_FAILED",
                    HookStatusReason=reason, HookInvocationPoint="PRE_PROVISION", HookFailureMode="FAIL")
    whole = f"/Resources/{change['LogicalResourceId']}"
    return dict(event, EventType="VALIDATION_ERROR", ValidationFailureMode="FAIL", ValidationName=name, ValidationStatus="FAILED",
                ValidationStatusReason=reason, ValidationPath=f"{whole}/Properties/{path}" if path else whole)


describe_stack_operations = ACTIONS["DescribeEvents"]


def describe_events(parameters):
    """Of a change set, by its ARN: by its name AWS finds none. Newest first, in pages."""
    name = helpers._p(parameters, "ChangeSetName")
    if not name:
        return describe_stack_operations(parameters)
    if not name.startswith("arn:"):
        return handlers._error("ValidationError", "One of ChangeSetName, OperationId or StackName must be specified")
    if name not in cloudformation._change_sets:
        return handlers._error("ChangeSetNotFound", f"ChangeSet [{name}] does not exist", 404)
    change_set = cloudformation._change_sets[name]
    events = change_set.get("_events", [])[::-1]
    change_set["_reads"] = change_set.get("_reads", 0) + 1
    if change_set["_reads"] <= control().get("checks_told_after", 0):
        events = []
    if helpers._p(parameters, "Filters.FailedEvents").lower() == "true":
        events = [event for event in events if event["OperationStatus"] == "FAILED"]
    start = int(helpers._p(parameters, "NextToken") or 0)
    result = {"OperationEvents": events[start:start + PAGE], "NextToken": start + PAGE if events[start + PAGE:] else None}
    return handlers._xml(200, "DescribeEventsResponse", f"<DescribeEventsResult>{xml(result, 'member')}</DescribeEventsResult>")


ACTIONS.update(CreateChangeSet=create_checked_change_set, DescribeEvents=describe_events)
