"""The credentials that the stand-in for AWS hands out, and whether a request is signed with them."""

import hashlib
import hmac
import re

REGION = "us-west-2"
KEY = "ASIASTANDINKEY000000"
SECRET = "standin/secret+standin/secret+0123456789"
SESSION = "standin//session+token=="


def check_signature(request, service, body):
    """What is wrong with a request's Signature Version 4, or nothing."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    shape = r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})"
    match = re.fullmatch(shape, headers.get("authorization", ""))
    if not match:
        return "no signature of version 4"
    key, day, region, scope, names, signature = match.groups()
    if (key, region, scope) != (KEY, REGION, service):
        return f"signed for {key}, {region}, {scope}"
    if headers.get("x-amz-security-token") != SESSION:
        return "no session token"
    signed = names.split(";")
    needed = {"host", "x-amz-date", "x-amz-security-token"} | {name for name in headers if name.startswith("x-amz-server-side-")}
    if service == "s3":
        needed.add("x-amz-content-sha256")
    if not needed <= set(signed):
        return f"unsigned headers: {sorted(needed - set(signed))}"
    # Before 8.10 curl sorted names by what follows them ("encryption-aws-…" before "encryption:"); AWS refuses that, nodes have a newer one.
    client = re.match(r"curl/(\d+)\.(\d+)", headers.get("user-agent", ""))
    if signed != sorted(signed) and not (client and tuple(map(int, client.groups())) < (8, 10)):
        return "the signed headers are not sorted"
    content = hashlib.sha256(body).hexdigest()
    if headers.get("x-amz-content-sha256", content) != content:
        return "the body is not what its sha256 says"
    path, _, query = request.path.partition("?")
    names_in_query = [part.partition("=")[0] for part in query.split("&")] if query else []
    if names_in_query != sorted(names_in_query) or any("=" not in part for part in query.split("&") if query):
        return "a query that older curls sign wrongly: its names are sorted, and all have a value"
    if re.search(r"[^A-Za-z0-9._~%&=-]", query):
        return "a query whose values are not encoded"
    canonical = "\n".join(
        [request.command, path, query, *(f"{name}:{' '.join(headers[name].split())}" for name in signed), "", names, content]
    )
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            headers["x-amz-date"],
            f"{day}/{region}/{scope}/aws4_request",
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    secret = ("AWS4" + SECRET).encode()
    for part in (day, region, scope, "aws4_request"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    if hmac.new(secret, text.encode(), hashlib.sha256).hexdigest() != signature:
        return "the signature is wrong"
    return None
