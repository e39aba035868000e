//! A request to AWS into `service:Operation`, and a fault into an error in the form of that service.

use super::http::{Message, field};

/// Why a service refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Throttled,
    ServerError,
    InternalError,
    ExpiredToken,
    AccessDenied,
    Skewed,
}

/// `service:Operation`. Both generations of load balancers are called `elasticloadbalancing`.
pub fn operation(request: &Message) -> String {
    let service = service(request);
    let name = if let Some(target) = request.header("x-amz-target") {
        target.rsplit('.').next().unwrap().to_owned()
    } else if let Some(action) = form_field(request, "Action") {
        action
    } else {
        let segments: Vec<&str> = request.path().split('/').filter(|part| !part.is_empty()).collect();
        let known = match service.as_str() {
            "s3" => s3_operation(request),
            "route53" => route53_operation(request.method(), &segments),
            "elasticfilesystem" => file_system_operation(request.method(), &segments),
            _ => None,
        };
        known.unwrap_or_else(|| format!("{} {}", request.method(), request.path()))
    };
    format!("{service}:{name}")
}

/// What the request is about: a stack, a change set, or what its path names.
pub fn target(request: &Message) -> Option<String> {
    let named = form_field(request, "StackName").or_else(|| form_field(request, "ChangeSetName"));
    let path = request.path().trim_matches('/');
    named.or_else(|| (!path.is_empty()).then(|| path.to_owned()))
}

/// The region that the request is signed for.
pub fn region(request: &Message) -> Option<String> {
    scope(request, 2)
}

/// The service of the credential's scope; a few calls of STS are not signed at all.
fn service(request: &Message) -> String {
    scope(request, 3).unwrap_or_else(|| "sts".to_owned())
}

/// A part of the credential's scope, of a signed request or of a signed link.
fn scope(request: &Message, part: usize) -> Option<String> {
    let in_header = request.header("authorization").and_then(|text| text.split_once("Credential="));
    let scope = match in_header {
        Some((_, scope)) => scope.to_owned(),
        None => field(request.query(), "X-Amz-Credential")?,
    };
    scope.split('/').nth(part).map(str::to_owned)
}

fn form_field(request: &Message, name: &str) -> Option<String> {
    let is_form = request.has("content-type", "x-www-form-urlencoded");
    is_form.then(|| field(&String::from_utf8_lossy(&request.body), name)).flatten()
}

/// Subresources of buckets, by the query that asks for them, as Get…, Put… and Delete… call them.
const BUCKET_SETTINGS: [(&str, &str); 12] = [
    ("accelerate", "BucketAccelerateConfiguration"),
    ("acl", "BucketAcl"),
    ("encryption", "BucketEncryption"),
    ("lifecycle", "BucketLifecycleConfiguration"),
    ("location", "BucketLocation"),
    ("logging", "BucketLogging"),
    ("ownershipControls", "BucketOwnershipControls"),
    ("policy", "BucketPolicy"),
    ("policyStatus", "BucketPolicyStatus"),
    ("publicAccessBlock", "PublicAccessBlock"),
    ("tagging", "BucketTagging"),
    ("versioning", "BucketVersioning"),
];

fn s3_operation(request: &Message) -> Option<String> {
    let asks = |name: &str| field(request.query(), name).is_some();
    let verb = match request.method() {
        "GET" => "Get",
        "PUT" => "Put",
        "DELETE" => "Delete",
        "HEAD" => "Head",
        "POST" => "Post",
        _ => return None,
    };
    let (bucket, key) =
        request.path().trim_start_matches('/').split_once('/').unwrap_or((request.path(), ""));
    if !key.is_empty() {
        let name = match verb {
            "Put" if asks("partNumber") => "UploadPart",
            "Put" if request.header("x-amz-copy-source").is_some() => "CopyObject",
            "Post" if asks("uploads") => "CreateMultipartUpload",
            "Post" if asks("uploadId") => "CompleteMultipartUpload",
            "Delete" if asks("uploadId") => "AbortMultipartUpload",
            "Post" => return None,
            _ if asks("tagging") => return Some(format!("{verb}ObjectTagging")),
            _ => return Some(format!("{verb}Object")),
        };
        return Some(name.to_owned());
    }
    if let Some((_, setting)) = BUCKET_SETTINGS.iter().find(|(name, _)| asks(name)) {
        return Some(format!("{verb}{setting}"));
    }
    let name = match verb {
        "Get" if bucket.trim_matches('/').is_empty() => "ListBuckets",
        "Get" if asks("versions") => "ListObjectVersions",
        "Get" if asks("uploads") => "ListMultipartUploads",
        "Get" if asks("list-type") => "ListObjectsV2",
        "Get" => "ListObjects",
        "Put" => "CreateBucket",
        "Post" if asks("delete") => "DeleteObjects",
        "Post" => return None,
        verb => return Some(format!("{verb}Bucket")),
    };
    Some(name.to_owned())
}

fn route53_operation(method: &str, segments: &[&str]) -> Option<String> {
    let name = match (method, segments.get(1..)?) {
        ("GET", ["hostedzone"]) => "ListHostedZones",
        ("POST", ["hostedzone"]) => "CreateHostedZone",
        ("GET", ["hostedzonecount"]) => "GetHostedZoneCount",
        ("GET", ["hostedzonesbyname"]) => "ListHostedZonesByName",
        ("GET", ["hostedzonesbyvpc"]) => "ListHostedZonesByVPC",
        ("GET", ["hostedzone", _]) => "GetHostedZone",
        ("DELETE", ["hostedzone", _]) => "DeleteHostedZone",
        ("GET", ["hostedzone", _, "rrset"]) => "ListResourceRecordSets",
        ("POST", ["hostedzone", _, "rrset"]) => "ChangeResourceRecordSets",
        ("GET", ["change", _]) => "GetChange",
        ("GET", ["tags", _, _]) => "ListTagsForResource",
        ("POST", ["tags", _, _]) => "ChangeTagsForResource",
        _ => return None,
    };
    Some(name.to_owned())
}

fn file_system_operation(method: &str, segments: &[&str]) -> Option<String> {
    let name = match (method, segments.get(1..)?) {
        ("GET", ["file-systems"]) => "DescribeFileSystems",
        ("POST", ["file-systems"]) => "CreateFileSystem",
        ("PUT", ["file-systems", _]) => "UpdateFileSystem",
        ("DELETE", ["file-systems", _]) => "DeleteFileSystem",
        ("GET", ["file-systems", _, "lifecycle-configuration"]) => "DescribeLifecycleConfiguration",
        ("GET", ["file-systems", _, "policy"]) => "DescribeFileSystemPolicy",
        ("GET", ["mount-targets"]) => "DescribeMountTargets",
        ("POST", ["mount-targets"]) => "CreateMountTarget",
        ("DELETE", ["mount-targets", _]) => "DeleteMountTarget",
        ("GET", ["mount-targets", _, "security-groups"]) => "DescribeMountTargetSecurityGroups",
        ("GET", ["access-points"]) => "DescribeAccessPoints",
        ("GET", ["resource-tags", _]) => "ListTagsForResource",
        ("POST", ["resource-tags", _]) => "TagResource",
        _ => return None,
    };
    Some(name.to_owned())
}

const HTTP_DATE: &[time::format_description::BorrowedFormatItem<'_>] = time::macros::format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// How a service writes its errors.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Query,
    Ec2,
    S3,
    Json,
}

/// The refusal as the service asked would say it.
pub fn refuse(request: &Message, refusal: Refusal) -> Message {
    let service = service(request);
    let form = match service.as_str() {
        "ec2" => Form::Ec2,
        "s3" => Form::S3,
        "elasticfilesystem" => Form::Json,
        _ if request.header("x-amz-target").is_some() => Form::Json,
        _ => Form::Query,
    };
    let denied = format!(
        "User: arn:aws:iam::111122223333:user/ada is not authorized to perform: {}",
        operation(request)
    );
    let expired = "The security token included in the request is expired";
    let late = "Signature expired: 20261116T094000Z is now earlier than 20261116T100000Z (20261116T100500Z - 5 min.)";
    let (status, code, message) = match (refusal, form) {
        (Refusal::Throttled, Form::Query) => (400, "Throttling", "Rate exceeded"),
        (Refusal::Throttled, Form::Ec2) => (503, "RequestLimitExceeded", "Request limit exceeded."),
        (Refusal::Throttled, Form::S3) => (503, "SlowDown", "Please reduce your request rate."),
        (Refusal::Throttled, Form::Json) if service == "elasticfilesystem" => {
            (429, "ThrottlingException", "Rate exceeded")
        }
        (Refusal::Throttled, Form::Json) => (400, "ThrottlingException", "Rate exceeded"),
        (Refusal::ServerError, Form::Ec2) => (503, "Unavailable", "The server is overloaded."),
        (Refusal::ServerError, Form::Json) => (503, "ServiceUnavailableException", "Service is unavailable."),
        (Refusal::ServerError, _) => (503, "ServiceUnavailable", "Service is unavailable."),
        (Refusal::InternalError, Form::Ec2 | Form::S3) => {
            (500, "InternalError", "An internal error occurred.")
        }
        (Refusal::InternalError, _) => (500, "InternalFailure", "An internal error occurred."),
        (Refusal::ExpiredToken, Form::Ec2) => (400, "RequestExpired", "Request has expired."),
        (Refusal::ExpiredToken, Form::S3) => (400, "ExpiredToken", "The provided token has expired."),
        (Refusal::ExpiredToken, Form::Json) => (400, "ExpiredTokenException", expired),
        (Refusal::ExpiredToken, Form::Query) => (403, "ExpiredToken", expired),
        (Refusal::AccessDenied, Form::Ec2) => (403, "UnauthorizedOperation", denied.as_str()),
        (Refusal::AccessDenied, Form::Json) => (400, "AccessDeniedException", denied.as_str()),
        (Refusal::AccessDenied, _) => (403, "AccessDenied", denied.as_str()),
        (Refusal::Skewed, Form::Ec2) => {
            (401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        }
        (Refusal::Skewed, Form::S3) => (
            403,
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
        ),
        (Refusal::Skewed, Form::Json) => (400, "InvalidSignatureException", late),
        (Refusal::Skewed, Form::Query) => (403, "SignatureDoesNotMatch", late),
    };
    let mut answer = write_error(form, status, code, message, request.method() == "HEAD");
    if refusal == Refusal::Skewed {
        let date = time::OffsetDateTime::now_utc() + time::Duration::seconds(25 * 60 + 30);
        answer.set_header("Date", &date.format(&HTTP_DATE).unwrap());
    }
    answer
}

fn write_error(form: Form, status: u16, code: &str, message: &str, without_body: bool) -> Message {
    let said = format!("<Code>{code}</Code><Message>{message}</Message>");
    let blame = if status < 500 { "Sender" } else { "Receiver" };
    let id = "7a62c49f-347e-4fc4-9331-6e8eEXAMPLE";
    let body = match form {
        Form::Query => format!(
            "<ErrorResponse><Error><Type>{blame}</Type>{said}</Error><RequestId>{id}</RequestId></ErrorResponse>"
        ),
        Form::Ec2 => {
            format!("<Response><Errors><Error>{said}</Error></Errors><RequestID>{id}</RequestID></Response>")
        }
        Form::S3 => format!("<Error>{said}<RequestId>{id}</RequestId></Error>"),
        Form::Json => serde_json::json!({"__type": code, "message": message}).to_string(),
    };
    let body = if without_body { String::new() } else { body };
    let request_id = ("x-amzn-requestid", id);
    match form {
        Form::Json => Message::answer(
            status,
            &[request_id, ("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-errortype", code)],
            body.as_bytes(),
        ),
        _ => Message::answer(status, &[request_id, ("Content-Type", "text/xml")], body.as_bytes()),
    }
}
