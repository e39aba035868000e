"""Where MiniStack keeps what the other parts change."""

import contextvars
import re
from xml.sax.saxutils import escape

from ministack.core import iam_actions
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks

HANDLERS = provisioners._RESOURCE_HANDLERS

# Route 53 wraps its errors as IAM does; in S3's form no client can read them.
iam_actions._SERVICE_PROTOCOL["route53"] = "query-xml"

# Whether an update is being rolled back: what failed in the update need not fail in its rollback.
rolling_back = contextvars.ContextVar("rolling_back", default=False)


def replace(name, function):
    """Puts a function in the place of one of CloudFormation's, in every module that has taken it by name."""
    for module in (engine, provisioners, stacks, changesets, handlers):
        if hasattr(module, name):
            setattr(module, name, function)


class Refused(Exception):
    """In the words of CloudFormation's events; the code alone is for EC2's answers."""

    def __init__(self, code, message):
        super().__init__(f"{message} (Service: Ec2, Status Code: 400, Error Code: {code})")
        self.code, self.message = code, message


def done(answer):
    status, _, body = answer
    if status >= 400:
        code, message = (re.search(f"<{tag}>(.*?)</{tag}>", body.decode(), re.S).group(1) for tag in ("Code", "Message"))
        raise Refused(code, message)


def made(store, action, **parameters):
    """Has EC2 create something; returns its id."""
    before = set(store)
    done(action({name: [str(value)] for name, value in parameters.items()}))
    return (set(store) - before).pop()


def xml(value, item):
    """Elements named as the keys; a list holds elements of the given name, as each protocol wants."""
    if isinstance(value, dict):
        return "".join(f"<{key}>{xml(inner, item)}</{key}>" for key, inner in value.items() if inner is not None)
    if isinstance(value, list):
        return "".join(f"<{item}>{xml(inner, item)}</{item}>" for inner in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return escape(str(value))
