"""What S3 and CloudFormation make of a bucket's owner and of an object's version, which MiniStack passes over."""

import urllib.parse

from ministack.services import s3
from ministack.services.cloudformation import helpers

scope_of_bucket, resolve_document = s3._apply_bucket_scope, helpers._resolve_document


def apply_bucket_scope(method, bucket, key, headers, query_params, body=b"", internal=False):
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
