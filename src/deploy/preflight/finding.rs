//! The findings of preflight, and how a call that AWS refused becomes a finding too.

use crate::aws::{AwsError, Cause};
use crate::deploy::event::{Finding, Severity};

/// The findings about one subject, in the order of the checks.
pub(crate) struct SubjectFindings {
    subject: &'static str,
    list: Vec<Finding>,
}

impl SubjectFindings {
    pub(crate) fn about(subject: &'static str) -> Self {
        Self { subject, list: Vec::new() }
    }

    pub(crate) fn refuse(&mut self, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) {
        self.add(Severity::Refused, what.into(), why.into(), fix.into());
    }

    pub(crate) fn warn(&mut self, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) {
        self.add(Severity::Warning, what.into(), why.into(), fix.into());
    }

    /// The answer; none with a finding in its place if AWS did not give one. Without credentials nothing else can be checked.
    pub(crate) fn take<T>(&mut self, answer: Result<T, AwsError>) -> Result<Option<T>, AwsError> {
        let error = match answer {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) if error.cause == Cause::Credentials => return Err(error),
            Err(error) => error,
        };
        let action = error.operation;
        if error.is_denied() {
            self.warn(
                format!("could not be checked: the caller may not {action}"),
                "a fault here shows only when AWS refuses it later",
                format!(
                    "allow {action} (`infra policy` lists all), or pass --skip-preflight to continue regardless"
                ),
            );
        } else {
            self.refuse(
                format!("could not be checked: {error}"),
                "a fault here shows only when AWS refuses it later",
                "fix what AWS reports and try again, or pass --skip-preflight to continue regardless",
            );
        }
        Ok(None)
    }

    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.list
    }

    fn add(&mut self, severity: Severity, what: String, why: String, fix: String) {
        let finding = Finding { severity, subject: self.subject, what, why, fix };
        // One missing permission may be the reason of several findings.
        if !self.list.contains(&finding) {
            self.list.push(finding);
        }
    }
}

/// A list in a sentence.
pub(crate) fn join_names<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(item.as_ref());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Severity, SubjectFindings, join_names};
    use crate::aws::{AwsError, Cause};

    fn error(cause: Cause, code: &str) -> AwsError {
        AwsError {
            operation: "ec2:DescribeVpcs",
            cause,
            code: Some(code.to_owned()),
            message: "no".to_owned(),
            request_id: None,
            clock: None,
        }
    }

    #[test]
    fn a_denied_call_is_a_warning_and_any_other_failure_a_refusal() -> Result<(), AwsError> {
        let mut findings = SubjectFindings::about("network");
        assert_eq!(findings.take(Ok(1))?, Some(1));
        assert_eq!(findings.take::<()>(Err(error(Cause::Refused, "UnauthorizedOperation")))?, None);
        assert_eq!(findings.take::<()>(Err(error(Cause::Refused, "UnauthorizedOperation")))?, None);
        assert_eq!(findings.take::<()>(Err(error(Cause::Refused, "InternalError")))?, None);
        let list = findings.into_list();
        let severities: Vec<Severity> = list.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Warning, Severity::Refused]);
        assert!(list[0].what.ends_with("the caller may not ec2:DescribeVpcs"));
        Ok(())
    }

    #[test]
    fn without_credentials_there_are_no_findings() {
        let mut findings = SubjectFindings::about("network");
        assert!(findings.take::<()>(Err(error(Cause::Credentials, "ExpiredToken"))).is_err());
    }

    #[test]
    fn items_are_joined_by_commas() {
        assert_eq!(join_names(["a", "b"]), "a, b");
        assert_eq!(join_names(Vec::<String>::new()), "");
    }
}
