//! What AWS refused, in one shape for every service.

use std::any::Any;
use std::fmt;

use aws_sdk_sts::config::http::HttpResponse;
use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sts::operation::RequestId;

use super::actions::Action;
use super::clock::minutes_ahead;
use super::configuration::CALL_TIMEOUT;
use crate::outcome::{Explain, Outcome};
use crate::plural::count_of;

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Credentials are missing, expired or not accepted.
    Credentials,
    /// No answer came.
    Unreachable,
    /// AWS answered with a refusal.
    Refused,
}

/// A call that failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) struct AwsError {
    /// The operation, as IAM names it.
    pub operation: &'static str,
    /// What kind of failure it was.
    pub cause: Cause,
    /// AWS's code for it, if it answered.
    pub code: Option<String>,
    /// What AWS or the connection said.
    pub message: String,
    /// AWS's name for the call, for its support.
    pub request_id: Option<String>,
    /// By how many minutes this machine's clock is ahead of AWS's, or behind it, where calls are refused for that.
    pub clock: Option<i64>,
}

impl AwsError {
    /// A call that could not be built, or whose answer broke off.
    pub(super) fn incomplete(action: Action, message: String) -> Self {
        Self { operation: action.name, ..Self::lost(message) }
    }

    /// A call whose task ended without an answer.
    pub(crate) fn lost(message: String) -> Self {
        Self {
            operation: "a call to AWS",
            cause: Cause::Unreachable,
            code: None,
            message,
            request_id: None,
            clock: None,
        }
    }

    /// Whether AWS gave this code.
    #[must_use]
    pub(super) fn has_code(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether AWS's message holds these words, for where it has no code of their own.
    #[must_use]
    pub(super) fn says(&self, words: &str) -> bool {
        self.message.contains(words)
    }

    /// Whether AWS knows the caller, but does not allow this.
    #[must_use]
    pub(crate) fn is_denied(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        matches!(
            code,
            "AccessDenied"
                | "AccessDeniedException"
                | "UnauthorizedOperation"
                | "Forbidden"
                | "AccessDeniedFault"
        )
    }

    /// Whether one region refuses a caller that others know: a policy forbids the region, or the account or the session is not valid
    /// there.
    #[must_use]
    pub(crate) fn is_refused_region(&self) -> bool {
        let codes = ["OptInRequired", "AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException"];
        self.is_denied() || self.has_code_of(&codes)
    }

    fn has_code_of(&self, codes: &[&str]) -> bool {
        codes.iter().any(|code| self.has_code(code))
    }

    /// Whether there is no such stack, or no template of it.
    #[must_use]
    pub(crate) fn is_missing_stack(&self) -> bool {
        self.says("does not exist")
    }

    /// Whether CloudFormation refused because another process has changed the stack since it was read.
    #[must_use]
    pub(crate) fn is_overtaken(&self) -> bool {
        self.has_code_of(&["AlreadyExistsException", "ChangeSetNotFound", "InvalidChangeSetStatus"])
            || self.says("already exists and cannot be created again")
            || self.says("state and can not be updated")
    }

    /// Whether a stack was not deleted because it is protected.
    #[must_use]
    pub(crate) fn is_termination_protected(&self) -> bool {
        self.says("TerminationProtection is enabled")
    }

    /// Whether there is no such bucket.
    #[must_use]
    pub(crate) fn is_missing_bucket(&self) -> bool {
        self.has_code("NoSuchBucket")
    }

    /// Whether another process is changing the same settings of a bucket.
    #[must_use]
    pub(crate) fn is_bucket_conflict(&self) -> bool {
        self.has_code("OperationAborted")
    }

    /// Whether there is no such KMS key, or no such grant.
    #[must_use]
    pub(crate) fn is_missing_key(&self) -> bool {
        self.has_code("NotFoundException")
    }

    /// Whether there is no such file system.
    #[must_use]
    pub(crate) fn is_missing_file_system(&self) -> bool {
        self.has_code("FileSystemNotFound")
    }

    /// Whether a file system is in use, or being deleted by another process.
    #[must_use]
    pub(crate) fn is_busy_file_system(&self) -> bool {
        self.has_code_of(&["FileSystemInUse", "IncorrectFileSystemLifeCycleState"])
    }

    /// Whether there is no such security group, or no such rule in it.
    #[must_use]
    pub(crate) fn is_missing_rule(&self) -> bool {
        self.has_code_of(&["InvalidGroup.NotFound", "InvalidPermission.NotFound"])
    }

    /// Whether a resource cannot be deleted yet, because another one still uses it.
    #[must_use]
    pub(crate) fn is_in_use(&self) -> bool {
        self.has_code_of(&[
            "DependencyViolation",
            "ResourceInUse",
            "InvalidGroup.InUse",
            "InvalidNetworkInterface.InUse",
            "InvalidParameterValue",
            "OperationNotPermitted",
            "IncorrectMountTargetState",
        ])
    }

    /// Turns the SDK's error of one operation into ours.
    pub(super) fn of<E, R>(action: Action) -> impl FnOnce(SdkError<E, R>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        R: fmt::Debug + 'static,
        SdkError<E, R>: RequestId,
    {
        move |error| {
            let request_id = error.request_id().map(str::to_owned);
            let code = error.as_service_error().and_then(ProvideErrorMetadata::code).map(str::to_owned);
            let message = error.as_service_error().and_then(ProvideErrorMetadata::message).map(str::to_owned);
            let answer =
                error.raw_response().and_then(|raw| (raw as &dyn Any).downcast_ref::<HttpResponse>());
            let clock = answer.and_then(|answer| {
                let said = message.as_deref().unwrap_or_default();
                // HEAD responses carry no error code.
                let code = if answer.status().as_u16() == 403 {
                    code.as_deref().or(Some(""))
                } else {
                    code.as_deref()
                };
                minutes_ahead(code?, said, answer.headers().get("date")?)
            });
            let refused_by_proxy = answer.is_some_and(|answer| answer.status().as_u16() == 407);
            let chain = match &error {
                SdkError::TimeoutError(_) => format!("no answer within {} s", CALL_TIMEOUT.as_secs()),
                _ if refused_by_proxy => "the proxy requires authentication (407)".to_owned(),
                _ => innermost_cause(&error),
            };
            let cause = match (&error, code.as_deref()) {
                _ if refused_by_proxy => Cause::Unreachable,
                _ if clock.is_some() => Cause::Credentials,
                (_, Some(code)) if CREDENTIAL_CODES.contains(&code) => Cause::Credentials,
                (SdkError::DispatchFailure(_), _)
                    if whole_chain(&error).contains("credential") || chain.contains("token") =>
                {
                    Cause::Credentials
                }
                (SdkError::ServiceError(_), _) => Cause::Refused,
                _ => Cause::Unreachable,
            };
            Self { operation: action.name, cause, code, message: message.unwrap_or(chain), request_id, clock }
        }
    }
}

impl Explain for AwsError {
    fn help(&self) -> Option<String> {
        match (self.cause, self.clock) {
            (Cause::Credentials, Some(minutes)) => Some(clock_help(minutes)),
            (Cause::Credentials, None) => Some(format!(
                "renew them (`aws sso login`, a fresh session), or name a profile with --profile; {CONTINUES_IN_AWS}"
            )),
            (Cause::Unreachable, _) => Some(format!(
                "see that this machine reaches the network, and that the region and --endpoint-url are right; behind a proxy set \
                 HTTPS_PROXY; {CONTINUES_IN_AWS}"
            )),
            (Cause::Refused, _) => None,
        }
    }

    fn outcome(&self) -> Outcome {
        match self.cause {
            Cause::Credentials => Outcome::Credentials,
            Cause::Unreachable => Outcome::Unreachable,
            Cause::Refused => Outcome::Refused,
        }
    }
}

/// What a failed call does not stop.
pub(crate) const CONTINUES_IN_AWS: &str =
    "operations that were started continue in AWS, and the same command resumes them";

fn clock_help(minutes: i64) -> String {
    let clock = match minutes {
        0 => "AWS rejects the time of this machine's clock".to_owned(),
        1.. => format!("this machine's clock is {} ahead of AWS's", count_of(minutes, "minute")),
        ..=-1 => {
            format!("this machine's clock is {} behind AWS's", count_of(minutes.unsigned_abs(), "minute"))
        }
    };
    format!("{clock}; set it (`timedatectl set-ntp true`, or chrony), then run the same command again")
}

/// Codes with which services say that they do not know who is calling.
const CREDENTIAL_CODES: [&str; 10] = [
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

impl fmt::Display for AwsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.operation)?;
        if let Some(code) = &self.code {
            write!(formatter, "{code}: ")?;
        }
        formatter.write_str(&self.message)?;
        match &self.request_id {
            Some(id) => write!(formatter, " (request {id})"),
            None => Ok(()),
        }
    }
}

/// Every cause of an error in one text: only one of them may say that it is about credentials.
fn whole_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut current = error;
    while let Some(next) = current.source() {
        current = next;
        text.push_str(": ");
        text.push_str(&current.to_string());
    }
    text
}

/// The last cause of an error: the SDK's own text says only that something failed.
pub(super) fn innermost_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut current = error;
    while let Some(next) = current.source() {
        current = next;
    }
    current.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}
