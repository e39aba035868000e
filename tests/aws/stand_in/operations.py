"""What CloudFormation does: in which order it works, what it is told to fail at, what it refuses beforehand, and how operations end."""

import contextvars
import fnmatch
import inspect
import json
import time

from ministack.services import cloudformation, ec2, route53
from ministack.services.cloudformation import engine, handlers, provisioners, stacks

from stand_in.control import control, names_of
from stand_in.insides import replace, rolling_back
from stand_in.lookups import images

ACTIONS = handlers._ACTION_HANDLERS
STACK = "AWS::CloudFormation::Stack"


def refuse(message):
    return handlers._error("ValidationError", message)


# --- Faults ------------------------------------------------------------------------------------------------------------------


def with_faults(verb, function):
    signature = inspect.signature(function)

    def faulty(*arguments, **named):
        given = signature.bind(*arguments, **named).arguments
        stack_name, logical_id = given.get("stack_name"), given.get("logical_id")
        stack = cloudformation._stacks.get(stack_name) or {}
        if verb == "create" and "_deletion" in stack:
            raise ValueError("Resource creation cancelled")
        if verb == "update" and given["old_props"] == given["new_props"] and not rolling_back.get():
            leave_unmentioned(stack, logical_id)
            return function(*arguments, **named)
        take_time(verb, stack)
        settings = control()
        failures = settings.get("fail_rollback" if verb == "update" and rolling_back.get() else f"fail_{verb}", {})
        for key in (*names_of(stack_name, logical_id), given["resource_type"]):
            if key in failures:
                raise ValueError(failures[key])
        return function(*arguments, **named)

    return faulty


CANCELLATIONS = {"create": "_deletion", "update": "_cancel_requested"}


def take_time(verb, stack):
    """As long as the file says, which may be written meanwhile. A cancellation does not wait for it."""
    began = time.monotonic()

    def is_held():
        settings = control()
        return time.monotonic() - began < settings.get("delay", 0) or stack.get("StackName") in settings.get("hold", [])

    while CANCELLATIONS.get(verb) not in stack and is_held():
        time.sleep(0.02)


def leave_unmentioned(stack, logical_id):
    """AWS has no events of what an update does not touch. The first of two has been recorded."""
    events = cloudformation._stack_events.get(stack.get("StackId"), [])
    if events and (events[-1]["LogicalResourceId"], events[-1]["ResourceStatus"]) == (logical_id, "UPDATE_IN_PROGRESS"):
        events.pop()
        stack.setdefault("_unmentioned", set()).add(logical_id)


add_event = stacks._add_event


def add_mentioned_event(stack_id, stack_name, logical_id, resource_type, status, reason="", physical_id="", *more, **named):
    stack = cloudformation._stacks.get(stack_name) or {}
    unmentioned = stack.get("_unmentioned", set())
    if status == "UPDATE_COMPLETE" and logical_id in unmentioned:
        unmentioned.discard(logical_id)
        return
    if not physical_id and resource_type != STACK:
        # What failed half-way has a name already.
        physical_id = stack.get("_resources", {}).get(logical_id, {}).get("PhysicalResourceId", "")
    add_event(stack_id, stack_name, logical_id, resource_type, status, reason, physical_id, *more, **named)


replace("_add_event", add_mentioned_event)
replace("_provision_resource", with_faults("create", provisioners._provision_resource))
replace("_update_resource", with_faults("update", provisioners._update_resource))
replace("_delete_resource", with_faults("delete", provisioners._delete_resource))

on_a_thread = stacks._runs_on_worker_thread


def may_take_time(resource_type):
    """On the event loop it would block every other request."""
    settings = control()
    waits = settings.get("fail_launch") or settings.get("no_signal") or settings.get("real_machines")
    of_group = resource_type == "AWS::AutoScaling::AutoScalingGroup"
    return bool(settings.get("delay") or settings.get("hold") or of_group and waits) or on_a_thread(resource_type)


replace("_runs_on_worker_thread", may_take_time)

sort = engine._topological_sort


def sort_backwards_if_asked(resources, conditions):
    names = sort(resources, conditions)
    if not control().get("backwards"):
        return names
    waiting = {name: engine._extract_deps(resources[name], set(names)) - {name} for name in names}
    ordered = []
    while waiting:
        name = max(name for name, needs in waiting.items() if needs <= set(ordered))
        ordered.append(name)
        del waiting[name]
    return ordered


replace("_topological_sort", sort_backwards_if_asked)


# --- What CloudFormation refuses beforehand ----------------------------------------------------------------------------------

handlers._capabilities_enforced = lambda: True

NAMED_BY_PARAMETERS = {
    "AWS::EC2::VPC::Id": lambda: ec2._vpcs,
    "AWS::EC2::Subnet::Id": lambda: ec2._subnets,
    "AWS::EC2::SecurityGroup::Id": lambda: ec2._security_groups,
    "AWS::EC2::Image::Id": images,
    "AWS::Route53::HostedZone::Id": lambda: route53._zones,
}

resolve_parameters = engine._resolve_parameters


def resolve_known_parameters(template, provided, previous=None):
    declared = template.get("Parameters", {})
    if unknown := sorted({entry["Key"] for entry in provided} - set(declared)):
        raise ValueError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    resolved = resolve_parameters(template, provided, previous)
    for name, parameter in resolved.items():
        store = NAMED_BY_PARAMETERS.get(declared[name]["Type"])
        if store and parameter["Value"] not in store():
            raise ValueError(f"Parameter validation failed: parameter value {parameter['Value']} "
                             f"for parameter name {name} does not exist")
    return resolved


replace("_resolve_parameters", resolve_known_parameters)

validate = engine.validate_template_support


def validate_references(template, conditions, params=None):
    resources = template.get("Resources", {})
    known = set(resources) | set(template.get("Parameters", {}))
    needed = {name for resource in resources.values() for name in
              ([resource["DependsOn"]] if isinstance(resource.get("DependsOn"), str) else resource.get("DependsOn", []))}
    for block, names in (("Resources", needed), ("Outputs", set())):
        names |= {name for name, _ in engine._intrinsic_references(template.get(block, {})) if not name.startswith("AWS::")}
        if missing := sorted(names - known):
            raise ValueError(f"Template format error: Unresolved resource dependencies [{', '.join(missing)}] "
                             f"in the {block} block of the template")
    return validate(template, conditions, params)


replace("validate_template_support", validate_references)


# --- The ends of updates and creations ---------------------------------------------------------------------------------------

failed_at = contextvars.ContextVar("failed_at", default=None)
deploy_stack, roll_back_operation, revert_update = stacks._deploy_stack_async, stacks._roll_back_operation, stacks._revert_update
sends_back = stacks._sends_back_failed_update


async def deploy(stack_name, stack_id, template, param_values, *arguments, **named):
    stack = cloudformation._stacks[stack_name]
    # For functions that need the policies of a resource, which MiniStack does not pass.
    stack["_deploying"], stack["_deploying_with"] = template, param_values
    try:
        if named.get("is_update") and (denied := denied_by_policy(stack)):
            await fail_at_once(stack, *denied, template, param_values, named["previous_stack"])
        else:
            await deploy_stack(stack_name, stack_id, template, param_values, *arguments, **named)
    finally:
        del stack["_deploying"], stack["_deploying_with"]
    if stack.pop("_deletion", False):
        await stacks._delete_stack_async(stack_name, stack_id)


async def roll_back(stack_name, stack_id, stack, operation, reason_override=""):
    if "_deletion" in stack:
        # All of it is deleted anyway.
        return
    if stack.pop("_cancel_requested", False):
        operation["cancelled"] = True
        stacks.CLIENT_REQUEST_TOKEN.set(stack.pop("_cancel_token", ""))
    failed, made = operation.get("failed_logical_id"), operation.setdefault("created", [])
    # A group without its signals exists, and must be deleted.
    if not operation.get("failed_update") and failed in stack["_resources"] and failed not in made:
        made.append(failed)
    failed_at.set((stack_name, failed))
    await roll_back_operation(stack_name, stack_id, stack, operation, reason_override)


async def revert(*arguments, **named):
    before = rolling_back.set(True)
    try:
        await revert_update(*arguments, **named)
    finally:
        rolling_back.reset(before)


def sends_back_failed_update(resource_type):
    """Groups have begun to change when they fail; others fail in a rollback only where a test says so."""
    told = failed_at.get() and set(names_of(*failed_at.get())) & set(control().get("fail_rollback", {}))
    return bool(told) or resource_type == "AWS::AutoScaling::AutoScalingGroup" or sends_back(resource_type)


replace("_deploy_stack_async", deploy)
replace("_roll_back_operation", roll_back)
replace("_revert_update", revert)
replace("_sends_back_failed_update", sends_back_failed_update)


# --- Policies of stacks ------------------------------------------------------------------------------------------------------


def listed(value):
    return value if isinstance(value, list) else [value]


def speaks_of(statement, action, logical_id, resource_type):
    def among(key, value):
        if f"Not{key}" in statement:
            return not any(fnmatch.fnmatchcase(value, pattern) for pattern in listed(statement[f"Not{key}"]))
        return any(fnmatch.fnmatchcase(value, pattern) for pattern in listed(statement.get(key, [])))

    conditions = [pattern for operator in statement.get("Condition", {}).values() for pattern in listed(operator["ResourceType"])]
    return (among("Action", action) and among("Resource", f"LogicalResourceId/{logical_id}")
            and (not conditions or any(fnmatch.fnmatchcase(resource_type, pattern) for pattern in conditions)))


def denied_by_policy(stack):
    """The first of the changes that the policy forbids, and why."""
    if not stack.get("_stack_policy"):
        return None
    statements = list(enumerate(listed(json.loads(stack["_stack_policy"])["Statement"]), 1))
    changes = next((change_set["Changes"] for change_set in cloudformation._change_sets.values()
                    if change_set["StackId"] == stack["StackId"] and change_set["ExecutionStatus"] == "EXECUTE_IN_PROGRESS"), [])
    for change in (change["ResourceChange"] for change in changes):
        if change["Action"] == "Add":
            continue
        action = "Delete" if change["Action"] == "Remove" else "Replace" if change["Replacement"] == "True" else "Modify"
        about = [(number, statement["Effect"]) for number, statement in statements
                 if speaks_of(statement, f"Update:{action}", change["LogicalResourceId"], change["ResourceType"])]
        denying = [number for number, effect in about if effect == "Deny"]
        if denying or not about:
            which = f"Statement [#{denying[0]}] does not allow" if denying else "no statement allows"
            return change, (f"Action denied by stack policy: {which} [Update:{action}] "
                            f"for resource [LogicalResourceId/{change['LogicalResourceId']}]")
    return None


async def fail_at_once(stack, change, reason, template, param_values, previous_stack):
    logical_id, resource_type = change["LogicalResourceId"], change["ResourceType"]
    physical_id = change.get("PhysicalResourceId", "")
    stacks._add_event(stack["StackId"], stack["StackName"], logical_id, resource_type, "UPDATE_FAILED", reason, physical_id)
    await roll_back(stack["StackName"], stack["StackId"], stack, stacks._failed_operation(
        True, previous_stack, [], (logical_id, resource_type, physical_id, None, None, None), logical_id, [], False, template,
        param_values, False, stack["Tags"], previous_stack["Tags"]))
