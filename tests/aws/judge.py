"""What policies allow, judged by MiniStack's own evaluator of IAM policies, without a server."""

import importlib.util
import json
import pathlib
import sysconfig

ACCOUNT, REGION = "123456789012", "us-west-2"


def load_evaluator():
    """By its file: in this directory `import ministack` finds the module that starts the stand-in."""
    path = pathlib.Path(sysconfig.get_path("purelib"), "ministack/core/iam_evaluator.py")
    specification = importlib.util.spec_from_file_location("iam_evaluator", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


evaluator = load_evaluator()


class Judge:
    """Of one principal: its policies, and perhaps a permissions boundary."""

    def __init__(self, documents, boundary=None):
        self.policies = [parse(document) for document in documents]
        self.limits = [[parse(boundary)]] if boundary else []

    def allows(self, action, resource="*", tags=None, request_tags=None, region=REGION, context=None, **keys):
        """Whether a request passes for one resource. AWS judges each resource of a request; all of them must pass."""
        context = dict(context or {}) | {f"aws:resourcetag/{key}".lower(): value for key, value in (tags or {}).items()}
        # Keyword arguments have no colon.
        context |= {key.replace("__", ":").lower(): value for key, value in keys.items()}
        context.setdefault("aws:tagkeys", list(request_tags) if request_tags else None)
        request = evaluator.EvalContext(
            principal_arn=f"arn:aws:iam::{ACCOUNT}:user/ada", principal_type="User", principal_account=ACCOUNT, action=action,
            resource_arn=resource, region=region, request_tags=request_tags or {}, service_context=context)
        return evaluator.evaluate(request, self.policies, *self.limits).decision == "Allow"


def conditions(statement):
    """A context in which the conditions of a statement are met."""
    met = {}
    for operator, keys in statement.get("Condition", {}).items():
        for key, values in keys.items():
            value = values[0] if isinstance(values, list) else values
            if operator != "Null":
                met[key.lower()] = [value] if operator.startswith("For") else value.replace("*", "x")
    return met


def listed(value):
    return value if isinstance(value, list) else [value]


def parse(document):
    problem = evaluator.validate_policy_document(document)
    if problem:
        raise ValueError(f"{problem}: {json.dumps(document)}")
    return evaluator.parse_policy_document(document)
