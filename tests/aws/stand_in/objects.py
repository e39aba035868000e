"""What S3 and CloudFormation make of a bucket's owner, of an object's version and age, and of lifecycle rules, which MiniStack ignores."""

import contextvars
import re
import urllib.parse

from ministack.services import s3
from ministack.core.responses import AccountScopedDict
from ministack.services.cloudformation import helpers

from stand_in.control import made_at

scope_of_bucket, resolve_document = s3._apply_bucket_scope, helpers._resolve_document


MINIMUM_SIZE = "x-amz-transition-default-minimum-object-size"
# What the request at hand asks for, and what the rules of a bucket have.
asked_size, minimum_sizes = contextvars.ContextVar("asked_size"), AccountScopedDict()
# Rules of the old kind, of which MiniStack forgets the prefix.
old_rules = AccountScopedDict()


def apply_bucket_scope(method, bucket, key, headers, query_params, body=b"", internal=False):
    asked_size.set(headers.get(MINIMUM_SIZE))
    expected, owner = headers.get("x-amz-expected-bucket-owner"), s3._bucket_owner_account(bucket)
    if expected and owner and expected != owner:
        return s3._error("AccessDenied", "Access Denied", 403, f"/{bucket}")
    return scope_of_bucket(method, bucket, key, headers, query_params, body, internal)


def resolve_versioned_document(parameters, body_key, url_key, label):
    """A URL with a version is that version; MiniStack reads the newest one."""
    url = urllib.parse.urlparse(helpers._p(parameters, url_key) or "")
    version = urllib.parse.parse_qs(url.query).get("versionId")
    if not version:
        return resolve_document(parameters, body_key, url_key, label)
    bucket, _, key = url.path.lstrip("/").partition("/")
    content = s3._get_object_data(bucket, key, version[0])
    if content is None:
        return None, helpers._error("ValidationError", "S3 error: The specified version does not exist.")
    return content.decode(), None


s3._apply_bucket_scope, helpers._resolve_document = apply_bucket_scope, resolve_versioned_document


# --- Lifecycle rules ---------------------------------------------------------------------------------------------------------

get_rules, put_rules = s3._get_bucket_lifecycle, s3._put_bucket_lifecycle


def put_checked_rules(bucket, body):
    """S3 takes rules of the old kind, with a prefix of their own, or of the new one, with filters, but not both; and ids once."""
    rules = re.findall(r"<Rule>(.*?)</Rule>", body.decode(), re.S)
    new = [rule for rule in rules if "<Filter" in rule]
    if new and len(new) < len(rules):
        return s3._error("InvalidRequest", "Filter element can only be used in Lifecycle V2.", 400)
    ids = re.findall(r"<ID>(.*?)</ID>", body.decode())
    if not rules or len(ids) != len(set(ids)):
        return s3._error("InvalidArgument" if rules else "MalformedXML", "Rule ID must be unique." if rules else s3._MALFORMED_XML, 400)
    answered = put_rules(bucket, body)
    if answered[0] == 200:
        # Without it the default applies.
        minimum_sizes[bucket] = asked_size.get(None) or "all_storage_classes_128K"
        old_rules[bucket] = None if new else body
    return answered


def get_sized_rules(bucket):
    status, headers, body = get_rules(bucket)
    body = old_rules.get(bucket) or body if status == 200 else body
    return status, headers | ({MINIMUM_SIZE: minimum_sizes[bucket]} if bucket in minimum_sizes else {}), body


s3._get_bucket_lifecycle, s3._put_bucket_lifecycle = get_sized_rules, put_checked_rules


# --- Ages --------------------------------------------------------------------------------------------------------------------

list_objects = s3._list_objects_v2


def list_aged_objects(bucket, parameters):
    status, headers, body = list_objects(bucket, parameters)

    def aged(found):
        return f"<Key>{found[1]}</Key><LastModified>{made_at(urllib.parse.unquote(found[1]), found[2])}</LastModified>"

    return status, headers, re.sub(r"<Key>(.*?)</Key><LastModified>(.*?)</LastModified>", aged, body.decode()).encode()


s3._list_objects_v2 = list_aged_objects
