"""What may be asked of a stack in its status, requests that come twice, and statuses that a test begins with."""

import json
import pathlib
import re
import time

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudformation
from ministack.services.cloudformation import changesets, handlers, helpers, provisioners, stacks

from stand_in.control import control, made_at, names_of, writing
from stand_in.operations import ACTIONS, STACK, refuse

# --- What may be asked of a stack in its status ------------------------------------------------------------------------------

UPDATABLE = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}
UPDATING = {"UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS",
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"}


def stack_of(parameters):
    stack = handlers._resolve_stack(helpers._p(parameters, "StackName"))
    return stack if stack and stack["StackStatus"] != "DELETE_COMPLETE" else None


def unless_updatable(stack):
    # After a failure without a rollback, an update can continue.
    if stack["StackStatus"] not in UPDATABLE and "_failed_operation" not in stack:
        return refuse(f"Stack:{stack['StackId']} is in {stack['StackStatus']} state and can not be updated.")
    return None


make_change_set, start_change_set, begin_deletion = (
    ACTIONS[name] for name in ("CreateChangeSet", "ExecuteChangeSet", "DeleteStack"))


def create_change_set(parameters):
    name, change_set, kind = (helpers._p(parameters, key) for key in ("StackName", "ChangeSetName", "ChangeSetType"))
    stack = stack_of(parameters)
    if not stack:
        return make_change_set(parameters)
    in_review = stack["StackStatus"] == "REVIEW_IN_PROGRESS"
    if kind == "CREATE" and in_review:
        return add_change_set(parameters, stack)
    if kind != "CREATE" and in_review:
        return refuse(f"Stack [{name}] does not exist")
    if refusal := unless_updatable(stack):
        return refusal
    if kind == "CREATE":
        return refuse(f"Stack [{name}] already exists and cannot be created again with the changeSet [{change_set}].")
    answer = make_change_set(parameters)
    made = re.search(rb"<Id>(.+?)</Id>", answer[2]) if answer[0] == 200 else None
    if made:
        heed_outputs(cloudformation._change_sets[made[1].decode()], stack)
    return answer


def heed_outputs(change_set, stack):
    """Other outputs alone make a change set without changes that can be executed (aws/aws-cdk, pull request 2029)."""
    if change_set["Status"] != "FAILED" or "didn't contain changes" not in change_set["StatusReason"]:
        return
    if change_set["_template"].get("Outputs") != stack["_template"].get("Outputs"):
        change_set.update(Status="CREATE_COMPLETE", ExecutionStatus="AVAILABLE", StatusReason="")


def add_change_set(parameters, stack):
    """To a stack that is nothing but change sets yet. MiniStack would put another stack in its place."""
    name, stack_id = stack["StackName"], stack["StackId"]
    status, headers, body = make_change_set(parameters)
    other = cloudformation._stacks.get(name, stack)
    cloudformation._stacks[name] = stack
    if other is not stack:
        stack["Tags"] = other["Tags"]
        cloudformation._stack_events.pop(other["StackId"], None)
        for change_set in cloudformation._change_sets.values():
            if change_set["StackId"] == other["StackId"]:
                change_set["StackId"] = stack_id
        body = body.replace(other["StackId"].encode(), stack_id.encode())
    return status, headers, body


def execute_change_set(parameters):
    _, change_set = changesets._find_change_set(*(helpers._p(parameters, key) for key in ("ChangeSetName", "StackName")))
    if change_set and change_set["ExecutionStatus"] == "AVAILABLE":
        stack = cloudformation._stacks[change_set["StackName"]]
        new = change_set["ChangeSetType"] == "CREATE" and stack["StackStatus"] == "REVIEW_IN_PROGRESS"
        if not new and (refusal := unless_updatable(stack)):
            return refusal
    return start_change_set(parameters)


def delete_stack(parameters):
    stack = stack_of(parameters)
    accepted = handlers._xml(200, "DeleteStackResponse", "")
    if not stack or stack["StackStatus"] == "DELETE_IN_PROGRESS":
        return accepted
    if stack["StackStatus"] in UPDATING:
        return refuse(f"Stack [{stack['StackId']}] cannot be deleted while in status {stack['StackStatus']}")
    if "_deploying" in stack and not stack.get("EnableTerminationProtection"):
        # Its creation stops before the next resource; then the deletion begins.
        stack.update(_deletion=True, StackStatus="DELETE_IN_PROGRESS")
        stacks._add_event(stack["StackId"], stack["StackName"], stack["StackName"], STACK, "DELETE_IN_PROGRESS", "User Initiated",
                          stack["StackId"])
        return accepted
    return begin_deletion(parameters)


def estimate_cost(parameters):
    template, refusal = helpers._resolve_template(parameters)
    if refusal or not template:
        return refusal or refuse("Either Template URL or Template Body must be specified.")
    return handlers._xml(200, "EstimateTemplateCostResponse", "<EstimateTemplateCostResult>"
                         "<Url>https://calculator.aws/#/estimate?key=test</Url></EstimateTemplateCostResult>")


def only_by_id(action, words):
    """A deleted stack has lost its name."""
    answer = ACTIONS[action]

    def guarded(parameters):
        name = helpers._p(parameters, "StackName")
        stack = handlers._resolve_stack(name)
        nameless = stack and stack["StackStatus"] == "DELETE_COMPLETE" and stack["StackName"] == name
        return refuse(words.format(name)) if name and (nameless or not stack) else answer(parameters)

    ACTIONS[action] = guarded


ACTIONS.update(CreateChangeSet=create_change_set, ExecuteChangeSet=execute_change_set, DeleteStack=delete_stack,
               EstimateTemplateCost=estimate_cost)
only_by_id("DescribeStackEvents", "Stack [{}] does not exist")
for action in ("DescribeStackResource", "DescribeStackResources", "ListStackResources", "GetTemplate"):
    only_by_id(action, "Stack with id {} does not exist")


# --- Requests that come twice ------------------------------------------------------------------------------------------------

answered = {}


def remember(action, token_key, *target_keys):
    """The second of two requests with one token gets the answer of the first."""
    handle = ACTIONS[action]

    def remembering(parameters):
        token, *target = (helpers._p(parameters, key) for key in (token_key, *target_keys))
        key = (get_account_id(), get_region(), action, token, *target)
        if action == "CreateChangeSet" and changesets._find_change_set(target[1], target[0])[1] is None:
            answered.pop(key, None)
        if token and key in answered:
            return answered[key]
        answer = handle(parameters)
        if token and answer[0] == 200:
            answered[key] = answer
        return answer

    ACTIONS[action] = remembering


remember("CreateChangeSet", "ClientToken", "StackName", "ChangeSetName")
remember("ExecuteChangeSet", "ClientRequestToken", "ChangeSetName", "StackName")
remember("DeleteStack", "ClientRequestToken", "StackName")


# --- Statuses that a test begins with ----------------------------------------------------------------------------------------

forced = {}


def set_status(stack, status):
    stack.update(StackStatus=status, StackStatusReason="")
    stacks._add_event(stack["StackId"], stack["StackName"], stack["StackName"], STACK, status, "", stack["StackId"])


def force_statuses():
    settings = control()
    for name, status in settings.get("force_status", {}).items():
        stack, key = cloudformation._stacks.get(name), (get_account_id(), get_region(), name)
        if not stack or stack["StackStatus"] == "DELETE_COMPLETE" or forced.get(key) == writing():
            continue
        forced[key] = writing()
        set_status(stack, status)
        if "finish_status" in settings:
            stack["_finish"] = (time.monotonic(), status, settings["finish_status"])
        if status == "UPDATE_ROLLBACK_FAILED":
            stack["_rollback_failed"] = dict(failed_rollbacks(stack, settings.get("fail_rollback", {})))
    for stack in cloudformation._stacks.values():
        began, status, last = stack.get("_finish", (0, None, None))
        if status and stack["StackStatus"] != status:
            del stack["_finish"]
        elif status and time.monotonic() - began >= settings.get("finish_after", 0):
            del stack["_finish"]
            set_status(stack, last)


def failed_rollbacks(stack, failures):
    for logical_id, record in stack["_resources"].items():
        if set(names_of(stack["StackName"], logical_id)) & set(failures):
            record["ResourceStatus"] = "UPDATE_FAILED"
            yield logical_id, {"PhysicalResourceId": record["PhysicalResourceId"], "ResourceType": record["ResourceType"],
                               "Attributes": record["Attributes"], "RevertFrom": record["Properties"],
                               "RevertTo": record["Properties"]}


def after_forcing(handle):
    def forcing(parameters):
        force_statuses()
        return handle(parameters)

    return forcing


def describe_aged_stacks(parameters):
    status, headers, body = describe_stacks(parameters)

    def aged(found):
        return f"{found[1]}{made_at(found[2], found[4])}</CreationTime>"

    stack = r"(<StackName>(.*?)</StackName>((?!</StackName>).)*?<CreationTime>)(.*?)</CreationTime>"
    return status, headers, re.sub(stack, aged, body.decode(), flags=re.S).encode()


describe_stacks, ACTIONS["DescribeStacks"] = ACTIONS["DescribeStacks"], describe_aged_stacks
ACTIONS.update({action: after_forcing(handle) for action, handle in ACTIONS.items()})


# --- What change sets say about replacement ----------------------------------------------------------------------------------

SCHEMAS = json.loads((pathlib.Path(__file__).parents[3] / "src/check/resource_schemas.json").read_text())
for resource_type, schema in SCHEMAS.items():
    provisioners._REPLACING_PROPERTIES[resource_type] = tuple(name for name in schema["createOnly"] if "/" not in name)
    provisioners._CONDITIONALLY_REPLACING_PROPERTIES.pop(resource_type, None)
# Its schema says of none that it cannot change, but AWS refuses to change these.
provisioners._REPLACING_PROPERTIES["AWS::EC2::Volume"] = ("AvailabilityZone", "Encrypted", "KmsKeyId", "SnapshotId")
